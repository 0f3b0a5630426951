"""Commands on tagged events: append on a condition, query, look at one, list them, import a history.

A query is `--type` and `--tag`, which make one item of it, or `--query`, which is one in the HTTP API's form.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

import click

from epochal.cli import inputs, output
from epochal.cli.inputs import Unsound, must_be_named, there
from epochal.cli.output import body_text, no_link
from epochal.cli.target import OpenedStore, given
from epochal.errors import EpochalError
from epochal.http import tag_views, tagged_requests, tagged_views
from epochal.http.nodes import Node, required, time_of
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.events import Event, Recorded
from epochal.model.outcomes import Appended, Conflict
from epochal.model.position_text import read_position, write_position
from epochal.model.positions import Position
from epochal.model.quantities import quantity
from epochal.model.tag_answers import BackwardPage, TagCount, TaggedPage, Takes
from epochal.model.tags import Query, parse_event_id, parse_place
from epochal.store.driver import Meter
from epochal.store.listings import Listings, listings_of, until_whole
from epochal.store.tagged import TaggedStore
from epochal.store.tagged_importer import Imported, ImportedEvent

PAGE = 1_000
"""Events of a query that are asked for at a time."""

NAMED = 3
"""Events in the way that an error names."""


@click.group()
def tagged() -> None:
    """Append and query events by their tags."""


def _with_tags(store: OpenedStore) -> OpenedStore:
    """Return the store, after checking that its tables of tagged events are named."""
    for kind in store.tagged_in:
        table = {f"{kind}_table": store.deployment.settings.table(kind)}
        must_be_named("is needed for tagged events", **table)
    return store


on_tagged_store = given(_with_tags)
on_tagged = given(lambda store: _with_tags(store).tagged)


def one_event(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options `--tag`, `--id`, `--meta` and `--events` to a command that appends; return it."""
    for option in (
        click.option(
            "--events",
            "source",
            help="Events to append, in the form of the HTTP API: a JSON array, or JSON lines.",
        ),
        click.option("--meta", help="Metadata of the event: JSON text, @file, or - for standard input."),
        click.option(
            "--id",
            "event_id",
            help="Id of the event, a UUID. An event that is sent again with the same id is stored once.",
        ),
        click.option(
            "--tag",
            "tags",
            multiple=True,
            help="Tag of the event, which says what it concerns. May be repeated.",
        ),
    ):
        command = option(command)
    return command


