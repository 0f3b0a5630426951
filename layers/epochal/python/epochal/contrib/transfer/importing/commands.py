"""Commands that import histories from other systems, and copy streams from another layout or deployment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from operator import attrgetter
from typing import IO, Any, Final

import click

from epochal.care.prices import PRICES
from epochal.cli import inputs, output
from epochal.cli.inputs import NAMED, ImportIncomplete, Unsound, must_be_named
from epochal.cli.target import Choice, OpenedStore, on_store, open_store, side_by_side
from epochal.codec import json
from epochal.contrib.transfer.copying.feed_copy import FeedCopier
from epochal.contrib.transfer.copying.results import StreamCopy, Tally
from epochal.contrib.transfer.copying.sources import CopySource, StreamSource
from epochal.contrib.transfer.copying.stream_copy import StreamCopier
from epochal.contrib.transfer.importing.importer import AT_ONCE, WINDOW, ImportCounts, StreamImporter
from epochal.contrib.transfer.importing.incoming import Misfit
from epochal.contrib.transfer.importing.kinds import KINDS, source_of
from epochal.contrib.transfer.importing.sources import mapped
from epochal.contrib.transfer.importing.text_columns import TextColumns
from epochal.contrib.transfer.importing.typed_bodies import TypedBodies
from epochal.contrib.transfer.importing.writing import HistoryWriter, Pace, make_dry_run_writer, writing
from epochal.deciders.codecs import EventCodec
from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.layout.registry import layout_named
from epochal.model.quantities import quantity
from epochal.plugins import NATIVE, layouts
from epochal.settings import Settings
from epochal.store.streams import Streams

SHOWN: Final = 20
"""Rejected rows that a run prints; a file has all of them."""


@click.command(name="import")
@click.argument("place")
@click.option(
    "--from", "kind", type=click.Choice([*KINDS]), help="Kind of PLACE. The default follows from its name."
)
@click.option(
    "--map",
    "text",
    default="",
    metavar="FIELD=COLUMN,…",
    help="Columns that hold the fields of an event, separated by commas.",
)
@click.option(
    "--mapping",
    "file",
    default="",
    metavar="FILE",
    help="TOML or JSON file with the mapping, instead of --map.",
)
@click.option(
    "--codec",
    "target",
    default="",
    metavar="MODULE:NAME",
    help="Codec that converts cells to the types of its events, and decodes every event before it is written. It "
    "must not seal.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print what would be written and its price, and write nothing. Needs no store.",
)
@click.option(
    "--verify", is_flag=True, help="Read the whole source again at the end, and compare it with the store."
)
@click.option(
    "--rejected", metavar="FILE", help="Write rejected rows to this file, one JSON document per line."
)
@click.option("--stop", is_flag=True, help="Stop at the first rejected row.")
@click.option(
    "--skip-bad-lines",
    is_flag=True,
    help="Skip rows that do not name their stream, instead of stopping at them.",
)
@click.option("--renumber", is_flag=True, help="Renumber events if the source has gaps in its numbers.")
@click.option(
    "--encode-names", is_flag=True, help="Write characters that stream names cannot contain as ~XX."
)
@click.option(
    "--delete-emptied", is_flag=True, help="Delete streams whose events are all gone from the source."
)
@click.option(
    "--write-units",
    type=click.IntRange(min=1),
    default=None,
    help="Maximum number of write units that the import uses per second. The default is no limit.",
)
@click.option(
    "--window",
    type=click.IntRange(min=1),
    default=WINDOW,
    show_default=True,
    help="Number of events that are read ahead, so that those of one stream are appended together.",
)
@click.option(
    "--at-once",
    type=click.IntRange(1, 64),
    default=AT_ONCE,
    show_default=True,
    help="Number of streams that are written in parallel.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    help="Number of processes that write, at most as many as --at-once. The default is 1.",
)
@output.with_json
@click.pass_obj
def import_(
    opener: Callable[[], OpenedStore],
    *,
    place: str,
    kind: str | None,
    text: str,
    file: str,
    target: str,
    dry_run: bool,
    verify: bool,
    rejected: str | None,
    stop: bool,
    skip_bad_lines: bool,
    renumber: bool,
    encode_names: bool,
    delete_emptied: bool,
    write_units: int | None,
    window: int,
    at_once: int,
    workers: int,
) -> None:
    """Import events from PLACE, a file or another store.

    Events keep their times, ids, metadata and order within streams. Begin with --dry-run. Run the command again
    after an interruption: events that are stored already are compared and skipped.
    """
    source, fields = source_of(kind or "", place), mapped(text, file)
    rows = source.rows(place, fields, closed=renumber, encoded=encode_names)
    codec, texts = _open_codec(target) if target else None, TextColumns()
    if codec is not None:
        rows = map(TypedBodies(codec, cells=source.has_cells(fields)).typed, rows)
    elif dry_run and source.has_cells(fields):
        rows = texts.watched(rows)
    rejecting = _Rejecting(stop=stop)
    with ExitStack() as opened, output.progress("importing") as tell:
        if rejected:
            rejecting.file = opened.enter_context(inputs.opened(rejected, "--rejected", "w"))
        importer = StreamImporter(
            writer=make_dry_run_writer()
            if dry_run
            else opened.enter_context(_writer(opener(), write_units, workers)),
            rejects=rejecting,
            progress=lambda done: tell(f"{quantity(done.rows, 'row')}, {quantity(done.streams, 'stream')}"),
            verifying=verify and not dry_run,
            at_once=at_once,
            window=window,
            past_unknown=skip_bad_lines,
            deleting=delete_emptied,
            codec=codec,
        )
        done = importer.run(rows)
        if importer.verifying:
            tell("comparing")
            importer.verify()
    _print(done, texts, dry_run=dry_run)
    if done.rejected or done.unlike or done.unread:
        raise ImportIncomplete(done.rejected, rejecting.first, done.unlike, done.unread)


def _open_codec(target: str) -> EventCodec[Any]:
    """Load the codec that `module:name` names; raise `InvalidInput` if it seals.

    An import stores bodies as they are, in plain text. It cannot seal them, since each sealing of a body gives other
    bytes, and a second run would not recognise its events.

    Raises:
        InvalidInput: the codec cannot be loaded, or seals.
    """
    codec = inputs.codec_of(target)
    if codec.sealing is not None:
        raise InvalidInput(
            "--codec",
            f"must not seal, but {target} does: an import would store in plain text what should be sealed. Seal the "
            "bodies in the source with `subjects.seal`, and import them without --codec",
        )
    return codec


class _Rejecting:
    """Prints the first rejected and the first waiting rows, and writes all rows to a file if there is one.

    Attributes:
        stop: whether the first row ends the import
        shown: number of rows so far, of those that wait (True) and of others (False)
        first: line of text for the first row; empty before
        file: file that gets all rows as JSON lines; None for none
    """

    def __init__(self, *, stop: bool) -> None:
        self.stop = stop
        self.shown = {False: 0, True: 0}
        self.first = ""
        self.file: IO[str] | None = None

    def __call__(self, misfit: Misfit) -> None:
        """Print a rejected or waiting row if among the first, write it to the file; raise if `stop` is set.

        Raises:
            ImportIncomplete: the import is to stop at the first such row.
        """
        self.shown[misfit.waits] += 1
        self.first = self.first or _line(misfit)
        if self.file is not None:
            print(plain({**_view(misfit), "row": misfit.raw}), file=self.file, flush=True)
        if self.shown[misfit.waits] <= SHOWN:
            output.stream([misfit], _view, _line)
        if self.stop:
            raise ImportIncomplete(1, _line(misfit), [])


def plain(value: Any) -> str:
    """Format a row as JSON text; values that JSON cannot hold become text."""
    return json.dumps(_plain(value)).decode()


def _plain(value: Any) -> Any:
    """Convert a value to one that JSON can hold; other values become text."""
    match value:
        case dict():
            return {str(name): _plain(member) for name, member in value.items()}
        case list() | tuple():
            return [_plain(member) for member in value]
        case None | bool() | int() | str():
            return value
        case _:
            return str(value)


@contextmanager
def _writer(store: OpenedStore, rate: int | None, workers: int) -> Iterator[HistoryWriter]:
    """Yield the writer of an import, which writes in this process or in worker processes.

    Args:
        store: opened store
        rate: write units a second; None for no limit
        workers: number of processes that write; 1 writes in this process
    """
    choice, workers = side_by_side(workers)
    alone = HistoryWriter(store.streams, pace=Pace(rate=rate or 0))
    if choice is None or workers == 1:
        yield alone
        return
    with writing(alone, workers, partial(_streams_there, choice)) as writer:
        yield writer


def _streams_there(choice: Choice) -> Streams:
    """Open a store in a worker process, and return its streams."""
    return open_store(choice).streams


def _view(misfit: Misfit) -> dict[str, Any]:
    """Convert a rejected row to a JSON object for output."""
    return {"at": misfit.at, "stream": misfit.stream, "rule": misfit.rule}


def _line(misfit: Misfit) -> str:
    """Format a rejected row as a line of text."""
    return ": ".join(part for part in (misfit.at, misfit.stream, misfit.rule) if part)


def _print(done: ImportCounts, texts: TextColumns, *, dry_run: bool) -> None:
    """Print the counts of an import, as JSON or as lines of text."""
    units = round(done.units)
    dollars = units * PRICES["write units"]
    view = {
        "rows": done.rows,
        "streams": done.streams,
        "written": done.written,
        "there": done.there,
        "gone": done.gone,
        "rejected": done.rejected,
        "waiting": done.waiting,
        "renamed": done.renamed,
        "emptied": done.emptied,
        "deleted": done.deleted,
        "bytes": done.bytes,
        "writeUnits": units,
        "dollars": round(dollars, 4),
        "dryRun": dry_run,
        **({"verified": done.verified, "digest": done.digest, "unlike": done.unlike} if done.digest else {}),
        **({"unread": done.unread} if done.unread else {}),
        **({"storedAsText": texts.warnings} if texts.warnings else {}),
    }
    would = "would be written" if dry_run else "written"
    parts = [
        f"{quantity(done.rows, 'row')} read, {quantity(done.written)} {would} to {quantity(done.streams, 'stream')}",
        *([f"{done.there:,} already stored"] if done.there else []),
        *([f"{done.gone:,} gone from the source"] if done.gone else []),
        *([f"{done.rejected:,} rejected"] if done.rejected else []),
    ]
    empty = done.emptied - done.deleted
    lines = [
        "; ".join(parts),
        *([f"{quantity(done.renamed)} with tags got new ids"] if done.renamed else []),
        *([f"{quantity(done.deleted, 'stream')} deleted"] if done.deleted else []),
        *(
            [
                f"{quantity(empty, 'stream')} created empty, since all events are gone; perhaps deleted at the source"
            ]
            if empty
            else []
        ),
        f"{quantity(units, 'write unit')}, {dollars:.4f} dollars on demand in us-east-1",
        *([f"{quantity(done.verified)} read again, digest {done.digest}"] if done.digest else []),
        *texts.lines(),
        *(["--codec MODULE:NAME converts cells to the types of your events"] if texts.warnings else []),
    ]
    output.document(view, lines)


# Copying streams.

STREAMS: Final[Mapping[str, Callable[[Deployment], Streams]]] = {
    layout.name: attrgetter(layout.plugin.streams) for layout in layouts() if layout.plugin.streams
}
"""Layouts of named streams that can be copied to, with a function from a deployment to their store."""

FROM: Final = (*STREAMS, *(layout.name for layout in layouts() if layout.plugin.open_source))
"""Layouts that can be copied from."""


@click.command(name="copy")
@click.argument("streams", nargs=-1, metavar="[STREAM]...")
@click.option(
    "--category", "categories", multiple=True, help="Copy all streams of this category. May be repeated."
)
@click.option("--all", "everything", is_flag=True, help="Copy all streams of the feed.")
@click.option(
    "--from-layout", type=click.Choice(FROM), default=FROM[0], show_default=True, help="Layout to copy from."
)
@click.option(
    "--to-layout",
    type=click.Choice(tuple(STREAMS)),
    default=NATIVE,
    show_default=True,
    help="Layout to copy to.",
)
@click.option(
    "--to-stack", default="", help="Stack that holds the tables to copy to. The default is the same store."
)
@click.option(
    "--snapshots-as",
    default="",
    help="Type of the unfolds that imported snapshots become. The default leaves snapshots out.",
)
@click.option(
    "--again", is_flag=True, help="Compare every stream again, including those that an earlier run copied."
)
@click.option(
    "--removals",
    is_flag=True,
    help="Prune and delete events in copies that were pruned or deleted in their originals.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be copied, and copy nothing.")
@on_store
def copy(
    store: OpenedStore,
    *,
    streams: tuple[str, ...],
    categories: tuple[str, ...],
    everything: bool,
    from_layout: str,
    to_layout: str,
    to_stack: str,
    snapshots_as: str,
    again: bool,
    removals: bool,
    dry_run: bool,
) -> None:
    """Copy streams to another layout or deployment, and compare them.

    Copies have the names of their originals. Choose streams by STREAMS, by --category or by --all. Run the
    command again to copy newer events. Events are removed from copies only with --removals.
    """
    if sum(map(bool, (streams, categories, everything))) != 1:
        raise click.UsageError("Give streams, --category or --all.")
    target = _other_store(to_stack) if to_stack else store
    copier = StreamCopier(
        source=_copy_source(store.deployment, from_layout, snapshots_as),
        target=STREAMS[to_layout](_having(target.deployment, to_layout)),
        removals=removals,
    )
    if not to_stack and from_layout == to_layout:
        raise InvalidInput(
            "--to-layout", "must differ from --from-layout unless --to-stack names another stack"
        )
    tally = Tally()
    with output.progress("copying") as tell:

        def counted(copies: Iterable[StreamCopy]) -> Iterable[StreamCopy]:
            for stream_copy in copies:
                tally.add(stream_copy)
                tell(f"{quantity(tally.streams, 'stream')}, {quantity(tally.copied)}")
                if streams or not stream_copy.sound:
                    yield stream_copy

        if streams:
            visit = copier.planned if dry_run else copier.copy
            copies: Iterable[StreamCopy] = map(visit, dict.fromkeys(streams))
        else:
            feed = FeedCopier(
                copier=copier,
                feed=store.feed,
                name=_name_of_run(to_layout, copier.target.table, categories),
                categories=categories or None,
            )
            copies = feed.planned() if dry_run else feed.copy(again=again)
        output.stream(counted(copies), _copied_view, _copied_line)
    _print_copied(tally, dry_run=dry_run)


def _other_store(stack: str) -> OpenedStore:
    """Open the store of another stack, with the endpoint and region of the command line."""
    parameters = click.get_current_context().find_root().params
    return open_store(
        Choice(settings=Settings(), stack=stack, endpoint=parameters["endpoint"], region=parameters["region"])
    )


def _having(deployment: Deployment, layout: str) -> Deployment:
    """Return the given deployment; raise `TableUnnamed` unless it names the table of a layout.

    Raises:
        TableUnnamed: the deployment has no table for the layout.
    """
    table = layout_named(layout).table
    must_be_named(
        f"is needed for streams in the {layout} layout", **{table: deployment.settings.value(table)}
    )
    return deployment


def _copy_source(deployment: Deployment, layout: str, snapshots: str) -> CopySource:
    """Return the source that copies streams of a layout.

    Args:
        deployment: deployment with the tables
        layout: name of the layout
        snapshots: type of the unfold that a snapshot becomes
    """
    if layout in STREAMS:
        return StreamSource(STREAMS[layout](_having(deployment, layout)))
    open_source = layout_named(layout).plugin.open_source
    assert open_source is not None  # noqa: S101  FROM lists only layouts that have one
    source: CopySource = open_source(_having(deployment, layout), snapshots)
    return source


def _name_of_run(layout: str, table: str, categories: Iterable[str]) -> str:
    """Return the name under which a copy of a feed saves its checkpoint.

    The name tells layout, table and categories. It has dots, as no reaction's name has.
    """
    return ".".join(("copy", layout, table, *sorted(set(categories))))


def _copied_view(stream_copy: StreamCopy) -> dict[str, Any]:
    """Convert the result of a copied stream to a JSON object for output."""
    more = {"digest": stream_copy.digest} if stream_copy.digest else {}
    return {
        "stream": stream_copy.stream,
        "ending": stream_copy.ending,
        "version": stream_copy.version,
        "from": stream_copy.first,
        "copied": stream_copy.copied,
        "compared": stream_copy.events,
        **more,
        **({"why": stream_copy.why} if stream_copy.why else {}),
    }


def _copied_line(stream_copy: StreamCopy) -> str:
    """Format the result of a copied stream as a line of text."""
    if stream_copy.why:
        return f"{stream_copy.stream}: {stream_copy.ending}: {stream_copy.why}"
    pruned = f", from event {stream_copy.first} on: earlier events are pruned" if stream_copy.first else ""
    counts = f"{quantity(stream_copy.copied)} copied, {stream_copy.events:,} compared"
    return f"{stream_copy.stream}: {stream_copy.ending}, {counts}{pruned}"


def _print_copied(tally: Tally, *, dry_run: bool) -> None:
    """Print the sums over copied streams as JSON or a line; raise `Unsound` if a copy is not sound.

    Raises:
        Unsound: a stream was refused, or differs from its copy.
    """
    view = {
        "streams": tally.streams,
        "dryRun": dry_run,
        "copied": tally.copied,
        "pruned": tally.pruned,
        "tombstones": tally.tombstones,
        "unsound": len(tally.unsound),
    }
    verb = "would be copied" if dry_run else "copied"
    line = f"{quantity(tally.streams, 'stream')} visited, {quantity(tally.copied)} {verb}"
    pruned = [f"{tally.pruned:,} with pruned events"] if tally.pruned else []
    tombstones = [quantity(tally.tombstones, "tombstone")] if tally.tombstones else []
    output.document(view, ["; ".join([line, *pruned, *tombstones])])
    if tally.unsound:
        first = ", ".join(unsound.stream for unsound in tally.unsound[:NAMED])
        others = len(tally.unsound) - NAMED
        rest = f" and {others:,} others" if others > 0 else ""
        raise Unsound(f"not every stream has a sound copy: {first}{rest}")
