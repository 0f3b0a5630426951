"""Commands that remove events: `prune` those below an index, `delete` all of a stream. They ask first."""

from __future__ import annotations

from collections.abc import Callable

import click

from epochal.cli import inputs, output
from epochal.cli.target import existing, on_streams, stream_there
from epochal.errors import StreamDeleted, WrongExpectedVersion
from epochal.model.expected_version import AtVersion
from epochal.model.outcomes import Conflict
from epochal.model.quantities import quantity
from epochal.store.reading import Pruned
from epochal.store.streams import Streams


@click.command()
@click.argument("stream")
@click.argument("before", type=click.IntRange(min=0))
@inputs.YES
@on_streams
def prune(streams: Streams, *, stream: str, before: int, yes: bool) -> None:
    """Delete (or archive) the events of STREAM below index BEFORE.

    The stream keeps its version and its state. If the store has an archive, the events are moved there first.
    Otherwise they are deleted permanently, and can only be restored from a backup.
    """
    head = existing(streams, stream, fetch=False)
    removed = max(0, min(before, head.version) - head.low_water)
    inputs.confirm(f"{quantity(removed)} of {stream} will be removed. Continue?", yes=yes)
    pruned, count = _to_the_end(lambda: stream_there(stream, streams.archive_and_prune(stream, before)))
    _print(stream, pruned, count, f"pruned below {pruned.low_water}")


@click.command()
@click.argument("stream")
@click.option(
    "--expected",
    default=None,
    help="Version or token that the stream must be at. By default, it may be at any.",
)
@click.option(
    "--leave-open",
    is_flag=True,
    help="Leave no tombstone, so that the stream can be appended to at its next index.",
)
@inputs.YES
@on_streams
def delete(streams: Streams, *, stream: str, expected: str | None, leave_open: bool, yes: bool) -> None:
    """Delete all events of STREAM and its state, permanently.

    The name of the stream takes no more events, except with --leave-open.
    """
    head = existing(streams, stream, fetch=False)
    after = "stays open" if leave_open else "takes no more events"
    removed = quantity(head.version - head.low_water)
    inputs.confirm(f"{removed} of {stream} will be deleted; the stream {after}. Continue?", yes=yes)
    # What was confirmed is what is deleted: an event that came meanwhile is no part of it.
    expectation = AtVersion(version=head.version) if expected is None else inputs.expected_of(expected)
    first = streams.try_delete(stream, expected=expectation, leave_open=leave_open)
    if isinstance(first, Conflict):
        if first.deleted:
            raise StreamDeleted(stream, first.version)
        raise WrongExpectedVersion(stream, expected or f"version {head.version}", first.version)
    pruned, count = _to_the_end(lambda: _rest(streams, stream, first), first)
    outcome = "deleted, but open" if leave_open else "deleted"
    _print(stream, pruned, count, f"{outcome} at version {pruned.low_water}")


def _to_the_end(again: Callable[[], Pruned], first: Pruned | None = None) -> tuple[Pruned, int]:
    """Delete part by part until all items are deleted; return the last outcome and the number of items."""
    page = first or again()
    count = page.deleted
    while not page.done:
        page = again()
        count += page.deleted
    return page, count


def _rest(streams: Streams, stream: str, first: Pruned) -> Pruned:
    """The next part of what is below the mark. A deleted stream is pruned in the same way, whatever its archive has."""
    return stream_there(stream, streams.prune(stream, first.low_water, unarchived=True))


def _print(stream: str, pruned: Pruned, count: int, outcome: str) -> None:
    view = {"stream": stream, "lowWater": pruned.low_water, "deleted": count, "done": pruned.done}
    output.document(view, [f"{stream}: {outcome}, {count:,} items deleted"])