def conditional(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options `--fail-if`, `--after` and `--key` to a command that appends; return it."""
    fail_if = "Append only if no event with tags matches this query, in the form of the HTTP API."
    for option in (
        click.option(
            "--key",
            help="Idempotency key. A repeated call with the same key has no effect, and gets the "
            "answer of the first.",
        ),
        click.option(
            "--after",
            help="Position after which matching events fail --fail-if. Without it, all matching events do.",
        ),
        click.option("--fail-if", "condition", help=fail_if),
    ):
        command = option(command)
    return command


@tagged.command()
@click.argument("type", required=False)
@click.argument("data", required=False)
@one_event
@conditional
@on_tagged_store
def append(
    opened: OpenedStore,
    *,
    type: str | None,  # noqa: A002  the argument's name, as users see it
    data: str | None,
    tags: Sequence[str],
    event_id: str | None,
    meta: str | None,
    source: str | None,
    condition: str | None,
    after: str | None,
    key: str | None,
) -> None:
    """Append an event of TYPE, or --events, unless --fail-if matches.

    The event of TYPE has the body DATA. All events are appended in one transaction. DATA, --events and --fail-if
    are JSON text, @file, or - for standard input.
    """
    if (type is None) == (source is None):
        raise click.UsageError("Give either TYPE (and DATA) or --events.")
    if source is not None and (tags or event_id or meta):
        raise click.UsageError("--tag, --id and --meta belong to a single event; --events carry their own.")
    single = Event(
        type=type or "",
        data=inputs.body_of("null" if data is None else data, "DATA"),
        meta=inputs.body_of(meta, "--meta"),
        tags=tuple(tags),
        id=event_id,
    )
    events = inputs.several_of(source, opened.event_of) if source else [single]
    store, meter = opened.tagged, Meter()
    fail_if = None if condition is None else query_of(store, condition, "--fail-if")
    measured = replace(store, driver=replace(store.driver, meter=meter))
    outcome = _append_or_fail(measured, events, fail_if, position_of(after), key)
    view = tagged_views.build_append_view(outcome, meter.units)
    again = ", appended before" if outcome.replayed else ""
    count = f"{quantity(len(events))}{again}"
    position = [f"position {view['position']}"] if fail_if is not None else []
    output.document(view, [count, *position])


@tagged.command()
@click.option(
    "--type",
    "types",
    multiple=True,
    help="Type of the events. May be repeated for events of any of these types.",
)
@click.option(
    "--tag",
    "tags",
    multiple=True,
    help="Tag of the events. May be repeated for events with all of these tags.",
)
@click.option("--query", "source", help="Query in the form of the HTTP API, instead of --type and --tag.")
@click.option("--after", help="Print only events after this position. The default is the beginning.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    help="Print at most this many events, and no position to append after. The default is all.",
)
@click.option(
    "--backward", is_flag=True, help="Print the newest event first; with --limit, only the last events."
)
@on_tagged
def query(
    store: TaggedStore,
    *,
    types: Sequence[str],
    tags: Sequence[str],
    source: str | None,
    after: str | None,
    limit: int | None,
    backward: bool,
) -> None:
    """Print events that match a query, and the position to append after."""
    if (source is not None) == bool(types or tags):
        raise click.UsageError("Give either --query or --type and --tag.")
    query = query_of(store, source, "--query") if source else _item_of(store, types, tags)
    read = _Read(store=store, query=query, after=position_of(after), limit=limit, backward=backward)
    output.stream(read.events(), shown, line)
    if read.position is not None:
        position = write_position(read.position)
        output.document({"position": position}, [f"position {position}"])


@tagged.command()
@click.argument("event_id", metavar="ID")
@on_tagged
def event(store: TaggedStore, *, event_id: str) -> None:
    """Print the event with this ID."""
    stored = there(
        store.event(parse_event_id(event_id, "ID")), f"{event_id}: there is no such event, or it has expired"
    )
    view = shown(stored)
    rows = [
        (name, " ".join(value) if name == "tags" else value)
        for name, value in tagged_views.build_event_frame(stored).items()
    ]
    bodies = [("data", body_text(stored.data)), *([("meta", body_text(stored.meta))] if stored.meta else [])]
    output.document(view, output.table([*rows, *bodies]))


def shown(recorded: Recorded) -> dict[str, Any]:
    """Convert an event to JSON, as the HTTP API shows it."""
    return tagged_views.build_event_view(recorded, no_link)


def line(recorded: Recorded) -> str:
    """Describe an event in one line."""
    return (
        f"{recorded.timestamp[:19]}  {recorded.type}  {' '.join(recorded.tags)}  {body_text(recorded.data)}"
    )


@dataclass(slots=True, kw_only=True)
class _Read:
    """A query, page by page. Once all is taken, `position` is known, unless a limit cut it short forward."""

    store: TaggedStore
    query: Query
    after: Position | None
    limit: int | None
    backward: bool = False
    position: Position | None = field(default=None, init=False)

    def events(self) -> Iterator[Recorded]:
        """Yield the matching events, page by page, up to the limit; keep the position of the last page."""
        next_page: Callable[..., TaggedPage | BackwardPage] = (
            self.store.page_back if self.backward else self.store.page
        )
        remaining, rest = self.limit, None
        while remaining is None or remaining > 0:
            limit = PAGE if remaining is None else min(PAGE, remaining)
            page = next_page(self.query, after=self.after, rest=rest, takes=_room(limit), limit=limit)
            yield from page.events
            rest, self.position = page.rest, page.position
            remaining = None if remaining is None else remaining - len(page.events)
            if rest is None:
                return


def _room(limit: int) -> Takes:
    """Return a function that accepts `limit` events, one a call, and then returns false."""
    room = iter(range(limit))
    return lambda _: next(room, None) is not None


def _append_or_fail(
    store: TaggedStore,
    events: Sequence[Event],
    fail_if: Query | None,
    after: Position | None,
    key: str | None,
) -> Appended:
    """Append events, and return the outcome; raise `Unsound` if matching events refuse them."""
    match store.try_append(events, fail_if=fail_if, after=after, takes=_room(NAMED), idempotency_key=key):
        case Appended() as appended:
            return appended
        case Conflict(events=matching, more=more):
            names = ", ".join(f"{event.type} {event.id}" for event in matching)
            rest = " and others" if more else ""
            raise Unsound(
                f"not appended: --fail-if matches {names}{rest}; query again, and append after the new position"
            )


def query_of(store: TaggedStore, source: str, option: str) -> Query:
    """Read a query in the form of the HTTP API."""
    return tagged_requests.query_of(Node(inputs.json_of(source, option), option), store)


def _item_of(store: TaggedStore, types: Sequence[str], tags: Sequence[str]) -> Query:
    item = {"types": list(types), "tags": list(tags)}
    return tagged_requests.query_of(Node({"items": [item]}, "query"), store)


def position_of(after: str | None) -> Position | None:
    """Read a position that a command has printed; None if there is none."""
    return None if after is None else read_position(after, "--after")


# Lists of tagged events: all of them or a tag's, tags and their counts, and how many there are.

SINCE = click.option("--since", help="Print only events after this place. The default is the beginning.")


@tagged.command()
@click.argument("tag", required=False)
@SINCE
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    help="Stop after this many events, rounded up to all events of one place. The default is all.",
)
@on_tagged
def read(store: TaggedStore, *, tag: str | None, since: str | None, limit: int | None) -> None:
    """Print the events of TAG, or all tagged events, in order.

    All events are read from their own stream, if there is one. In Sekiban's tables they are read from an index,
    which lags by moments.
    """
    listings, first = listings_of(store), _place(since)
    read_events = (
        listings.all_events(since=first, max_count=limit)
        if tag is None
        else until_whole(listings.tagged(tag, since=first), limit or sys.maxsize)
    )
    output.stream(read_events, shown, line)


@tagged.command()
@click.argument("group", required=False)
@click.option("--groups", is_flag=True, help="List groups with their numbers of tags, instead of tags.")
@on_tagged
def tags(store: TaggedStore, *, group: str | None, groups: bool) -> None:
    """Print the tags of GROUP, or all, with event counts; or all groups.

    The whole table of tags is read. In Sekiban's tables, the tags of a group are read from an index.
    """
    if groups and group is not None:
        raise click.UsageError("--groups lists all groups.")
    listings = listings_of(store)
    if groups:
        with output.progress("reading the table"):
            counted = listings.groups()
        output.stream(
            counted,
            lambda count: {"group": count.group, "tags": count.tags},
            lambda count: f"{count.group}  {count.tags:,}",
        )
        return
    output.stream(_tags(listings, group), tag_views.TAG_COUNT, lambda count: f"{count.tag}  {count.events:,}")


@tagged.command()
@click.argument("name", metavar="TAG")
@on_tagged
def tag(store: TaggedStore, *, name: str) -> None:
    """Print the number of events of TAG, and the latest of them."""
    listings = listings_of(store)
    latest = there(listings.latest(name), f"{name}: no event has this tag")
    (count,) = listings.counted([name])
    view = tag_views.build_tag_view(count, latest)
    rows = [
        ("tag", count.tag),
        ("events", count.events),
        ("latest", f"{latest.created_at[:19]}  {latest.event_type}  {latest.event_id}"),
    ]
    output.document(view, output.table(rows))


@tagged.command()
@SINCE
@on_tagged
def count(store: TaggedStore, *, since: str | None) -> None:
    """Count tagged events, all of them or those after a place.

    The count is that of the stream of all events, if there is one. In Sekiban's tables, the index of all events
    is read.
    """
    with output.progress("counting") as tell:
        total = listings_of(store).count(
            since=_place(since), progress=lambda so_far: tell(f"{so_far:,} events")
        )
    output.document({"events": total}, [f"{total:,}"])


def _tags(listings: Listings, group: str | None) -> list[TagCount]:
    """List the tags of a group, or all tags with a progress line."""
    if group is not None:
        return listings.tags(group)
    with output.progress("reading the table") as tell:
        return listings.all_tags(progress=lambda so_far: tell(f"{so_far:,} tags"))


def _place(since: str | None) -> str | None:
    return None if since is None else parse_place(since, "--since")


# The import of a history of tagged events, a line each, which can be run again.


@tagged.command("import")
@click.argument("source", metavar="FILE")
@click.option(
    "--skip",
    type=click.IntRange(min=0),
    default=0,
    help="Skip this many events at the beginning of FILE, which "
    "an earlier run has handled. The default is 0.",
)
@on_tagged_store
def import_(store: OpenedStore, *, source: str, skip: int) -> None:
    """Append the JSON lines of FILE as events, unless stored already.

    The events are in the order of time, as `read --json` prints them. FILE may be - for standard input.

    The events are not appended in one transaction. Run the command again after an interruption: events that are
    stored already are skipped.
    """
    imported = Imported(read=skip)

    def heard(so_far: Imported) -> None:
        """Keep the counts so far, and show them."""
        nonlocal imported
        imported = so_far
        tell(f"{so_far.read:,} events, {so_far.found:,} of them already stored")

    lines = sys.stdin.buffer if source == "-" else inputs.opened(source, "FILE")
    with lines, output.progress("importing") as tell:
        try:
            imported = store.importer(store=store.tagged).run(
                _imported_lines(lines, store.event_of), after=imported, progress=heard
            )
        except EpochalError as error:
            on = f"the first {imported.read:,} events are stored: continue with --skip {imported.read}"
            raise Unsound(f"{error} ({on})") from error
    view = {
        "read": imported.read,
        "written": imported.written,
        "found": imported.found,
        "renumbered": imported.renumbered,
    }
    output.document(view, output.table(view.items()))


def _imported_lines(lines: IO[bytes], read: Callable[[Node], Event]) -> Iterator[ImportedEvent]:
    """Yield the events of the lines; skip empty lines and, with a warning, events that are in streams.

    Those come with their streams.
    """
    homed = 0
    for number, text in enumerate(lines, 1):
        if text.strip():
            place = f"line {number}"
            node = Node(inputs.parsed(text, place), place)
            if isinstance(node.value, dict) and "stream" in node.value:
                homed += 1
            else:
                yield _imported(node, read)
    if homed:
        count = quantity(homed)
        click.echo(f"warning: left out {count} of streams: use `epochal copy` for these", err=True)


def _imported(node: Node, read: Callable[[Node], Event]) -> ImportedEvent:
    """Convert a line of a history to an event to import, with its time and its place."""
    fields = node.members(node.value) if isinstance(node.value, dict) else {}
    own = {name: field.value for name, field in fields.items() if name != "place"}
    event, place = read(Node(own if fields else node.value, node.at)), fields.get("place")
    return ImportedEvent(
        event=event,
        timestamp=time_of(required(node, fields, "timestamp")),
        place=None if place is None else parse_place(place.text(64), place.name),
    )
