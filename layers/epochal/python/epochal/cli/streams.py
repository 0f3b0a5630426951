"""Commands that read a stream and its state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import click

from epochal.cli import output
from epochal.cli.target import existing, on_streams
from epochal.errors import StreamDeleted
from epochal.model.events import Recorded
from epochal.model.moments import Moment, read_moment
from epochal.store.reading import Selection
from epochal.store.streams import Streams


@click.command()
@click.argument("stream")
@click.option(
    "--from",
    "start",
    type=click.IntRange(min=0),
    help="Index of the event to begin with. The default is the first, or the last with --backward.",
)
@click.option(
    "--limit", type=click.IntRange(min=1), help="Print at most this many events. The default is all."
)
@click.option("--backward", is_flag=True, help="Print the newest event first.")
@click.option("--type", "types", multiple=True, help="Print only events of this type. May be repeated.")
@click.option("--since", help="Print only events that happened at this ISO 8601 time or later.")
@click.option("--until", help="Print only events that happened before this ISO 8601 time.")
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
    version = _require_version(streams, stream)
    selected = Selection.of(types or None, since, until)
    most = limit if selected is None else None
    events = streams.read(stream, start=start, limit=most, direction="backward" if backward else "forward")
    checked = _warn_if_pruned(stream, events, version, start=start, limit=most, backward=backward)
    selected_events = checked if selected is None else islice(filter(selected, checked), limit)
    output.stream(selected_events, output.event, output.event_line)


@click.command()
@click.argument("stream")
@click.option("--as-of", help="Print the state as of this version or ISO 8601 time. The default is now.")
@on_streams
def state(streams: Streams, *, stream: str, as_of: str | None) -> None:
    """Print the version, the token and the stored state of STREAM.

    This takes one request. For an earlier version or time, the events up to that point are read.
    """
    then = (
        None if as_of is None else int(as_of) if as_of.isdecimal() else Moment(read_moment(as_of, "--as-of"))
    )
    loaded = existing(streams, stream, as_of=then)
    rows: list[tuple[str, object]] = [
        ("stream", loaded.stream),
        ("version", loaded.version),
        ("token", loaded.token.text()),
        ("events in head", loaded.token.events) if then is None else ("events", len(loaded.events)),
        *([("pruned below", loaded.low_water)] if loaded.low_water else []),
        *([("deleted", "yes: it takes no more events")] if loaded.deleted else []),
        *(
            (f"unfold {unfold.type}", f"@{unfold.version} {output.body_text(unfold.data)}")
            for unfold in loaded.unfolds
        ),
    ]
    output.document(output.state(loaded), output.table(rows))


def _require_version(streams: Streams, stream: str) -> int:
    """Return a stream's version; raise where it is deleted or there is none, so as not to print nothing."""
    head = existing(streams, stream, fetch=False)
    if head.deleted:
        raise StreamDeleted(stream, head.version)
    return head.version


def _warn_if_pruned(
    stream: str,
    events: Iterable[Recorded],
    version: int,
    *,
    start: int | None,
    limit: int | None,
    backward: bool,
) -> Iterator[Recorded]:
    """Yield the given events unchanged; print a warning if the beginning of the stream is gone."""
    count, lowest = 0, version
    for event in events:
        count, lowest = count + 1, min(lowest, event.index)
        if count == 1 and not backward and start is None:
            _print_pruned(stream, lowest)
        yield event
    if (backward and count != limit) or (count == 0 and start is None):
        _print_pruned(stream, lowest)


def _print_pruned(stream: str, end: int) -> None:
    if end:
        click.echo(f"warning: {stream}: events below {end} are gone", err=True)
