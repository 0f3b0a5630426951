"""Commands on streams: append, read, look at the state, remove events, and list the versions of what is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import click

from epochal import scheduling
from epochal.cli import inputs, output
from epochal.cli.later import later_of
from epochal.cli.tagged import conditional, one_event, position_of, query_of
from epochal.cli.target import OpenedStore, existing, on_store, on_streams, stream_there
from epochal.codec import json
from epochal.errors import EpochalError, StreamDeleted, WrongExpectedVersion
from epochal.feed.events import FeedEvent
from epochal.http.appends import condition_of
from epochal.http.bulk_appends import bulk_append, read_bulk_append
from epochal.http.sent_events import event_of
from epochal.http.several import append_of
from epochal.index.checkpoints import at
from epochal.lazy_dataclasses import replace
from epochal.model.bodies import Claim
from epochal.model.body_marks import VERSION
from epochal.model.events import Event, Recorded, Unfold
from epochal.model.moments import parse_time
from epochal.model.position_text import write_position
from epochal.model.quantities import quantity
from epochal.model.versions import Appended, AtVersion, Conflict, ExpectedVersion, Position
from epochal.store.bulk import MAX_APPENDS, Bulk, BulkAppend
from epochal.store.driver import Meter
from epochal.store.outcomes import append_error
from epochal.store.reading import Pruned, Selection
from epochal.store.streams import Streams

# Commands on one stream: append to it, read it, look at its state.


@click.command()
@click.argument("stream")
@click.argument("type", required=False)
@click.argument("data", required=False)
@one_event
@click.option("--at", "timestamp", help="When it happened, ISO 8601; now, unless told.")
@click.option(
    "--unfold", "unfolds", multiple=True, metavar="TYPE=JSON", help="State to store beside the events."
)
@click.option("--expected", default="any", help="A version, a token, any, no_stream or stream_exists.")
@click.option(
    "--later",
    metavar="NAME=WHEN",
    help="Set a timer that appends them: in 30s, 90m, 36h, 14d or 2w, or at a time.",
)
@conditional
@click.option(
    "--batch", type=click.IntRange(min=1), help="Append so many of --events at a time, not all at once."
)
@on_streams
def append(
    streams: Streams,
    *,
    stream: str,
    type: str | None,  # noqa: A002  the argument's name, as users see it
    data: str | None,
    source: str | None,
    meta: str | None,
    timestamp: str | None,
    tags: Sequence[str],
    event_id: str | None,
    unfolds: Sequence[str],
    expected: str,
    later: str | None,
    key: str | None,
    condition: str | None,
    after: str | None,
    batch: int | None,
) -> None:
    """Append to STREAM: an event of TYPE with DATA, or --events.

    DATA, --meta, --events, --fail-if and an unfold's JSON are JSON text, @file, or - for standard input.
    """
    if (type is not None and source is not None) or (type is source is None and not unfolds):
        raise click.UsageError("Give either TYPE (and DATA) or --events, or only --unfold.")
    if batch is not None and source is None:
        raise click.UsageError("--batch cuts up what --events gives.")
    if later is not None and (batch is not None or type is source is None):
        raise click.UsageError("--later is about all of TYPE or --events.")
    if source is None:
        single = None if type is None else _event(type, data, meta, timestamp)
        events = [] if single is None else [replace(single, tags=tuple(tags), id=event_id)]
    elif meta or timestamp or tags or event_id:
        raise click.UsageError(
            "--meta, --at, --tag and --id belong to a single event; --events have their own."
        )
    else:
        events = inputs.several_of(source, event_of)
    if later is not None:
        name, when = later_of(later)
        events = [scheduling.later(name, events, at=when)]
    encoded_unfolds = tuple(map(inputs.unfold_of, unfolds)) if unfolds else None
    appends = _appends(
        streams,
        stream,
        events=events,
        unfolds=encoded_unfolds,
        expected=inputs.expected_of(expected),
        key=key,
        batch=batch,
        condition=_condition(streams, condition, after),
    )
    output.stream(appends, lambda each: each[1], lambda each: each[0])


@click.command("append-all")
@click.argument("appends", metavar="APPENDS")
@conditional
@on_streams
def append_all(
    streams: Streams, *, appends: str, key: str | None, condition: str | None, after: str | None
) -> None:
    """Append to several streams, all or nothing.

    APPENDS are as the HTTP API takes them: a JSON array or a JSON document a line, as text, @file or - for standard
    input.
    """
    requested = inputs.several_of(appends, append_of, "APPENDS")
    forbidden = _condition(streams, condition, after)
    appended = streams.append_all(requested, idempotency_key=key, **forbidden).streams
    output.stream(
        ((each.stream, appended[each.stream]) for each in requested),
        lambda each: output.of_stream(*each),
        lambda each: output.appended_line(*each),
    )


@click.command()
@click.argument("stream")
@click.option("--from", "start", type=click.IntRange(min=0), help="Index of the event to begin with.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many events.")
@click.option("--backward", is_flag=True, help="Newest first.")
@click.option("--type", "types", multiple=True, help="Only events of this type; may be repeated.")
@click.option("--since", help="Only events of this time and later, in ISO 8601.")
@click.option("--until", help="Only events with an earlier timestamp.")
@on_streams
def read(
    streams: Streams,
    *,
    stream: str,
    start: int | None,
    limit: int | None,
    backward: bool,
    types: Sequence[str],
    since: str | None,
    until: str | None,
) -> None:
    """Print the events of STREAM."""
    version = _check_there(streams, stream)
    selected = Selection.of(types or None, since, until)
    most = limit if selected is None else None
    events = streams.read(stream, start=start, limit=most, direction="backward" if backward else "forward")
    checked = _told(stream, events, version, start=start, limit=most, backward=backward)
    selected_events = checked if selected is None else islice(filter(selected, checked), limit)
    output.stream(selected_events, output.event, output.event_line)


@click.command()
@click.argument("stream")
@click.option("--as-of", help="Where it stood: at a version, or at a time, in ISO 8601.")
@on_streams
def state(streams: Streams, *, stream: str, as_of: str | None) -> None:
    """Print where STREAM stands.

    That is its version, its token and the state stored beside its events. One request; as of a version or a time, it
    reads the events up to there.
    """
    then = None if as_of is None else int(as_of) if as_of.isdecimal() else at(as_of)
    loaded = existing(streams, stream, as_of=then)
    rows: list[tuple[str, object]] = [
        ("stream", loaded.stream),
        ("version", loaded.version),
        ("token", loaded.token.text()),
        ("events in head" if then is None else "events", len(loaded.events)),
        *([("pruned below", loaded.low_water)] if loaded.low_water else []),
        *([("deleted", "yes: it takes no more events")] if loaded.deleted else []),
        *(
            (f"unfold {unfold.type}", f"@{unfold.version} {output.body_text(unfold.data)}")
            for unfold in loaded.unfolds
        ),
    ]
    output.document(output.state(loaded), output.table(rows))


def _check_there(streams: Streams, stream: str) -> int:
    """The stream's version; raises where there is no stream, since an empty print would be no answer."""
    head = existing(streams, stream, fetch=False)
    if head.deleted:
        raise StreamDeleted(stream, head.version)
    return head.version


