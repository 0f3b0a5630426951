"""Commands that look around: streams by creation, and in the latest entries of the feed a search and a conversation.

No index of words or conversations is kept, so searches read the latest entries of the feed, and say how many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import click

from epochal.cli import output
from epochal.cli.inputs import NotThere
from epochal.cli.target import OpenedStore, on_store
from epochal.feed.conversations import CausedEvent, conversation, tree
from epochal.feed.events import FeedEvent
from epochal.feed.latest import latest
from epochal.feed.results import ListedStream
from epochal.index.checkpoints import parse_places
from epochal.layout.registry import layout_of
from epochal.lazy_dataclasses import asdict

ITEMS: Final = 500

items_option = click.option(
    "--items",
    type=click.IntRange(1, 100_000),
    default=ITEMS,
    show_default=True,
    help="Number of the latest entries of each partition that are searched.",
)


@click.command()
@click.argument("category", required=False)
@click.option("--prefix", default="", help="Prefix of the names of streams.")
@click.option(
    "--from",
    "start",
    help="Place where an earlier part ended, or an ISO 8601 time. The default is the beginning.",
)
@click.option("--backward", is_flag=True, help="List the newest stream first.")
@click.option(
    "--by-name", is_flag=True, help="List streams in the order of their names, instead of their creation."
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="List about this many streams.",
)
@on_store
def streams(
    store: OpenedStore,
    *,
    category: str | None,
    prefix: str,
    start: str | None,
    backward: bool,
    by_name: bool,
    limit: int,
) -> None:
    """List streams in the order of their creation, or by name.

    All streams are listed, or those of CATEGORY. The list is read from the index. The last line has the place at
    which the next part begins.
    """
    categories = None if category is None else [category]
    if by_name:
        if backward:
            raise click.UsageError("--backward applies to the order of creation, not to --by-name.")
        by_names = store.feed.streams_by_name(limit, after=start or "", categories=categories, prefix=prefix)
        _print_streams(by_names.streams, by_names.next or "", at_end=by_names.at_end)
        return
    places = None if start is None else parse_places(start, "--from")
    page, listed = None, list[ListedStream]()
    while page is None or not (page.at_end or len(listed) >= limit):
        page = store.feed.streams(
            limit - len(listed),
            start=places if page is None else page.next,
            direction="backward" if backward else "forward",
            categories=categories,
            prefix=prefix,
        )
        listed += page.streams
    _print_streams(listed, str(page.next), at_end=page.at_end)


def _print_streams(listed_streams: Sequence[ListedStream], following: str, *, at_end: bool) -> None:
    """Print a list of streams, and where the next list begins."""
    view = {"streams": [asdict(stream) for stream in listed_streams], "next": following, "atEnd": at_end}
    end = "no more" if at_end else f"next {following}"
    output.document(view, [*map(_listed_line, listed_streams), end])


def _listed_line(listed: ListedStream) -> str:
    return f"{listed.category:<16}  {listed.stream:<32}  {layout_of(listed.partition).name:<7}  {listed.created[:19]}"


@click.command()
@click.argument("words")
@items_option
@on_store
def search(store: OpenedStore, *, words: str, items: int) -> None:
    """Print the latest events that contain the text WORDS.

    Names of streams, types, ids, data and metadata are searched, regardless of case.
    """
    matches = (event for event in _events(store, items) if words.casefold() in _text(event))
    output.stream(matches, output.event, output.event_line)
    _say_how_far(items)


@click.command()
@click.argument("correlation_id")
@items_option
@on_store
def trace(store: OpenedStore, *, correlation_id: str, items: int) -> None:
    """Print the events with CORRELATION_ID as a tree of causes.

    An event, such as Order-1@3, also selects the conversation that it belongs to.
    """
    roots = tree(conversation(store.feed, correlation_id, items))
    if not roots:
        raise NotThere(
            f"{correlation_id}: no event among the last {items:,} entries of each partition has this correlation id "
            "or this place; --items looks further back"
        )
    view = {"id": correlation_id, "roots": [_view(root) for root in roots]}
    output.document(view, output.fitting(_lines(roots)))


def _events(store: OpenedStore, items: int) -> Iterator[FeedEvent]:
    """Yield the latest events of each partition."""
    for tail in store.feed.partitions():
        for item in latest(store.feed, tail, items, data=True):
            if item.event is not None:
                yield item.event


def _text(event: FeedEvent) -> str:
    """Return all text of an event, folded to lower case, for a search."""
    fields = (event.stream, event.type, event.correlation_id, event.causation_id, event.id)
    bodies = (output.body_text(text) for text in (event.data, event.meta) if text)
    return "\n".join(text for text in (*fields, *bodies) if text).casefold()


def _view(node: CausedEvent) -> dict[str, Any]:
    return {**output.event(node.event), "caused": [_view(effect) for effect in node.caused]}


def _lines(nodes: list[CausedEvent], indent: str = "") -> Iterator[str]:
    """Yield a line for each event of a tree of causes, indented below its cause."""
    for node in nodes:
        yield indent + output.event_line(node.event)
        yield from _lines(node.caused, f"{indent}  ")


def _say_how_far(items: int) -> None:
    """Print how many entries of each partition were searched."""
    click.echo(
        f"looked at the last {items:,} entries of each partition; --items looks further back", err=True
    )
