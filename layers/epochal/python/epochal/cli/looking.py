"""Commands that look around in what has come lately: streams by category, a search, a conversation.

No index of names, words or conversations is kept, so they read the latest entries of the feed, and say how many.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import click

from epochal.cli import output, views
from epochal.cli.errors import ConversationMissing
from epochal.cli.target import OpenedStore, pass_store
from epochal.feed.causes import CausedEvent, conversation, latest, tree
from epochal.feed.results import FeedEvent
from epochal.layout.registry import layout_of

ITEMS: Final = 500

items_option = click.option(
    "--items",
    type=click.IntRange(1, 100_000),
    default=ITEMS,
    show_default=True,
    help="Entries that are looked at, the latest of each partition.",
)


@click.command()
@click.argument("category", required=False)
@click.option("--prefix", default="", help="Only streams whose name begins so.")
@items_option
@output.json_option
@pass_store
def streams(store: OpenedStore, *, category: str | None, prefix: str, items: int, as_json: bool) -> None:
    """List the streams of the latest events, of one CATEGORY or all.

    Newest first; of each the category, the name, the layout, and the index of its last event.
    """
    found = (
        each
        for each in _streams(store, items)
        if each["stream"].startswith(prefix) and category in (None, each["category"])
    )
    output.stream(found, lambda each: each, _stream_line, as_json=as_json)
    _say_how_far(items)


@click.command()
@click.argument("words")
@items_option
@output.json_option
@pass_store
def search(store: OpenedStore, *, words: str, items: int, as_json: bool) -> None:
    """Find WORDS in the latest events.

    They are looked for in names of streams, types, data and metadata, whatever the case.
    """
    found = (each for each in _events(store, items) if words.casefold() in _text(each))
    output.stream(found, views.event, views.event_line, as_json=as_json)
    _say_how_far(items)


@click.command()
@click.argument("correlation_id")
@items_option
@output.json_option
@pass_store
def trace(store: OpenedStore, *, correlation_id: str, items: int, as_json: bool) -> None:
    """Print what belongs to CORRELATION_ID as a tree of causes.

    An event names its conversation too: Order-1@3.
    """
    roots = tree(conversation(store.feed, correlation_id, items))
    if not roots:
        raise ConversationMissing(correlation_id, items)
    view = {"id": correlation_id, "roots": [_view(each) for each in roots]}
    output.document(view, output.fitting(_lines(roots)), as_json=as_json)


def _streams(store: OpenedStore, items: int) -> Iterator[dict[str, Any]]:
    for at in store.feed.partitions():
        known = store.feed.categories(at.partition)
        seen: set[str] = set()
        for item in reversed(latest(store.feed, at, items)):
            if item.stream not in seen:
                seen.add(item.stream)
                yield {
                    "category": known.of(item.stream),
                    "stream": item.stream,
                    "layout": layout_of(at.partition).name,
                    "partition": at.partition,
                    "index": item.index,
                }


def _events(store: OpenedStore, items: int) -> Iterator[FeedEvent]:
    for at in store.feed.partitions():
        for item in latest(store.feed, at, items, data=True):
            if item.event is not None:
                yield item.event


def _stream_line(found: dict[str, Any]) -> str:
    return f"{found['category']:<16}  {found['stream']:<32}  {found['layout']:<7}  {found['index']:>6}"


def _text(event: FeedEvent) -> str:
    said = (event.stream, event.type, event.correlation_id, event.causation_id, event.id)
    bodies = (views.body_text(each) for each in (event.data, event.meta) if each)
    return "\n".join(each for each in (*said, *bodies) if each).casefold()


def _view(node: CausedEvent) -> dict[str, Any]:
    return {**views.event(node.event), "caused": [_view(each) for each in node.caused]}


def _lines(nodes: list[CausedEvent], indent: str = "") -> Iterator[str]:
    for each in nodes:
        yield indent + views.event_line(each.event)
        yield from _lines(each.caused, f"{indent}  ")


def _say_how_far(items: int) -> None:
    click.echo(
        f"looked at the last {items:,} entries of each partition; --items looks further back", err=True
    )
