"""Commands that append to streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from epochal import scheduling
from epochal.cli import inputs, output
from epochal.cli.later import later_of
from epochal.cli.tagged import conditional, one_event, position_of, query_of
from epochal.cli.target import on_streams
from epochal.errors import EpochalError
from epochal.http.appends import condition_of
from epochal.http.bulk_appends import bulk_append, read_bulk_append
from epochal.http.sent_events import event_of
from epochal.http.several import append_of
from epochal.lazy_dataclasses import replace
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import ExpectedVersion
from epochal.model.moments import read_moment
from epochal.model.outcomes import Appended
from epochal.model.position_text import write_position
from epochal.store.bulk import MAX_APPENDS, Bulk, BulkAppend
from epochal.store.driver import Meter
from epochal.store.outcomes import append_error
from epochal.store.streams import Streams

AppendOutcome = tuple[BulkAppend, Appended | EpochalError]


@click.command()
@click.argument("stream")
@click.argument("type", required=False)
@click.argument("data", required=False)
@one_event
@click.option("--at", "timestamp", help="Time at which the event happened, in ISO 8601. The default is now.")
@click.option(
    "--unfold",
    "unfolds",
    multiple=True,
    metavar="TYPE=JSON",
    help="State to store beside the events, under the name TYPE. May be repeated.",
)
@click.option(
    "--expected",
    default="any",
    help="Expected state of the stream: a version, a token, any, no_stream "
    "or stream_exists. The default is any.",
)
@click.option(
    "--later",
    metavar="NAME=WHEN",
    help="Set a timer NAME that appends the events later: after 30s, 90m, 36h, 14d or 2w, or at an ISO 8601 time.",
)
@conditional
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    help="Append this many of --events at a time. The default is all of them in one append.",
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
    """Append an event of TYPE with DATA, or --events, to STREAM.

    DATA, --meta, --events, --fail-if and the JSON of an unfold are JSON text, @file, or - for standard input.
    """
    if (type is not None and source is not None) or (type is source is None and not unfolds):
        raise click.UsageError("Give either TYPE (and DATA) or --events, or only --unfold.")
    if batch is not None and source is None:
        raise click.UsageError("--batch needs --events.")
    if later is not None and (batch is not None or type is source is None):
        raise click.UsageError("--later needs TYPE or --events, and cannot be combined with --batch.")
    if source is None:
        single = None if type is None else _event(type, data, meta, timestamp)
        events = [] if single is None else [replace(single, tags=tuple(tags), id=event_id)]
    elif meta or timestamp or tags or event_id:
        raise click.UsageError(
            "--meta, --at, --tag and --id apply to a single event; the events of --events have their own."
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
    for lines, view in appends:
        output.document(view, lines)


@click.command("append-all")
@click.argument("appends", metavar="APPENDS")
@conditional
@on_streams
def append_all(
    streams: Streams, *, appends: str, key: str | None, condition: str | None, after: str | None
) -> None:
    """Append to several streams in one transaction.

    APPENDS are in the form of the HTTP API: a JSON array or one JSON document a line, as text, @file or - for
    standard input.
    """
    requested = inputs.several_of(appends, append_of, "APPENDS")
    forbidden = _condition(streams, condition, after)
    appended = streams.append_all(requested, idempotency_key=key, **forbidden).streams
    output.stream(
        ((request.stream, appended[request.stream]) for request in requested),
        lambda request: output.of_stream(*request),
        lambda request: output.appended_line(*request),
    )


def _condition(streams: Streams, source: str | None, after: str | None) -> dict[str, Any]:
    """Return an append's condition as keyword arguments for the store; empty where none is given."""
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
) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """Append in batches, each expecting the token of the one before; yield results as lines and JSON."""
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
        yield output.appended_lines(stream, outcome), output.appended(stream, outcome, meter.units)


@click.command("append-each")
@click.argument("appends", metavar="APPENDS")
@on_streams
def append_each(streams: Streams, *, appends: str) -> None:
    """Append to many streams, each append on its own.

    APPENDS are in the form of the HTTP API: a JSON array or one JSON document a line, as text, @file or - for
    standard input. A line for each append, in order, says whether it was applied. The exit code is 1 if one was
    not.
    """
    requested = []
    for request, sent in inputs.several_of(appends, read_bulk_append, "APPENDS"):
        condition = condition_of(sent, streams, lambda *_: "")
        condition.pop("takes", None)
        requested.append(bulk_append(request.expected, request, sent, condition))
    failed = list[EpochalError]()

    def outcomes() -> Iterator[AppendOutcome]:
        """Make the appends; yield each with its outcome or error, and collect the errors in `failed`."""
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

    output.stream(outcomes(), _view, _line)
    if failed:
        raise SystemExit(1)


def _view(result: AppendOutcome) -> dict[str, object]:
    one, outcome = result
    if isinstance(outcome, Appended):
        reached = {"position": write_position(outcome.position)} if outcome.position.seen else {}
        return {**output.of_stream(one.stream, outcome), **reached}
    return {"stream": one.stream, "error": type(outcome).__name__, "message": str(outcome)}


def _line(result: AppendOutcome) -> str:
    one, outcome = result
    if isinstance(outcome, Appended):
        return output.appended_line(one.stream, outcome)
    words = str(outcome)
    return words if words.startswith(one.stream) else f"{one.stream}: {words}"


def _event(kind: str, data: str | None, meta: str | None, timestamp: str | None) -> Event:
    """Make the event that the arguments of `append` describe."""
    if "-" == data == meta:
        raise click.UsageError("Only one of DATA and --meta can be standard input.")
    if timestamp is not None:
        read_moment(timestamp, "--at")
    return Event(
        type=kind, data=inputs.body_of(data, "DATA"), meta=inputs.body_of(meta, "--meta"), timestamp=timestamp
    )
