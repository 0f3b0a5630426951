"""The command that imports a history of tagged events, a line each, and can be run again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import IO, Final

import click

from epochal.cli import inputs, output
from epochal.cli.errors import ImportStopped
from epochal.cli.tagged import pass_tagged
from epochal.errors import EpochalError
from epochal.http.fields import Node, moment, required
from epochal.http.tagged_shapes import NEW_EVENT, event_of
from epochal.model.dcb import parse_sortable_id
from epochal.store.importing import Imported, ImportedEvent
from epochal.store.tagged_store import TaggedStore

FIELDS: Final = (*NEW_EVENT.names, "timestamp", "sortableId")


@click.command("import")
@click.argument("source", metavar="FILE")
@click.option(
    "--skip", type=click.IntRange(min=0), default=0, help="Events that an earlier run has dealt with."
)
@output.json_option
@pass_tagged
def import_(store: TaggedStore, *, source: str, skip: int, as_json: bool) -> None:
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
            done = store.importer.run(_history(lines), after=done, progress=heard)
        except EpochalError as error:
            raise ImportStopped(done.read, error) from error
    view = {"read": done.read, "written": done.written, "found": done.found, "renumbered": done.renumbered}
    output.document(view, output.table(view.items()), as_json=as_json)


def _history(lines: IO[bytes]) -> Iterator[ImportedEvent]:
    """The events, a line at a time; empty lines do not count, nor events that are in streams: they come with these."""
    homed = 0
    for number, text in enumerate(lines, 1):
        if text.strip():
            place = f"line {number}"
            node = Node(inputs.parsed(text, place), place)
            if isinstance(node.value, dict) and "stream" in node.value:
                homed += 1
            else:
                yield _imported(node)
    if homed:
        count = output.events(homed)
        click.echo(f"warning: {count} left out that are in streams: `epochal copy` brings them", err=True)


def _imported(node: Node) -> ImportedEvent:
    fields = node.members(FIELDS)
    own = {name: each.value for name, each in fields.items() if name in NEW_EVENT.names}
    sortable = fields.get("sortableId")
    return ImportedEvent(
        event=event_of(Node(own, node.at)),
        timestamp=moment(required(node, fields, "timestamp")),
        sortable_id=None if sortable is None else parse_sortable_id(sortable.text(64), sortable.name),
    )
