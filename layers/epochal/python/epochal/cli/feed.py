"""Commands on the feed: look at it, follow it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import click

from epochal.cli import output, views
from epochal.cli.errors import PartitionMissing
from epochal.cli.inputs import Seconds
from epochal.cli.target import OpenedStore, pass_store
from epochal.errors import EventsPruned, InvalidInput, StreamDeleted
from epochal.feed.results import FeedItem
from epochal.index.checkpoints import BEGINNING, Checkpoint, parse_checkpoint
from epochal.model.events import Recorded

T = TypeVar("T")

POLL_SECONDS = 0.5
"""Between looks for something new: at most a read unit each."""


@click.command()
@click.argument("partition", type=click.IntRange(min=0), required=False)
@click.option(
    "--from", "start", default="0", help="A checkpoint: epoch@offset, or its integer; else the beginning."
)
@click.option(
    "--limit", type=click.IntRange(min=1), default=100, show_default=True, help="About so many items."
)
@click.option(
    "--category", "categories", multiple=True, help="Only streams of this category; may be repeated."
)
@click.option("--data", is_flag=True, help="Read the events too.")
@output.json_option
@pass_store
def feed(
    store: OpenedStore,
    *,
    partition: int | None,
    start: str,
    limit: int,
    categories: Sequence[str],
    data: bool,
    as_json: bool,
) -> None:
    """Print part of a PARTITION of the feed, or list the partitions.

    The checkpoint to go on from follows the part.
    """
    if partition is None:
        tails = store.feed.partitions()
        listed = {"partitions": [{"partition": each.partition, "tail": str(each.tail)} for each in tails]}
        output.document(listed, (f"{each.partition}  {each.tail}" for each in tails), as_json=as_json)
        return
    begin = parse_checkpoint(start, "--from")
    _check_there(store, [partition])
    page = store.feed.page(partition, start=begin, limit=limit, categories=categories or None, data=data)
    view: dict[str, Any] = {
        "partition": partition,
        "items": [views.item(each) for each in page.items],
        "next": str(page.next),
        "atTail": page.at_tail,
    }
    end = f"next {page.next}{', at the tail' if page.at_tail else ''}"
    output.document(view, [*map(views.item_line, page.items), end], as_json=as_json)


@click.command()
@click.argument("stream", required=False)
@click.option("--from", "start", help="An index of STREAM, or a checkpoint of the feed; else its end.")
@click.option(
    "--partition",
    "chosen",
    type=click.IntRange(min=0),
    multiple=True,
    help="Only this partition; may be repeated.",
)
@click.option(
    "--category", "categories", multiple=True, help="Only streams of this category; may be repeated."
)
@click.option("--data", is_flag=True, help="Read the feed's events too.")
@click.option("--for", "seconds", type=Seconds(min=0), help="Stop after so many seconds.")
@output.json_option
@pass_store
def tail(
    store: OpenedStore,
    *,
    stream: str | None,
    start: str | None,
    chosen: Sequence[int],
    categories: Sequence[str],
    data: bool,
    seconds: float | None,
    as_json: bool,
) -> None:
    """Follow STREAM, or the whole feed, until interrupted."""
    end = None if seconds is None else time.monotonic() + seconds
    if stream is not None:
        if chosen or categories or data:
            raise click.UsageError("--partition, --category and --data are for the feed, not for a STREAM.")
        events = _waiting(_follow_stream(store, stream, start), end)
        output.stream(events, views.event, views.event_line, as_json=as_json)
        return
    _check_there(store, chosen)
    items = _waiting(_follow_feed(store, start, chosen, categories, data=data), end)
    output.stream(items, views.item, views.item_line, as_json=as_json)


def _check_there(store: OpenedStore, chosen: Sequence[int]) -> None:
    """A reader of a mistyped partition would wait for ever."""
    known = [each.partition for each in store.feed.partitions()] if chosen else []
    for number in chosen:
        if number not in known:
            raise PartitionMissing(number, known)


def _waiting(looks: Iterator[Sequence[T]], end: float | None) -> Iterator[T]:
    """What successive looks find, with a pause after each that finds nothing."""
    for found in looks:
        yield from found
        if end is not None and time.monotonic() >= end:
            return
        if not found:
            time.sleep(POLL_SECONDS)


def _follow_stream(store: OpenedStore, stream: str, start: str | None) -> Iterator[tuple[Recorded, ...]]:
    at = store.streams.page(stream, limit=1).version if start is None else _index(start)
    # As for a read: what was pruned before this one began is where a stream begins, unless an archive should have it.
    begun = start is None or store.streams.archive is not None
    while True:
        page = store.streams.page(stream, start=at)
        if page.deleted:
            raise StreamDeleted(stream, page.version)
        if begun and page.hole is not None:
            raise EventsPruned(stream, page.hole.first, page.hole.end)
        if page.events:
            at, begun = page.events[-1].index + 1, True
        yield page.events


def _follow_feed(
    store: OpenedStore, start: str | None, chosen: Sequence[int], categories: Sequence[str], *, data: bool
) -> Iterator[list[FeedItem]]:
    """Looks at every partition in turn; those that appear later are followed from their beginning."""
    tails = {each.partition: each.tail for each in store.feed.partitions()}
    first = None if start is None else parse_checkpoint(start, "--from")
    at: dict[int, Checkpoint] = {number: found if first is None else first for number, found in tails.items()}
    while True:
        found: list[FeedItem] = []
        for number in chosen or _numbers(store, at):
            page = store.feed.page(
                number, start=at.get(number, BEGINNING), categories=categories or None, data=data
            )
            at[number] = page.next
            found += page.items
        yield found


def _numbers(store: OpenedStore, known: dict[int, Checkpoint]) -> Sequence[int]:
    """Partitions there are; asked for while there are none yet."""
    return list(known) or [each.partition for each in store.feed.partitions()]


def _index(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise InvalidInput("--from", "must be an index of the stream")
    return int(text)
