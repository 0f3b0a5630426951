"""Commands that remove events: `prune`, those below an index, and `delete`, all of a stream. They ask first."""

from __future__ import annotations

from collections.abc import Callable

import click

from epochal.cli import inputs, output
from epochal.cli.errors import StreamMissing
from epochal.cli.target import OpenedStore, existing, pass_streams
from epochal.errors import StreamDeleted, WrongExpectedVersion
from epochal.model.outcomes import Conflict
from epochal.model.versions import AtVersion
from epochal.store.results import Pruned
from epochal.store.streams import Streams

YES = click.option("--yes", is_flag=True, help="Do not ask.")


@click.command()
@click.argument("stream")
@click.argument("before", type=click.IntRange(min=0))
@YES
@output.json_option
@pass_streams
def prune(store: OpenedStore, *, stream: str, before: int, yes: bool, as_json: bool) -> None:
    """Remove the events of STREAM below index BEFORE, for good.

    The stream keeps its version and its state. What is removed can come back from a backup alone, unless the store
    has an archive, which gets it first.
    """
    head = existing(store.streams, stream, fetch=False)
    gone = max(0, min(before, head.version) - head.low_water)
    inputs.confirm(f"{output.events(gone)} of {stream} will be gone. Go on?", yes=yes)
    pruned, count = _to_the_end(lambda: _found(stream, store.streams.archive_and_prune(stream, before)))
    _print(stream, pruned, count, f"pruned below {pruned.low_water}", as_json=as_json)


@click.command()
@click.argument("stream")
@click.option("--expected", default=None, help="A version or a token that the stream must be at.")
@click.option("--leave-open", is_flag=True, help="No tombstone: the stream goes on at its next index.")
@YES
@output.json_option
@pass_streams
def delete(
    store: OpenedStore, *, stream: str, expected: str | None, leave_open: bool, yes: bool, as_json: bool
) -> None:
    """Remove all events of STREAM and its state, for good.

    Its name takes no more events, unless it is left open.
    """
    head = existing(store.streams, stream, fetch=False)
    after = "goes on" if leave_open else "takes no more events"
    gone = output.events(head.version - head.low_water)
    inputs.confirm(f"{gone} of {stream} will be gone; it {after}. Go on?", yes=yes)
    # What was confirmed is what is deleted: an event that came meanwhile is no part of it.
    wanted = AtVersion(version=head.version) if expected is None else inputs.expected_of(expected)
    first = store.streams.try_delete(stream, expected=wanted, leave_open=leave_open)
    if isinstance(first, Conflict):
        if first.deleted:
            raise StreamDeleted(stream, first.version)
        raise WrongExpectedVersion(stream, expected or f"version {head.version}", first.version)
    pruned, count = _to_the_end(lambda: _rest(store.streams, stream, first), first)
    said = "deleted, and open" if leave_open else "deleted"
    _print(stream, pruned, count, f"{said} at version {pruned.low_water}", as_json=as_json)


def _to_the_end(again: Callable[[], Pruned], first: Pruned | None = None) -> tuple[Pruned, int]:
    """Go on until all items are deleted, a bounded part at a time; how many there were."""
    found = first or again()
    count = found.deleted
    while not found.done:
        found = again()
        count += found.deleted
    return found, count


def _rest(streams: Streams, stream: str, first: Pruned) -> Pruned:
    """The next part of what is below the mark. A deleted stream is pruned in the same way, whatever its archive has."""
    return _found(stream, streams.prune(stream, first.low_water, unarchived=True))


def _found(stream: str, pruned: Pruned | None) -> Pruned:
    if pruned is None:
        raise StreamMissing(stream)
    return pruned


def _print(stream: str, pruned: Pruned, count: int, said: str, *, as_json: bool) -> None:
    view = {"stream": stream, "lowWater": pruned.low_water, "deleted": count, "done": pruned.done}
    output.document(view, [f"{stream}: {said}, {count:,} items deleted"], as_json=as_json)
