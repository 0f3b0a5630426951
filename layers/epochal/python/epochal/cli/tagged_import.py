"""The command that imports a history of tagged events, a line each, and can be run again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import IO

import click

from epochal.cli import inputs, output
from epochal.cli.errors import ImportStopped
from epochal.cli.tagged import pass_opened
from epochal.cli.target import OpenedStore
from epochal.errors import EpochalError
from epochal.http.shapes import Node, required, time_of
from epochal.model.events import Event
from epochal.model.tags import parse_place
from epochal.store.importing import Imported, ImportedEvent


@click.command("import")
@click.argument("source", metavar="FILE")
@click.option(
    "--skip", type=click.IntRange(min=0), default=0, help="Events that an earlier run has dealt with."
)
@output.json_option
@pass_opened
def import_(store: OpenedStore, *, source: str, skip: int, as_json: bool) -> None:
    """Append a history from FILE, an event a line.

    The events are in order of time, as `read --json` prints them; FILE may be - for standard input.

    It is not atomic as a whole. Run it again after whatever ended it: events that are there already are passed over.
    """
    done = Imported(read=skip)

    def heard(so_far: Imported) -> None:
        nonlocal done
        done = so_far
        tell(f"{so_far.read:,} events, {so_far.found:,} of them there before")

    lines = sys.stdin.buffer if source == "-" else inputs.opened(source, "FILE")
    with lines, output.progress("importing") as tell:
        try:
            done = store.tagged.importer.run(_history(lines, store.event_of), after=done, progress=heard)
        except EpochalError as error:
            raise ImportStopped(done.read, error) from error
    view = {"read": done.read, "written": done.written, "found": done.found, "renumbered": done.renumbered}
    output.document(view, output.table(view.items()), as_json=as_json)


def _history(lines: IO[bytes], read: Callable[[Node], Event]) -> Iterator[ImportedEvent]:
    """The events, a line at a time; empty lines do not count, nor events that are in streams: they come with these."""
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
        count = output.events(homed)
        click.echo(f"warning: {count} left out that are in streams: `epochal copy` brings them", err=True)


def _imported(node: Node, read: Callable[[Node], Event]) -> ImportedEvent:
    fields = node.members(node.value) if isinstance(node.value, dict) else {}
    own = {name: each.value for name, each in fields.items() if name != "place"}
    event, place = read(Node(own if fields else node.value, node.at)), fields.get("place")
    return ImportedEvent(
        event=event,
        timestamp=time_of(required(node, fields, "timestamp")),
        place=None if place is None else parse_place(place.text(64), place.name),
    )
