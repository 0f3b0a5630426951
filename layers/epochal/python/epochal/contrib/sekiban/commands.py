"""Commands on tagged events in Sekiban's tables, and on states of projections.

States go to and come from files a chunk at a time, so their size is the bucket's business only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import click

from epochal.cli import inputs, output
from epochal.cli.inputs import must_be_named, there
from epochal.cli.tagged import append, count, event, import_, query, read, tag, tags
from epochal.cli.target import OpenedStore, given
from epochal.codec.bodies import CHUNK
from epochal.contrib.sekiban.http import operations as shapes
from epochal.contrib.sekiban.http.tagged import sent_event
from epochal.contrib.sekiban.opening import DcbImporter
from epochal.contrib.sekiban.projections import ProjectionStates, states_of
from epochal.contrib.sekiban.states import StoredState
from epochal.contrib.sekiban.store import opened
from epochal.errors import EpochalError, InvalidInput
from epochal.lazy_dataclasses import replace
from epochal.model.tags import parse_place

Tell = Callable[[str], None]


@click.group()
@click.pass_context
def dcb(context: click.Context) -> None:
    """Append, import and query tagged events in Sekiban's tables."""
    opener: Callable[[], OpenedStore] = context.obj

    def open_dcb() -> OpenedStore:
        """Open the store with the tagged events of Sekiban's tables as its tagged store."""
        store = opener()
        return replace(
            store,
            tagged=opened(store.deployment),
            tagged_in=("events", "tags"),
            event_of=sent_event,
            importer=DcbImporter,
        )

    context.obj = open_dcb


for command in (append, query, event, read, tags, tag, count, import_):
    dcb.add_command(command)


@click.group()
def projections() -> None:
    """List, read, store and delete states of projections."""


def _states(store: OpenedStore) -> ProjectionStates:
    """Return the store's table of projection states; raise `InvalidInput` if it is not named.

    Raises:
        InvalidInput: no table of projection states is named.
    """
    states = states_of(store.deployment)
    must_be_named("is needed for states of projections", projection_states_table=states.table)
    return states


_on_states = given(_states)


@projections.command("list")
@click.argument("name")
@_on_states
def list_(states: ProjectionStates, *, name: str) -> None:
    """List the versions of projection NAME that have a state."""
    output.stream(states.list(name), shapes.described, _line)


@projections.command()
@click.argument("name")
@click.argument("version")
@click.option("--output", "target", default="-", help="File to write to. The default is standard output.")
@_on_states
def get(states: ProjectionStates, *, name: str, version: str, target: str) -> None:
    """Write a projection's state to standard output or a file.

    With --json, its numbers of bytes and events are printed as well.
    """
    state = there(states.find(name, version), f"{name} {version}: there is no such state")
    if output.as_json() and target == "-":
        output.document(shapes.in_full(state, b"".join(states.open(state))), ())
        return
    with output.progress("reading") as tell, _written(target) as file:
        for chunk in _report_progress(states.open(state), tell):
            file.write(chunk)
    if target != "-":
        output.document(shapes.described(state), [_line(state)])


@projections.command()
@click.argument("name")
@click.argument("version")
@click.argument("source", metavar="FILE")
@click.option(
    "--processed",
    type=click.IntRange(min=0),
    required=True,
    help="Number of events that the state has processed. Required.",
)
@click.option("--last", default="", help="Sortable id of the last event that the state has processed.")
@_on_states
def put(states: ProjectionStates, *, name: str, version: str, source: str, processed: int, last: str) -> None:
    """Store FILE as the state of VERSION, unless a later one is stored.

    The file may have any size. FILE may be - for standard input. The command fails if the stored state has
    processed more events.
    """
    if processed and not last:
        raise click.UsageError("--last is required unless --processed is 0.")
    with output.progress("writing") as tell, _read(source) as file:
        states.save(
            name,
            version,
            _report_progress(iter(lambda: file.read(CHUNK), b""), tell),
            events_processed=processed,
            last_sortable_id=parse_place(last, "--last") if last else "",
        )
    view = {"name": name, "version": version, "eventsProcessed": processed}
    output.document(view, [f"{name} {version}: {processed:,} events"])


@projections.command()
@click.argument("name")
@click.argument("version")
@_on_states
def delete(states: ProjectionStates, *, name: str, version: str) -> None:
    """Delete the state of VERSION of projection NAME, if there is one."""
    states.delete(name, version)
    output.document({"name": name, "version": version}, [f"{name} {version}: deleted"])


@projections.command()
@click.argument("name")
@click.option("--remove", is_flag=True, help="Delete the objects that are printed.")
@_on_states
def orphans(states: ProjectionStates, *, name: str, remove: bool) -> None:
    """List a projection's orphaned objects, or remove them with --remove.

    Objects younger than a day are not listed, since a write in progress may be about to refer to them.
    """
    if not remove:
        output.stream(states.orphans(name), lambda key: {"key": key}, str)
        return
    with output.progress("removing"):
        removed = states.remove_orphans(name)
    output.document({"removed": removed}, [f"{removed:,} removed"])


def _line(state: StoredState) -> str:
    """Format a state as one line of text: version, events processed, sizes, and where the state is."""
    where = "in the bucket" if state.offload_key else "in its item"
    return (
        f"{state.version}  {state.events_processed:,} events  {state.original_bytes:,} bytes, "
        f"{state.compressed_bytes:,} {where}"
    )


def _report_progress(chunks: Iterator[bytes], tell: Tell) -> Iterator[bytes]:
    """Yield chunks unchanged while reporting the bytes so far to `tell`."""
    total = 0
    for chunk in chunks:
        total += len(chunk)
        tell(f"{total:,} bytes")
        yield chunk


@contextmanager
def _written(target: str) -> Iterator[IO[bytes]]:
    """Yield a file that replaces `target` once written without an error, or standard output for `-`.

    An existing file is replaced only once all of it is written.

    Raises:
        InvalidInput: the file cannot be written.
    """
    if target == "-":
        yield sys.stdout.buffer
        return
    part = Path(f"{target}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(target)
    except EpochalError:
        # Some errors of Epochal are also `OSError`s, but do not concern this file.
        raise
    except OSError as error:
        raise InvalidInput("--output", f"cannot be written: {error}") from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _read(source: str) -> Iterator[IO[bytes]]:
    """Open the source file, or standard input for `-`, to read from."""
    if source == "-":
        yield sys.stdin.buffer
        return
    with inputs.opened(source, "FILE") as file:
        yield file


COMMANDS: Final = (dcb, projections)
