"""The command that brings in a history from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

import click

from epochal.cli import output
from epochal.cli.errors import ImportIncomplete
from epochal.cli.target import Choice, OpenedStore, open_store, side_by_side
from epochal.codec import json
from epochal.errors import InvalidInput
from epochal.importing.importer import AT_ONCE, WINDOW, ImportCounts, StreamImporter
from epochal.importing.incoming import Misfit
from epochal.importing.sources import KINDS, mapped, source_of
from epochal.importing.writing import HistoryWriter, Pace, pretended, writing
from epochal.proving.proof import PRICES
from epochal.store.streams import Streams

SHOWN: Final = 20
"""Rows that do not fit of which a run prints why; a file has all of them."""


@click.command(name="import")
@click.argument("place")
@click.option("--from", "kind", type=click.Choice(KINDS), help="What PLACE is, where its name does not tell.")
@click.option("--map", "text", default="", metavar="FIELD=COLUMN,…", help="Where the fields of an event are.")
@click.option("--mapping", "file", default="", metavar="FILE", help="The same, as a TOML or JSON file.")
@click.option(
    "--dry-run", is_flag=True, help="Only tell what would be written, and its price. Needs no store."
)
@click.option("--verify", is_flag=True, help="Read all of it again at the end, and compare.")
@click.option("--rejected", metavar="FILE", help="Write what does not fit to a file, a line of JSON each.")
@click.option("--stop", is_flag=True, help="Stop at the first event that does not fit.")
@click.option("--skip-bad-lines", is_flag=True, help="Leave out for good what does not tell its stream.")
@click.option("--renumber", is_flag=True, help="Number events anew, where a source has gaps.")
@click.option(
    "--delete-emptied", is_flag=True, help="Delete streams of which nothing is left at their source."
)
@click.option(
    "--write-units", type=click.IntRange(min=1), default=None, help="Of the table, a second, at most."
)
@click.option(
    "--window",
    type=click.IntRange(min=1),
    default=WINDOW,
    show_default=True,
    help="Events within which those of a stream go out together.",
)
@click.option(
    "--at-once", type=click.IntRange(1, 64), default=AT_ONCE, show_default=True, help="Streams side by side."
)
@click.option(
    "--workers", type=click.IntRange(1, 64), default=1, help="Processes that write; as --at-once at most."
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
    dry_run: bool,
    verify: bool,
    rejected: str | None,
    stop: bool,
    skip_bad_lines: bool,
    renumber: bool,
    delete_emptied: bool,
    write_units: int | None,
    window: int,
    at_once: int,
    workers: int,
) -> None:
    """Bring in a history from PLACE: a file, or another store.

    Events keep their times, ids, metadata, and order in their streams. Begin with --dry-run. Run it again after
    whatever ended it: what is there already is compared, and passed over.
    """
    rows = source_of(kind or "", place).rows(place, mapped(text, file), closed=renumber)
    rejecting = _Rejecting(stop=stop)
    with ExitStack() as opened, output.progress("importing") as tell:
        if rejected:
            rejecting.file = opened.enter_context(_written(rejected))
        importer = StreamImporter(
            writer=pretended() if dry_run else opened.enter_context(_writer(opener(), write_units, workers)),
            rejects=rejecting,
            progress=lambda done: tell(f"{_count(done.rows, 'row')}, {_count(done.streams, 'stream')}"),
            verifying=verify and not dry_run,
            at_once=at_once,
            window=window,
            past_unknown=skip_bad_lines,
            deleting=delete_emptied,
        )
        done = importer.run(rows)
        if importer.verifying:
            tell("comparing")
            importer.verify()
    _print(done, dry_run=dry_run)
    if done.rejected or done.unlike:
        raise ImportIncomplete(done.rejected, rejecting.first, done.unlike)


class _Rejecting:
    """Prints the first rows that do not fit, and of those that wait; writes all to a file where there is one."""

    def __init__(self, *, stop: bool) -> None:
        self.stop = stop
        self.shown = {False: 0, True: 0}
        self.first = ""
        self.file: IO[str] | None = None

    def __call__(self, misfit: Misfit) -> None:
        """Take note of one."""
        self.shown[misfit.waits] += 1
        self.first = self.first or _line(misfit)
        if self.file is not None:
            print(plain({**_view(misfit), "row": misfit.raw}), file=self.file, flush=True)
        if self.shown[misfit.waits] <= SHOWN:
            output.stream([misfit], _view, _line)
        if self.stop:
            raise ImportIncomplete(1, _line(misfit), [])


def plain(value: Any) -> str:
    """A row as JSON; what is no JSON, as text."""
    return json.dumps(_plain(value)).decode()


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(name): _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case None | bool() | int() | str():
            return value
        case _:
            return str(value)


@contextmanager
def _writer(store: OpenedStore, rate: int | None, workers: int) -> Iterator[HistoryWriter]:
    choice, workers = side_by_side(workers)
    alone = HistoryWriter(store.streams, pace=Pace(rate=rate or 0))
    if choice is None or workers == 1:
        yield alone
        return
    with writing(alone, workers, partial(_streams_there, choice)) as writer:
        yield writer


def _streams_there(choice: Choice) -> Streams:
    """In a process of its own."""
    return open_store(choice).streams


def _written(path: str) -> IO[str]:
    try:
        return Path(path).open("w", encoding="utf-8")
    except OSError as error:
        raise InvalidInput("--rejected", f"cannot be written: {error}") from error


def _view(misfit: Misfit) -> dict[str, Any]:
    return {"at": misfit.at, "stream": misfit.stream, "rule": misfit.rule}


def _line(misfit: Misfit) -> str:
    return ": ".join(each for each in (misfit.at, misfit.stream, misfit.rule) if each)


def _print(done: ImportCounts, *, dry_run: bool) -> None:
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
    }
    would = "would be written" if dry_run else "written"
    parts = [
        f"{_count(done.rows, 'row')} read, {output.events(done.written)} {would} to {_count(done.streams, 'stream')}",
        *([f"{done.there:,} were there"] if done.there else []),
        *([f"{done.gone:,} gone at their source"] if done.gone else []),
        *([f"{done.rejected:,} rejected"] if done.rejected else []),
    ]
    kept = done.emptied - done.deleted
    lines = [
        "; ".join(parts),
        *([f"ids of {output.events(done.renamed)} with tags are new ones"] if done.renamed else []),
        *([f"{_count(done.deleted, 'stream')} deleted"] if done.deleted else []),
        *(
            [
                f"{_count(kept, 'stream')} of which nothing is left begun empty: deleted there or not, nothing tells"
            ]
            if kept
            else []
        ),
        f"{_count(units, 'write unit')}, {dollars:.4f} dollars on demand in us-east-1",
        *([f"{output.events(done.verified)} read again, digest {done.digest}"] if done.digest else []),
    ]
    output.document(view, lines)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
