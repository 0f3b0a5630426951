"""Commands on the feed: print parts of it, follow it, and wait for a stream to appear in it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import click

from epochal.cli import output
from epochal.cli.inputs import NotThere, Seconds
from epochal.cli.target import OpenedStore, on_store
from epochal.errors import EventsPruned, InvalidInput, StreamDeleted
from epochal.feed.results import FeedItem
from epochal.feed.waiting import Pauses
from epochal.index.checkpoints import BEGINNING, FeedStart, parse_place, parse_position
from epochal.model.events import Recorded
from epochal.plugins import NATIVE

T = TypeVar("T")

CATEGORIES = click.option(
    "--category",
    "categories",
    multiple=True,
    help="Category of the streams. May be repeated. The default is all categories.",
)
FOR = click.option(
    "--for",
    "seconds",
    type=Seconds(min=0),
    help="Stop after this many seconds. The default is to run until interrupted.",
)

POLL_SECONDS = 0.5
"""Between looks for something new: at most a read unit each."""


@click.command()
@click.argument("partition", type=click.IntRange(min=0), required=False)
@click.option(
    "--from",
    "start",
    default="beginning",
    help="Place to begin at: a checkpoint, an ISO 8601 time, tail, or beginning, which is the default.",
)
@click.option(
    "--limit", type=click.IntRange(min=1), default=100, show_default=True, help="Print about this many items."
)
@CATEGORIES
@click.option("--data", is_flag=True, help="Read the events as well, and print their data.")
@on_store
def feed(
    store: OpenedStore,
    *,
    partition: int | None,
    start: str,
    limit: int,
    categories: Sequence[str],
    data: bool,
) -> None:
    """Print part of a PARTITION of the feed, or list all partitions.

    The last line has the checkpoint at which the next part begins.
    """
    if partition is None:
        tails = store.feed.partitions()
        listed = {"partitions": [{"partition": tail.partition, "tail": str(tail.tail)} for tail in tails]}
        output.document(listed, (f"{tail.partition}  {tail.tail}" for tail in tails))
        return
    begin = parse_place(start, "--from")
    _check_there(store, [partition])
    chosen = categories or None
    page = store.feed.page(partition, start=begin, limit=limit, categories=chosen, data=data, removals=True)
    view: dict[str, Any] = {
        "partition": partition,
        "items": [output.item(item) for item in page.items],
        "next": str(page.next),
        "atTail": page.at_tail,
    }
    end = f"next {page.next}{', at the tail' if page.at_tail else ''}"
    output.document(view, [*map(output.item_line, page.items), end])


@click.command()
@click.option("--before", help="Position where an earlier part ended. The default is the end of the feed.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Print about this many items."
)
@CATEGORIES
@click.option("--data", is_flag=True, help="Read the events as well, and print their data.")
@on_store
def newest(
    store: OpenedStore, *, before: str | None, limit: int, categories: Sequence[str], data: bool
) -> None:
    """Print the newest items of the feed, newest first.

    The last line has the position before which the next part ends.
    """
    start = None if before is None else parse_position(before, "--before")
    page = store.feed.newest(limit, before=start, categories=categories or None, data=data)
    view = {
        "items": [output.item(item) for item in page.items],
        "next": str(page.next),
        "atBeginning": page.at_beginning,
    }
    end = "at the beginning" if page.at_beginning else f"next {page.next}"
    output.document(view, [*map(output.item_line, page.items), end])


@click.command(short_help="Wait until the feed has the events of STREAM up to VERSION.")
@click.argument("stream")
@click.argument("version", type=click.IntRange(min=1))
@click.option(
    "--for",
    "seconds",
    type=Seconds(min=0),
    default=10.0,
    help="Wait at most this many seconds. The default is 10.",
)
@click.option("--source", default=NATIVE, show_default=True, help="Layout that STREAM is stored in.")
@on_store
def wait(store: OpenedStore, *, stream: str, version: int, seconds: float, source: str) -> None:
    """Wait until the feed has STREAM up to VERSION; print the position.

    The position is the one after these events. The exit code is 1 if they do not reach the feed in time.
    """
    position = store.feed.wait_for(stream, version, source=source, seconds=seconds)
    output.document(
        {"position": None if position is None else str(position)},
        ["not yet" if position is None else str(position)],
    )
    if position is None:
        sys.exit(1)


@click.command()
@click.argument("stream", required=False)
@click.option(
    "--from",
    "start",
    help="Index of STREAM, or checkpoint or ISO 8601 time of the feed, to begin at. The default is the end.",
)
@click.option(
    "--partition",
    "chosen",
    type=click.IntRange(min=0),
    multiple=True,
    help="Partition of the feed. May be repeated. The default is all partitions.",
)
@CATEGORIES
@click.option("--data", is_flag=True, help="Read the events of the feed as well, and print their data.")
@click.option(
    "--within",
    type=Seconds(min=0),
    help="Hold events back for this many seconds, and print those of all partitions in the order of their writes.",
)
@FOR
@on_store
def tail(
    store: OpenedStore,
    *,
    stream: str | None,
    start: str | None,
    chosen: Sequence[int],
    categories: Sequence[str],
    data: bool,
    within: float | None,
    seconds: float | None,
) -> None:
    """Print new events of STREAM or the feed until interrupted."""
    end = None if seconds is None else time.monotonic() + seconds
    if stream is not None:
        if chosen or categories or data or within is not None:
            raise click.UsageError(
                "--partition, --category, --data and --within apply to the feed, not to a STREAM."
            )
        events = _waiting(_follow_stream(store, stream, start), end)
        output.stream(events, output.event, output.event_line)
        return
    _check_there(store, chosen)
    if within is None:
        looks: Iterator[Sequence[FeedItem]] = _follow_feed(store, start, chosen, categories, data=data)
    else:
        looks = _follow_in_order(store, start, chosen, categories, within)
    items = _waiting(looks, end)
    output.stream(items, output.item, output.item_line)


def _check_there(store: OpenedStore, chosen: Sequence[int]) -> None:
    """Raise `NotThere` if one of the chosen partitions does not exist.

    A reader of a mistyped partition would wait for ever.
    """
    existing = [partition.partition for partition in store.feed.partitions()] if chosen else []
    for number in chosen:
        if number not in existing:
            listed = ", ".join(map(str, existing)) or "none yet"
            raise NotThere(f"the feed has no partition {number}; it has {listed}")


def _waiting(looks: Iterator[Sequence[T]], end: float | None) -> Iterator[T]:
    """Yield the items of repeated reads one by one until `end`; pause ever longer after empty reads."""
    pauses = Pauses(POLL_SECONDS)
    for look in looks:
        yield from look
        if end is not None and time.monotonic() >= end:
            return
        if look:
            pauses = Pauses(POLL_SECONDS)
        else:
            time.sleep(pauses.longer())


def _follow_stream(store: OpenedStore, stream: str, start: str | None) -> Iterator[tuple[Recorded, ...]]:
    """Yield what each read of a stream finds new, endlessly; raise if events are deleted or pruned."""
    next_index = store.streams.page(stream, limit=1).version if start is None else _index(start)
    # As for a read: what was pruned before this one began is where a stream begins, unless an archive should have it.
    begun = start is None or store.streams.archive is not None
    while True:
        page = store.streams.page(stream, start=next_index)
        if page.deleted:
            raise StreamDeleted(stream, page.version)
        if begun and page.hole is not None:
            raise EventsPruned(stream, page.hole.first, page.hole.end)
        if page.events:
            next_index, begun = page.events[-1].index + 1, True
        yield page.events


def _follow_feed(
    store: OpenedStore, start: str | None, chosen: Sequence[int], categories: Sequence[str], *, data: bool
) -> Iterator[Sequence[FeedItem]]:
    """Yield the feed's new items, read by read; partitions that appear later begin at their beginning."""
    tails = {partition.partition: partition.tail for partition in store.feed.partitions()}
    first = None if start is None else parse_place(start, "--from")
    starts: dict[int, FeedStart] = {
        number: items if first is None else first for number, items in tails.items()
    }
    while True:
        items: list[FeedItem] = []
        for number in chosen or _numbers(store, starts):
            page = store.feed.page(
                number,
                start=starts.get(number, BEGINNING),
                categories=categories or None,
                data=data,
                removals=True,
            )
            starts[number] = page.next
            items += page.items
        yield items


def _follow_in_order(
    store: OpenedStore, start: str | None, chosen: Sequence[int], categories: Sequence[str], within: float
) -> Iterator[Sequence[FeedItem]]:
    """Yield the new events of all chosen partitions in one order, one read after another."""
    pages = store.feed.ordered(
        within=within,
        start="tail" if start is None else parse_place(start, "--from"),
        partitions=chosen or None,
        follow=True,
        wait=0.0,
        categories=categories or None,
    )
    for page in pages:
        yield page.items


def _numbers(store: OpenedStore, partitions: dict[int, FeedStart]) -> Sequence[int]:
    """Return the numbers of the known partitions; read them if none is known."""
    return list(partitions) or [partition.partition for partition in store.feed.partitions()]


def _index(text: str) -> int:
    """Parse an index of a stream; raise `InvalidInput` if it is not a number."""
    if not text.isascii() or not text.isdigit():
        raise InvalidInput("--from", "must be an index of the stream")
    return int(text)
