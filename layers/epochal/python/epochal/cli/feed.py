"""Commands on the feed: look at it, follow it, search what has come lately, and watch how far behind reactions are."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table

from epochal.care.status import PartitionStanding, groups_of
from epochal.cli import index, output
from epochal.cli.inputs import NotThere, Seconds
from epochal.cli.target import OpenedStore, on_store
from epochal.errors import EventsPruned, InvalidInput, StreamDeleted
from epochal.feed.conversations import CausedEvent, conversation, tree
from epochal.feed.events import FeedEvent
from epochal.feed.latest import latest
from epochal.feed.results import FeedItem, ListedStream
from epochal.feed.waiting import Pauses
from epochal.index.checkpoints import BEGINNING, FeedStart, parse_place, parse_places, parse_position
from epochal.layout.registry import layout_of
from epochal.lazy_dataclasses import asdict, dataclass, field
from epochal.model.events import Recorded
from epochal.model.quantities import quantity
from epochal.plugins import NATIVE
from epochal.reactions.steering import GroupFigures

# Commands on the feed: look at it, follow it.

T = TypeVar("T")

CATEGORIES = click.option(
    "--category", "categories", multiple=True, help="Only streams of this category; may be repeated."
)
FOR = click.option("--for", "seconds", type=Seconds(min=0), help="Stop after so many seconds.")

POLL_SECONDS = 0.5
"""Between looks for something new: at most a read unit each."""


@click.command()
@click.argument("partition", type=click.IntRange(min=0), required=False)
@click.option(
    "--from", "start", default="beginning", help="A checkpoint, a moment, or tail; else the beginning."
)
@click.option(
    "--limit", type=click.IntRange(min=1), default=100, show_default=True, help="About so many items."
)
@CATEGORIES
@click.option("--data", is_flag=True, help="Read the events too.")
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
    """Print part of a PARTITION of the feed, or list the partitions.

    The checkpoint to go on from follows the part.
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
@click.option("--before", help="A position, where an earlier part has ended.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="About so many items."
)
@CATEGORIES
@click.option("--data", is_flag=True, help="Read the events too.")
@on_store
def newest(
    store: OpenedStore, *, before: str | None, limit: int, categories: Sequence[str], data: bool
) -> None:
    """Print the newest items of the feed, newest first.

    The position to go on before follows them.
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


@click.command()
@click.argument("stream")
@click.argument("version", type=click.IntRange(min=1))
@click.option("--for", "seconds", type=Seconds(min=0), default=10.0, help="Wait so many seconds; else 10.")
@click.option("--source", default=NATIVE, show_default=True, help="The layout that STREAM is stored in.")
@on_store
def wait(store: OpenedStore, *, stream: str, version: int, seconds: float, source: str) -> None:
    """Wait until STREAM is in the feed, up to VERSION.

    Prints the position behind its events. Where they are not there in time, the exit code is 1.
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
@click.option("--from", "start", help="An index of STREAM, a checkpoint or moment of the feed; else its end.")
@click.option(
    "--partition",
    "chosen",
    type=click.IntRange(min=0),
    multiple=True,
    help="Only this partition; may be repeated.",
)
@CATEGORIES
@click.option("--data", is_flag=True, help="Read the feed's events too.")
@click.option(
    "--within",
    type=Seconds(min=0),
    help="Read them, held back for so many seconds: in the order of their writes.",
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
    """Follow STREAM, or the whole feed, until interrupted."""
    end = None if seconds is None else time.monotonic() + seconds
    if stream is not None:
        if chosen or categories or data or within is not None:
            raise click.UsageError(
                "--partition, --category, --data and --within are for the feed, not for a STREAM."
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
    """Yield what repeated reads return, with a growing pause after each that returns nothing."""
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
    """Yield the new events of a stream, one read after another; fail if it is deleted or pruned."""
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
    """Looks at every partition in turn; those that appear later are followed from their beginning."""
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


def _numbers(store: OpenedStore, known: dict[int, FeedStart]) -> Sequence[int]:
    """Return the numbers of the known partitions; read them if none is known."""
    return list(known) or [partition.partition for partition in store.feed.partitions()]


def _index(text: str) -> int:
    """Parse an index of a stream; raise `InvalidInput` if it is not a number."""
    if not text.isascii() or not text.isdigit():
        raise InvalidInput("--from", "must be an index of the stream")
    return int(text)


# Commands that look around: streams by creation, and in what has come lately a search, a conversation.
#
# No index of words or conversations is kept, so those read the latest entries of the feed, and say how many.

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
@click.option("--from", "start", help="Where a part has ended, or a moment; else the beginning.")
@click.option("--backward", is_flag=True, help="The newest first.")
@click.option("--by-name", is_flag=True, help="In the order of their names.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=100, show_default=True, help="About so many streams."
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
    """List streams, all or those of CATEGORY, as they were created.

    It reads through the index. Where to go on from follows them.
    """
    categories = None if category is None else [category]
    if by_name:
        if backward:
            raise click.UsageError("--backward is for streams as they were created.")
        named = store.feed.streams_by_name(limit, after=start or "", categories=categories, prefix=prefix)
        _print_streams(named.streams, named.next or "", at_end=named.at_end)
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


def _print_streams(found: Sequence[ListedStream], following: str, *, at_end: bool) -> None:
    """Print a list of streams, and where the next list begins."""
    view = {"streams": [asdict(stream) for stream in found], "next": following, "atEnd": at_end}
    end = "no more" if at_end else f"next {following}"
    output.document(view, [*map(_listed_line, found), end])


def _listed_line(each: ListedStream) -> str:
    return f"{each.category:<16}  {each.stream:<32}  {layout_of(each.partition).name:<7}  {each.created[:19]}"


@click.command()
@click.argument("words")
@items_option
@on_store
def search(store: OpenedStore, *, words: str, items: int) -> None:
    """Find WORDS in the latest events.

    They are looked for in names of streams, types, data and metadata, whatever the case.
    """
    matches = (event for event in _events(store, items) if words.casefold() in _text(event))
    output.stream(matches, output.event, output.event_line)
    _say_how_far(items)


@click.command()
@click.argument("correlation_id")
@items_option
@on_store
def trace(store: OpenedStore, *, correlation_id: str, items: int) -> None:
    """Print what belongs to CORRELATION_ID as a tree of causes.

    An event names its conversation too: Order-1@3.
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


# `watch`: how far the feed is, and how far behind it reactions are, again and again.

LEAST: Final = 0.2


@click.command()
@index.GROUPS
@index.ALL_GROUPS
@click.option(
    "--every", type=Seconds(min=LEAST), default=2.0, show_default=True, help="Seconds between looks."
)
@FOR
@on_store
def watch(
    store: OpenedStore, *, groups: Sequence[str], all_groups: bool, every: float, seconds: float | None
) -> None:
    """Show live how far the feed is, and reactions behind it.

    A look reads the entries of the index that each group is behind, and counts the events that it reads. Without a
    terminal each look is a line for each partition and group.
    """
    named = groups_of(store.feed.driver, store.feed.table) if all_groups else list(groups)
    snapshots = looks(store, named, every, seconds)
    if output.as_json():
        output.stream(snapshots, lambda look: {"partitions": look.view()}, lambda _: "")
        return
    console = Console(highlight=False)
    if not console.is_terminal:
        output.stream((row for look in snapshots for row in look.rows()), lambda row: row, _row)
        return
    with Live(console=console, auto_refresh=False) as live:
        for look in snapshots:
            live.update(look.table(), refresh=True)


def _row(cells: Sequence[str]) -> str:
    return "  ".join(cells).rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What there was at one moment.

    Attributes:
        partitions: state of each partition, and of the groups in it.
        figures: figures of the groups, by group and partition.
        late: seconds for which each group in a partition has been behind, as far as was seen.
    """

    partitions: tuple[PartitionStanding, ...]
    figures: index.Figures = field(default_factory=dict)
    late: dict[tuple[str, int], float] = field(default_factory=dict)

    def view(self) -> list[dict[str, Any]]:
        """Return the look as JSON, in the form of `index status`, with the seconds of delay."""
        views = [index.standing(partition, self.figures) for partition in self.partitions]
        for partition in views:
            for group in partition["groups"]:
                group["seconds"] = round(self.late[group["group"], partition["partition"]], 1)
        return views

    def rows(self) -> Iterator[tuple[str, str, str, str, str]]:
        """Yield a row for each partition, and one for each group in it."""
        for partition in self.partitions:
            yield (f"{partition.source} {partition.partition}", str(partition.tail), "", "", "")
            for group in partition.groups:
                figures = self.figures[group.group, partition.partition]
                late = self.late[group.group, partition.partition]
                yield (
                    f"  {group.group}",
                    str(group.checkpoint),
                    _lag(figures),
                    f"for {late:,.0f} s" if figures.events else "",
                    f"{group.parked:,} parked" if group.parked else "",
                )

    def table(self) -> Table:
        """Make a table of the rows for the terminal."""
        shown = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for style in ("bold", "", "yellow", "yellow", "red"):
            shown.add_column(style=style)
        for row in self.rows():
            shown.add_row(*row)
        return shown


def _lag(figures: GroupFigures) -> str:
    """Return how many events a group is behind in a partition, in words."""
    if figures.events is None:
        return "beyond the end"
    if not figures.events:
        return "at the end of the index"
    return f"{quantity(figures.events)} behind{', of all events' if figures.of_all else ''}"


def looks(store: OpenedStore, groups: Sequence[str], every: float, seconds: float | None) -> Iterator[Look]:
    """Read tails and checkpoints again and again; yield each look, with how long groups have been behind.

    This time counts from the last look that found the group not behind.
    """
    end = None if seconds is None else time.monotonic() + seconds
    even: dict[tuple[str, int], float] = {}
    while True:
        partitions, figures = index.read_partitions(store, groups)
        now = time.monotonic()
        late = {}
        for key, figure in figures.items():
            if not figure.events or key not in even:
                even[key] = now
            late[key] = now - even[key]
        yield Look(partitions=partitions, figures=figures, late=late)
        if end is not None and now >= end:
            return
        time.sleep(every)
