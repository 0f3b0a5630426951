"""Commands on tagged events: append on a condition, query, look at one. Listings and imports join the group elsewhere.

A query is `--type` and `--tag`, which make one item of it, or `--query`, which is one in the HTTP API's form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any

import click

from epochal.cli import inputs, output
from epochal.cli.errors import ConditionFailed, EventMissing, must_be_named
from epochal.cli.target import OpenedStore, pass_store
from epochal.cli.views import body_text, no_link
from epochal.http import tagged as over_http
from epochal.http.shapes import Node
from epochal.model.events import Event, Recorded
from epochal.model.tags import (
    BackwardPage,
    Query,
    TaggedPage,
    Takes,
    parse_event_id,
    read_position,
    write_position,
)
from epochal.model.versions import Appended, Conflict, Position
from epochal.store.driver import Meter
from epochal.store.tagged_store import TaggedStore

PAGE = 1_000
"""Events of a query that are asked for at a time."""

NAMED = 3
"""Events in the way that an error names."""


@click.group()
def tagged() -> None:
    """Tagged events: found by what they concern.

    They are appended on the condition that nothing has changed.
    """


def pass_opened(command: Callable[..., None]) -> Callable[..., None]:
    """Hand a store that has tagged events to a command."""

    @pass_store
    @wraps(command)
    def found(store: OpenedStore, **options: Any) -> None:
        for kind in store.tagged_in:
            table = {f"{kind}_table": store.deployment.settings.table(kind)}
            must_be_named("is needed for tagged events", **table)
        command(store, **options)

    return found


def pass_tagged(command: Callable[..., None]) -> Callable[..., None]:
    """Hand the store of tagged events to a command."""

    @pass_opened
    @wraps(command)
    def found(store: OpenedStore, **options: Any) -> None:
        command(store.tagged, **options)

    return found


@tagged.command()
@click.argument("type", required=False)
@click.argument("data", required=False)
@click.option("--tag", "tags", multiple=True, help="What the event concerns; may be repeated.")
@click.option(
    "--id", "event_id", help="The event's id, a UUID: the same call again is answered like the first."
)
@click.option("--meta", help="Metadata: JSON text, @file, or - for standard input.")
@click.option("--events", "source", help="Events in the HTTP API's form: a JSON array, or JSON lines.")
@click.option(
    "--fail-if", "condition", help="A query in the HTTP API's form: append only if nothing matches it."
)
@click.option("--after", help="Only what is new since this position is in the way of --fail-if.")
@click.option("--key", help="Idempotency key: the same call again is answered like the first.")
@output.json_option
@pass_opened
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
    as_json: bool,
) -> None:
    """Append an event of TYPE with DATA, or --events.

    It is one transaction. DATA, --events and --fail-if are JSON text, @file, or - for standard input.
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
    made = _made(measured, events, fail_if, position_of(after), key)
    view = over_http.appended(made, meter.units)
    again = ", appended before" if made.replayed else ""
    count = f"{output.events(len(events))}{again}"
    position = [f"position {view['position']}"] if fail_if is not None else []
    output.document(view, [count, *position], as_json=as_json)


@tagged.command()
@click.option("--type", "types", multiple=True, help="Any of these types; may be repeated.")
@click.option("--tag", "tags", multiple=True, help="All of these tags; may be repeated.")
@click.option("--query", "source", help="A query in the HTTP API's form, instead of --type and --tag.")
@click.option("--after", help="Only what is new since this position.")
@click.option(
    "--limit", type=click.IntRange(min=1), help="At most so many events; then there is no position."
)
@click.option("--backward", is_flag=True, help="Newest first; with --limit the last events.")
@output.json_option
@pass_tagged
def query(
    store: TaggedStore,
    *,
    types: Sequence[str],
    tags: Sequence[str],
    source: str | None,
    after: str | None,
    limit: int | None,
    backward: bool,
    as_json: bool,
) -> None:
    """Print the events that match, and the position to append after."""
    if (source is not None) == bool(types or tags):
        raise click.UsageError("Give either --query or --type and --tag.")
    asked = query_of(store, source, "--query") if source else _item_of(store, types, tags)
    read = _Read(store=store, query=asked, after=position_of(after), limit=limit, backward=backward)
    output.stream(read.events(), shown, line, as_json=as_json)
    if read.position is not None:
        position = write_position(read.position)
        output.document({"position": position}, [f"position {position}"], as_json=as_json)


@tagged.command()
@click.argument("event_id", metavar="ID")
@output.json_option
@pass_tagged
def event(store: TaggedStore, *, event_id: str, as_json: bool) -> None:
    """Print the event of an ID."""
    found = store.event(parse_event_id(event_id, "ID"))
    if found is None:
        raise EventMissing(event_id)
    view = shown(found)
    rows = [
        (name, " ".join(value) if name == "tags" else value)
        for name, value in over_http.fields(found).items()
    ]
    bodies = [("data", body_text(found.data)), *([("meta", body_text(found.meta))] if found.meta else [])]
    output.document(view, output.table([*rows, *bodies]), as_json=as_json)


def shown(found: Recorded) -> dict[str, Any]:
    """An event, as the HTTP API shows it."""
    return over_http.shown(found, no_link)


def line(found: Recorded) -> str:
    """An event in one line."""
    return f"{found.timestamp[:19]}  {found.type}  {' '.join(found.tags)}  {body_text(found.data)}"


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
        next_page: Callable[..., TaggedPage | BackwardPage] = (
            self.store.page_back if self.backward else self.store.page
        )
        left, rest = self.limit, None
        while left is None or left > 0:
            limit = PAGE if left is None else min(PAGE, left)
            found = next_page(self.query, after=self.after, rest=rest, takes=_room(limit), limit=limit)
            yield from found.events
            rest, self.position = found.rest, found.position
            left = None if left is None else left - len(found.events)
            if rest is None:
                return


def _room(limit: int) -> Takes:
    room = iter(range(limit))
    return lambda _: next(room, None) is not None


def _made(
    store: TaggedStore,
    events: Sequence[Event],
    fail_if: Query | None,
    after: Position | None,
    key: str | None,
) -> Appended:
    """The append; raises what kept it from being made."""
    match store.try_append(events, fail_if=fail_if, after=after, takes=_room(NAMED), idempotency_key=key):
        case Appended() as made:
            return made
        case Conflict(events=found, more=more):
            raise ConditionFailed([f"{each.type} {each.id}" for each in found], more=more)


def query_of(store: TaggedStore, source: str, option: str) -> Query:
    """A query in the HTTP API's form."""
    return over_http.query_of(Node(inputs.json_of(source, option), option), store)


def _item_of(store: TaggedStore, types: Sequence[str], tags: Sequence[str]) -> Query:
    item = {"types": list(types), "tags": list(tags)}
    return over_http.query_of(Node({"items": [item]}, "query"), store)


def position_of(after: str | None) -> Position | None:
    """A position that was printed."""
    return None if after is None else read_position(after, "--after")
