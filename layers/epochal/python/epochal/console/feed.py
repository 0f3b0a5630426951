"""The feed, a page of a partition at a time: the latest items, or those from a checkpoint on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from epochal.console.show import body, whole
from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.feed.latest import latest
from epochal.feed.results import FeedItem, PartitionTail
from epochal.index.checkpoints import parse_checkpoint
from epochal.layout.registry import layout_of
from epochal.model.spans import Span

WINDOW: Final = 50

SEARCHED: Final = 2_000
"""Of the latest items, those among which a type is looked for: their types are in the index."""

READ: Final = 200
"""Of these, those whose bodies are read to look for a text."""


def show(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Items of `partition`, the latest or from the checkpoint `from` on: of streams in `category`, of `type`, and with
    `text` in their names, data or metadata, whatever its case, where these are named.
    """
    feed = deployment.feed
    tails = {each.partition: each for each in feed.partitions()}
    if not tails:
        return {"tails": {}, "partition": None}
    partition = whole(arguments, "partition", _fullest(tails.values()), 2**31)
    if partition not in tails:
        raise InvalidInput("partition", f"must be one of {', '.join(map(str, tails))}")
    names = ("category", "type", "text", "from")
    category, type_, text, start = (arguments.get(each, "").strip() for each in names)
    categories = [category] if category else None
    if start:
        page = feed.page(
            partition,
            start=parse_checkpoint(start),
            limit=WINDOW,
            categories=categories,
            predicate=(lambda span: type_ in span.types) if type_ else None,
            data=True,
        )
        items, following = [each for each in page.items if type_ in ("", each.type)], page.next
        looked = len(items)
    else:
        count = SEARCHED if type_ else READ if text else WINDOW
        found = latest(feed, tails[partition], count, categories=categories)
        looked = len(found)
        wanted = [each for each in found if type_ in ("", each.type)][-(READ if text else WINDOW) :]
        items = list(feed.items(partition, _spans(wanted)))[::-1]
        following = tails[partition].tail
    return {
        "tails": tails,
        "layouts": {each: layout_of(each).name for each in tails},
        "partition": partition,
        "category": category,
        "type": type_,
        "text": text,
        "start": start,
        "items": [each for each in items if _says(each, text.casefold())][:WINDOW],
        "looked": looked,
        "next": following,
    }


def _fullest(tails: Iterable[PartitionTail]) -> int:
    """Where a page begins that names no partition: where most has come, not at a layout that nobody uses."""
    return max(tails, key=lambda each: each.tail).partition


def _spans(items: Iterable[FeedItem]) -> list[Span]:
    """Items as spans: neighbours of one stream are read together."""
    spans: list[Span] = []
    for each in items:
        if spans and (spans[-1].stream, spans[-1].next) == (each.stream, each.index):
            spans[-1] = spans[-1]._replace(types=(*spans[-1].types, each.type))
        else:
            spans.append(Span(each.stream, each.index, (each.type,)))
    return spans


def _says(item: FeedItem, text: str) -> bool:
    if not text or text in f"{item.stream} {item.type}".casefold():
        return True
    bodies = (item.event.data, item.event.meta) if item.event is not None else ()
    return any(text in body(each).casefold() for each in bodies if each)
