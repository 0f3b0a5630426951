"""Aggregates for the tools: commands on one, to append to it, look at it, print its events.

Commands are about tables, not about the API: any type will do, also one that no deployment registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

import click

from epochal.cli import inputs, output
from epochal.cli.inputs import must_be_named, there
from epochal.cli.output import body_text
from epochal.cli.target import OpenedStore, on_store
from epochal.contrib.event_store_adapter.event_pages import walk
from epochal.contrib.event_store_adapter.http import operations as shapes
from epochal.contrib.event_store_adapter.ids import AggregateId, aggregate_id
from epochal.contrib.event_store_adapter.model import AggregateEvent, ExpectedLock, RecordedAggregateEvent
from epochal.contrib.event_store_adapter.store import AggregateStore, opened
from epochal.lazy_dataclasses import replace
from epochal.model.expected_version import Expected
from epochal.model.moments import read_moment
from epochal.model.quantities import quantity
from epochal.store.driver import Meter

T = TypeVar("T")


@click.group()
def aggregate() -> None:
    """Append to and read aggregates: events with snapshots."""


def _about_one(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command with the arguments TYPE and ID, so that it gets the aggregates' store and an id."""

    @click.argument("kind", metavar="TYPE")
    @click.argument("value", metavar="ID")
    @on_store
    @wraps(command)
    def run_command(store: OpenedStore, *, kind: str, value: str, **options: Any) -> None:
        """Open the aggregates of the store, and call the command with them and the id."""
        aggregates = opened(store.deployment)
        site = aggregates.site
        must_be_named("is needed for aggregates", journal_table=site.journal, snapshot_table=site.snapshot)
        command(aggregates, aggregate_id(kind, value), **options)

    return run_command


@aggregate.command()
@_about_one
@click.argument("event", required=False)
@click.argument("data", required=False)
@click.option(
    "--events", "source", help="Events to append, in the form of the HTTP API: a JSON array, or JSON lines."
)
@click.option(
    "--at", "occurred_at", help="Time at which the event happened, in ISO 8601. The default is now."
)
@click.option(
    "--snapshot", help="State after the events, as JSON. The first append to an aggregate needs it."
)
@click.option(
    "--expected",
    default="any",
    help="Expected state of the aggregate: a version, a lock, any, "
    "no_stream or stream_exists. The default is any.",
)
@click.option(
    "--key",
    help="Idempotency key. A repeated call with the same key has no effect, and gets the answer "
    "of the first.",
)
def append(
    store: AggregateStore,
    which: AggregateId,
    *,
    event: str | None,
    data: str | None,
    source: str | None,
    occurred_at: str | None,
    snapshot: str | None,
    expected: str,
    key: str | None,
) -> None:
    """Append an EVENT with DATA to an aggregate, or those of --events.

    All of them are appended in one transaction. DATA, --snapshot and --events are JSON text, @file, or - for
    standard input.
    """
    if (event is None) == (source is None):
        raise click.UsageError("Give either EVENT (and DATA) or --events.")
    if source is not None and occurred_at is not None:
        raise click.UsageError("--at applies to a single EVENT; those of --events have their own times.")
    events = (
        inputs.several_of(source, shapes.event_of) if source else [_event(event or "", data, occurred_at)]
    )
    state = None if snapshot is None else inputs.body_of(snapshot, "--snapshot")
    meter = Meter()
    measured = replace(store, driver=replace(store.driver, meter=meter))
    outcome = measured.append(
        which, events, snapshot=state, expected=_expected(expected), idempotency_key=key
    )
    view = {**shapes.appended(which, outcome, meter.units), "lock": shapes.lock_text(outcome.lock)}
    count = len(events)
    line = f"{which}: {quantity(count)}, now at version {outcome.lock.version}"
    output.document(view, [line])


@aggregate.command()
@_about_one
def show(store: AggregateStore, which: AggregateId) -> None:
    """Print the snapshot of an aggregate, and the events after it."""
    replayed = _there(which, store.replay(which))
    snapshot = replayed.snapshot
    view = {
        "aggregate": str(which),
        **shapes.stand(snapshot.lock),
        "lock": shapes.lock_text(snapshot.lock),
        "snapshotSeqNr": snapshot.seq_nr,
        "snapshot": shapes.body(snapshot.data),
        "events": [shapes.event(event) for event in replayed.events],
    }
    rows = [
        ("aggregate", str(which)),
        ("version", snapshot.lock.version),
        ("last event", snapshot.lock.seq_nr),
        ("lock", shapes.lock_text(snapshot.lock)),
        ("snapshot", f"@{snapshot.seq_nr} {body_text(snapshot.data)}"),
    ]
    output.document(view, [*output.table(rows), *map(_line, replayed.events)])


@aggregate.command()
@_about_one
@click.option(
    "--from",
    "start",
    type=click.IntRange(min=1),
    default=1,
    help="Number of the first event to print. The default is 1.",
)
@click.option(
    "--limit", type=click.IntRange(min=1), help="Print at most this many events. The default is all."
)
def events(store: AggregateStore, which: AggregateId, *, start: int, limit: int | None) -> None:
    """Print the events of an aggregate."""
    lock = _there(which, store.lock(which))
    recorded: Iterable[RecordedAggregateEvent] = walk(store, which, lock, start=start, limit=limit)
    output.stream(recorded, shapes.event, _line)


def _there(which: AggregateId, replay: T | None) -> T:
    """Return what was read of an aggregate; end the command with an error if there is none."""
    return there(replay, f"{which}: there is no such aggregate")


def _event(kind: str, data: str | None, occurred_at: str | None) -> AggregateEvent:
    """Make an event of a command's arguments; data left out is `null`."""
    content = inputs.body_of("null" if data is None else data, "DATA")
    if occurred_at is not None:
        read_moment(occurred_at, "--at")
    return AggregateEvent(type=kind, data=content, occurred_at=occurred_at)


def _expected(text: str) -> ExpectedLock:
    """Parse the option --expected: a word, a version or a lock."""
    words = {member.value for member in Expected}
    return Expected(text) if text in words else shapes.lock_of(text, "--expected")


def _line(event: RecordedAggregateEvent) -> str:
    """Format an event as one line of text."""
    return f"{event.aggregate}  {event.seq_nr:>6}  {event.occurred_at[:19]}  {event.type}  {body_text(event.data)}"


COMMANDS = (aggregate,)
