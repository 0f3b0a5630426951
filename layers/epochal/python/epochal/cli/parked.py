"""Commands on streams that a reaction has parked."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from math import inf

import click

from epochal.cli import inputs, output
from epochal.cli.react import reactor_of
from epochal.cli.reactions import check_group, load_reactions
from epochal.cli.target import OpenedStore, on_store
from epochal.errors import InvalidInput
from epochal.hosting.commands import parked_view
from epochal.model.quantities import quantity
from epochal.reactions.parking import ParkedStream, Parking


@click.group()
def parked() -> None:
    """Show, replay and discard streams that a reaction failed on."""


@parked.command("list")
@click.argument("group")
@on_store
def list_(store: OpenedStore, *, group: str) -> None:
    """List the streams that GROUP has parked.

    Each line has the first event that is not handled, and the cause.
    """
    check_group(store, group)
    output.stream(_parked(store, group), parked_view, _line)


@parked.command()
@click.argument("group")
@click.argument("stream")
@on_store
def show(store: OpenedStore, *, group: str, stream: str) -> None:
    """Show why GROUP has parked STREAM.

    The cause is the exception of the handler with its trace, and the number of attempts.
    """
    check_group(store, group)
    for _, parked_stream in _chosen(store, (group,), (stream,)):
        cause = parked_stream.cause
        text = f"{parked_stream.stream}  {parked_stream.index}"
        if cause is not None:
            tried = f"after {quantity(cause.attempts, 'attempt')}"
            text += f"\n{cause.text}, {cause.timestamp}, {tried}\n{cause.trace}"
        output.document(parked_view(parked_stream), output.harmless(text))


@parked.command()
@click.argument("target", metavar="MODULE:REACTION")
@click.argument("streams", nargs=-1)
@on_store
def replay(store: OpenedStore, *, target: str, streams: tuple[str, ...]) -> None:
    """Handle the parked events of STREAMS, or of all, in this process.

    The streams are then no longer parked. Without STREAMS, all parked streams are replayed.

    A deployed function replays with its own handler: invoke it with {"command": "replay", "partition": 30000,
    "stream": "..."}.
    """
    failed = False
    reactions_by_name = {definition.name: definition for definition in load_reactions(store, target)}
    for group, stream in _chosen(store, reactions_by_name, streams):
        parking = Parking(reactor=reactor_of(store, reactions_by_name[group]))
        with output.progress(f"replaying {stream.stream}"):
            replayed = parking.replay(stream.partition, stream.stream, seconds=inf)
        failed = failed or not replayed.unparked
        view = {"stream": stream.stream, "next": replayed.next, "unparked": replayed.unparked}
        if replayed.failure is not None:
            view["cause"] = replayed.failure.cause
        line = "goes on" if replayed.unparked else f"still parked: {view.get('cause')}"
        output.document(view, [f"{stream.stream}  {replayed.next}  {line}"])
    if failed:
        sys.exit(1)


@parked.command()
@click.argument("group")
@click.argument("stream")
@click.option(
    "--one",
    is_flag=True,
    help="Skip only the event that failed. The stream stays parked until it is replayed.",
)
@inputs.YES
@on_store
def discard(store: OpenedStore, *, group: str, stream: str, one: bool, yes: bool) -> None:
    """Discard the parked events of STREAM, or with --one only the first.

    GROUP never handles them.
    """
    check_group(store, group)
    ((_, parked_stream),) = _chosen(store, (group,), (stream,))
    what = f"event {parked_stream.index}" if one else f"every event from {parked_stream.index} on"
    inputs.confirm(f"{group} will never handle {what} of {stream}. Continue?", yes=yes)
    parking = Parking.of(group, store.feed)
    if one:
        following, unparked = parking.skip(parked_stream.partition, stream, parked_stream.index), False
    else:
        replayed = parking.discard(parked_stream.partition, stream)
        following, unparked = replayed.next, replayed.unparked
    view = {"stream": stream, "next": following, "unparked": unparked}
    line = "goes on" if unparked else "still parked"
    output.document(view, [f"{stream}  {following}  {line}"])


def _parked(store: OpenedStore, group: str) -> Iterator[ParkedStream]:
    """Yield the parked streams of a group in all partitions."""
    parking = Parking.of(group, store.feed)
    for partition in store.feed.partitions():
        yield from parking.streams(partition.partition)


def _chosen(
    store: OpenedStore, groups: Iterable[str], streams: tuple[str, ...]
) -> list[tuple[str, ParkedStream]]:
    """Return the parked streams of the given groups, all or the named ones; raise if one is not parked."""
    candidates = [(group, parked) for group in groups for parked in _parked(store, group)]
    if missing := set(streams) - {parked.stream for _, parked in candidates}:
        raise InvalidInput("stream", f"{min(missing)!r} is not parked by {' or '.join(groups)}")
    return [(group, parked) for group, parked in candidates if not streams or parked.stream in streams]


def _line(parked_stream: ParkedStream) -> str:
    """Describe a parked stream in a line."""
    cause = (
        ""
        if parked_stream.cause is None
        else f"  {parked_stream.cause.text}, {parked_stream.cause.timestamp}"
    )
    return f"{parked_stream.stream}  {parked_stream.index}{cause}"