def _told(
    stream: str,
    events: Iterable[Recorded],
    version: int,
    *,
    start: int | None,
    limit: int | None,
    backward: bool,
) -> Iterator[Recorded]:
    """The same events, with a warning where the stream's beginning is gone."""
    count, lowest = 0, version
    for event in events:
        count, lowest = count + 1, min(lowest, event.index)
        if count == 1 and not backward and start is None:
            _tell_gone(stream, lowest)
        yield event
    if (backward and count != limit) or (count == 0 and start is None):
        _tell_gone(stream, lowest)


def _tell_gone(stream: str, end: int) -> None:
    if end:
        click.echo(f"warning: {stream}: events below {end} are gone", err=True)


def _event(kind: str, data: str | None, meta: str | None, timestamp: str | None) -> Event:
    if "-" == data == meta:
        raise click.UsageError("Only one of DATA and --meta can be standard input.")
    if timestamp is not None:
        parse_time(timestamp, "--at")
    return Event(
        type=kind, data=inputs.body_of(data, "DATA"), meta=inputs.body_of(meta, "--meta"), timestamp=timestamp
    )


def _condition(streams: Streams, source: str | None, after: str | None) -> dict[str, Any]:
    """The condition of an append, as the store takes it."""
    if source is None:
        return {} if after is None else {"after": position_of(after)}
    return {"fail_if": query_of(streams.tagged, source, "--fail-if"), "after": position_of(after)}


def _appends(
    streams: Streams,
    stream: str,
    *,
    events: Sequence[Event],
    unfolds: Sequence[Unfold] | None,
    expected: ExpectedVersion,
    key: str | None,
    batch: int | None,
    condition: dict[str, Any],
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Append part by part, each on the token of the one before: what was appended, as a line and as JSON."""
    size = batch or max(1, len(events))
    parts = [events[start : start + size] for start in range(0, len(events), size)] or [events]
    for number, part in enumerate(parts):
        its_key = key if key is None or batch is None else f"{key}/{number}"
        its_unfolds = unfolds if part is parts[-1] else None
        meter = Meter()
        measured = replace(streams, driver=replace(streams.driver, meter=meter))
        outcome = measured.append(
            stream, part, unfolds=its_unfolds, expected=expected, idempotency_key=its_key, **condition
        )
        expected = outcome.token
        condition |= {"after": outcome.position} if condition else {}
        yield output.appended_line(stream, outcome), output.appended(stream, outcome, meter.units)


# Commands that remove events: `prune`, those below an index, and `delete`, all of a stream. They ask first.


@click.command()
@click.argument("stream")
@click.argument("before", type=click.IntRange(min=0))
@inputs.YES
@on_streams
def prune(streams: Streams, *, stream: str, before: int, yes: bool) -> None:
    """Remove the events of STREAM below index BEFORE, for good.

    The stream keeps its version and its state. What is removed can come back from a backup alone, unless the store
    has an archive, which gets it first.
    """
    head = existing(streams, stream, fetch=False)
    removed = max(0, min(before, head.version) - head.low_water)
    inputs.confirm(f"{quantity(removed)} of {stream} will be gone. Go on?", yes=yes)
    pruned, count = _to_the_end(lambda: stream_there(stream, streams.archive_and_prune(stream, before)))
    _print(stream, pruned, count, f"pruned below {pruned.low_water}")


@click.command()
@click.argument("stream")
@click.option("--expected", default=None, help="A version or a token that the stream must be at.")
@click.option("--leave-open", is_flag=True, help="No tombstone: the stream goes on at its next index.")
@inputs.YES
@on_streams
def delete(streams: Streams, *, stream: str, expected: str | None, leave_open: bool, yes: bool) -> None:
    """Remove all events of STREAM and its state, for good.

    Its name takes no more events, unless it is left open.
    """
    head = existing(streams, stream, fetch=False)
    after = "goes on" if leave_open else "takes no more events"
    removed = quantity(head.version - head.low_water)
    inputs.confirm(f"{removed} of {stream} will be gone; it {after}. Go on?", yes=yes)
    # What was confirmed is what is deleted: an event that came meanwhile is no part of it.
    expectation = AtVersion(version=head.version) if expected is None else inputs.expected_of(expected)
    first = streams.try_delete(stream, expected=expectation, leave_open=leave_open)
    if isinstance(first, Conflict):
        if first.deleted:
            raise StreamDeleted(stream, first.version)
        raise WrongExpectedVersion(stream, expected or f"version {head.version}", first.version)
    pruned, count = _to_the_end(lambda: _rest(streams, stream, first), first)
    outcome = "deleted, and open" if leave_open else "deleted"
    _print(stream, pruned, count, f"{outcome} at version {pruned.low_water}")


def _to_the_end(again: Callable[[], Pruned], first: Pruned | None = None) -> tuple[Pruned, int]:
    """Go on until all items are deleted, a bounded part at a time; how many there were."""
    page = first or again()
    count = page.deleted
    while not page.done:
        page = again()
        count += page.deleted
    return page, count


def _rest(streams: Streams, stream: str, first: Pruned) -> Pruned:
    """The next part of what is below the mark. A deleted stream is pruned in the same way, whatever its archive has."""
    return stream_there(stream, streams.prune(stream, first.low_water, unarchived=True))


def _print(stream: str, pruned: Pruned, count: int, said: str) -> None:
    view = {"stream": stream, "lowWater": pruned.low_water, "deleted": count, "done": pruned.done}
    output.document(view, [f"{stream}: {said}, {count:,} items deleted"])


# The command that says in which versions the events of a category are stored.

UNTOLD = "untold"
"""The version of what is no JSON object, or cannot be read: sealed for a person, for one."""


@click.command()
@click.argument("category")
@on_store
def versions(store: OpenedStore, *, category: str) -> None:
    """Count the events of CATEGORY by type and version.

    All of them are read. An upcast from a version that is not stored is not needed. Pruned events do not count.
    """
    found: Counter[tuple[str, str]] = Counter()
    with output.progress("reading") as tell:
        for partition in store.feed.partitions():
            for page in store.feed.read(partition.partition, categories=[category], data=True):
                found.update((item.type, _version(item.event)) for item in page.items if item.gone is None)
                tell(
                    f"{found.total():,} events, partition {partition.partition} at {page.next} of {partition.tail}"
                )
    view: dict[str, dict[str, int]] = {}
    for (kind, version), count in sorted(found.items()):
        view.setdefault(kind, {})[version] = count
    rows = [
        (f"{kind} {version}", count) for kind, counts in view.items() for version, count in counts.items()
    ]
    output.document(view, output.table(rows))


def _version(event: FeedEvent | None) -> str:
    if event is None or isinstance(event.data, Claim):
        return UNTOLD
    try:
        value = json.loads(event.data)
    except ValueError:
        return UNTOLD
    return str(value.get(VERSION, 1)) if isinstance(value, dict) else UNTOLD


# The command that makes many appends, each for itself.

Told = tuple[BulkAppend, Appended | EpochalError]


@click.command("append-each")
@click.argument("appends", metavar="APPENDS")
@on_streams
def append_each(streams: Streams, *, appends: str) -> None:
    """Append to streams, each append for itself.

    APPENDS are as the HTTP API takes them: a JSON array or a JSON document a line, as text, @file or - for standard
    input. A line tells what came of each, in order; the exit code is 1 if one was not made.
    """
    requested = []
    for request, sent in inputs.several_of(appends, read_bulk_append, "APPENDS"):
        condition = condition_of(sent, streams, lambda *_: "")
        condition.pop("takes", None)
        requested.append(bulk_append(request.expected, request, sent, condition))
    failed = list[EpochalError]()

    def told() -> Iterator[Told]:
        for start in range(0, len(requested), MAX_APPENDS):
            some = requested[start : start + MAX_APPENDS]
            for one, answer in zip(some, Bulk(streams).append(some), strict=True):
                outcome = (
                    answer
                    if isinstance(answer, Appended | EpochalError)
                    else append_error(one.stream, answer, one.expected)
                )
                failed.extend([outcome] if isinstance(outcome, EpochalError) else [])
                yield one, outcome

    output.stream(told(), _view, _line)
    if failed:
        raise SystemExit(1)


def _view(told: Told) -> dict[str, object]:
    one, outcome = told
    if isinstance(outcome, Appended):
        reached = {"position": write_position(outcome.position)} if outcome.position.seen else {}
        return {**output.of_stream(one.stream, outcome), **reached}
    return {"stream": one.stream, "error": type(outcome).__name__, "message": str(outcome)}


def _line(told: Told) -> str:
    one, outcome = told
    if isinstance(outcome, Appended):
        return output.appended_line(one.stream, replace(outcome, position=Position()))
    words = str(outcome)
    return words if words.startswith(one.stream) else f"{one.stream}: {words}"
