"""Commands that make files of events, and ask them by SQL."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import click

from epochal.cli import inputs, output
from epochal.cli.feed import CATEGORIES
from epochal.cli.inputs import EventsUnreadable
from epochal.cli.target import Choice, OpenedStore, on_store, open_store, side_by_side
from epochal.codec import json
from epochal.copying.exports import SpooledTables, export_at
from epochal.dynamo.bucket import S3Objects
from epochal.errors import InvalidInput
from epochal.export import origins
from epochal.export.parts import EventExport, ExportCounts, ExportScope
from epochal.export.sql import ask, records
from epochal.feed.reader import FeedReader
from epochal.index.checkpoints import Place, parse_place
from epochal.layout.port import Source, every_table
from epochal.lazy_dataclasses import replace
from epochal.model.events import parse_time
from epochal.plan.ops import TableSpec
from epochal.rows import micros_of

MEASURED: Final = 100
"""Rows by which the widths of a table are chosen."""

WIDEST: Final = 60


def _moment(_: click.Context, option: click.Parameter, text: str | None) -> int | None:
    return None if text is None else micros_of(parse_time(text, option.opts[0]))


SINCE = click.option("--since", callback=_moment, help="Only what happened from then on: ISO 8601.")
UNTIL = click.option("--until", callback=_moment, help="Only what happened before then.")


@click.command(name="export")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "format_",
    type=click.Choice(("parquet", "ndjson", "csv")),
    default="parquet",
    show_default=True,
    help="Of the files.",
)
@CATEGORIES
@SINCE
@UNTIL
@click.option("--from", "start", help="Where in the feed to begin: a moment, or the beginning.")
@click.option("--tables", is_flag=True, help="Read the tables of events, and not the feed.")
@click.option(
    "--from-export",
    "exports",
    multiple=True,
    metavar="TABLE=PLACE",
    help="Read exports of tables: a folder or s3://bucket/prefix. Incremental ones follow it.",
)
@click.option(
    "--codec", default="", metavar="MODULE:NAME", help="A codec of json_codec's: its fields are columns, too."
)
@click.option("--workers", type=click.IntRange(1, 64), help="Processes side by side; else 4 at most.")
@on_store
def export(
    store: OpenedStore,
    *,
    folder: Path,
    format_: Any,
    categories: Sequence[str],
    since: int | None,
    until: int | None,
    start: str | None,
    tables: bool,
    exports: Sequence[str],
    codec: str,
    workers: int | None,
) -> None:
    """Write the events of the feed to files in FOLDER.

    All that are in the feed now, a row each. Run it again to go on after an interruption.
    """
    if tables and exports:
        raise click.UsageError("Say --tables or --from-export.")
    if start is not None and (tables or exports):
        raise click.UsageError("--from is a place in the feed, which tables and their exports do not have.")
    place = parse_place(start or "beginning", "--from")
    if codec:
        inputs.named(codec, "--codec", "a codec")
    wanted = ExportScope(
        source=" ".join((_source(store), *(("tables",) if tables else ()), *exports)),
        format=format_,
        categories=tuple(sorted(set(categories))),
        since=since,
        until=until,
        start=start or "beginning",
        codec=codec,
    )
    if tables or exports:
        counts = _from_tables(store, folder, wanted, exports, workers)
    else:
        counts = _exported(store, folder, wanted, place, workers)
    files = len(list(folder.glob(f"*.{format_}")))
    view = {
        "folder": str(folder),
        "format": format_,
        "files": files,
        "rows": counts.rows,
        "gone": counts.gone,
        "unreadable": counts.faults,
    }
    gone = f", {counts.gone:,} of them gone" if counts.gone else ""
    named = f"{output.count(files, 'file')} of {folder}"
    output.document(view, [f"{output.count(counts.rows)} in {named}{gone}"])
    if counts.faults:
        raise EventsUnreadable(counts.faults)


def _exported(
    store: OpenedStore, folder: Path, wanted: ExportScope, start: Place, workers: int | None = None
) -> ExportCounts:
    choice, workers = side_by_side(workers)
    begun = origins.begin_feed(store.feed, folder, wanted, start)
    opened: Callable[[], FeedReader] = (lambda: store.feed) if choice is None else partial(_feed, choice)
    return _told(partial(origins.run_feed, begun, opened), begun, workers)


def _from_tables(
    store: OpenedStore, folder: Path, wanted: ExportScope, exports: Sequence[str], workers: int | None
) -> ExportCounts:
    choice, workers = side_by_side(workers)
    with TemporaryDirectory(prefix="epochal-export-") as spool:
        file = Path(spool) / "tables" if exports else None
        sources = store.deployment.sources
        if file is None:
            sizes = {each.name: each.bytes for each in store.sizes()}
        else:
            sizes = _spooled(store, file, exports)
            sources = tuple(each for each in sources if each.table in sizes)
            if not sources:
                raise InvalidInput("--from-export", "must have a table with the heads of streams")
        segments = {each.base: origins.segments_of(sizes.get(each.table, 0)) for each in sources}
        begun = origins.begin_tables(folder, wanted, segments)
        opened = partial(_tables, store, file) if choice is None else partial(_tables_there, choice, file)
        return _told(partial(origins.run_tables, begun, opened), begun, workers)


def _spooled(store: OpenedStore, file: Path, exports: Sequence[str]) -> dict[str, int]:
    """The tables that there are exports of, on disk, with how large they are together."""
    tables = {kind: name for name, kind in store.deployment.settings.kinds.items()}
    places: dict[str, list[str]] = {}
    for each in exports:
        kind, equals, place = each.partition("=")
        if not equals or kind not in tables:
            raise InvalidInput(
                "--from-export", f"must be {', '.join(sorted(tables))}, then =, and a place: {each!r} is not"
            )
        places.setdefault(tables[kind], []).append(place)
    spooled = SpooledTables(file, _specs(store))
    with output.progress("reading exports") as tell:
        for table, (full, *after) in places.items():
            items = export_at(
                full, lambda bucket: S3Objects(store.client("s3"), bucket).open, *after
            ).fields()
            tell(f"{table}: {spooled.fill(table, items):,} items")
    return dict.fromkeys(places, file.stat().st_size)


def _specs(store: OpenedStore) -> dict[str, TableSpec]:
    specs = {spec.kind: spec for spec in every_table()}
    return {name: specs[kind] for name, kind in store.deployment.settings.kinds.items()}


def _tables(store: OpenedStore, file: Path | None) -> tuple[FeedReader, Sequence[Source]]:
    """What reads the tables of a store, or exports of them."""
    found = store.deployment
    if file is not None:
        spooled = SpooledTables(file, _specs(store))
        found = replace(found, driver=replace(found.driver, execute=spooled.execute))
    return found.feed, found.sources


def _tables_there(choice: Choice, file: Path | None) -> tuple[FeedReader, Sequence[Source]]:
    """Likewise, in a process of its own."""
    return _tables(open_store(choice), file)


def _told(run: Callable[..., ExportCounts], begun: EventExport, workers: int) -> ExportCounts:
    with output.progress("exporting") as tell:
        return run(
            workers=min(workers, max(1, len(begun.ranges))),
            told=lambda counts: tell(output.count(counts.rows)),
        )


def _feed(choice: Choice) -> FeedReader:
    """In a process of its own."""
    return open_store(choice).feed


def _source(store: OpenedStore) -> str:
    """Which feed it is: where, and the table of its index."""
    said = click.get_current_context().find_root().params
    where = said.get("endpoint") or said.get("region") or ""
    return f"{where} {store.deployment.settings.index_table}".strip()


@click.command()
@click.argument("statement")
@click.argument("place", type=click.Path(path_type=Path), required=False)
@CATEGORIES
@SINCE
@UNTIL
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.pass_context
@output.with_json
def sql(
    context: click.Context,
    *,
    statement: str,
    place: Path | None,
    categories: Sequence[str],
    since: int | None,
    until: int | None,
    as_csv: bool,
) -> None:
    """Answer a SELECT over the table events, by DuckDB.

    PLACE is an export or a file of one. Without it the store is exported to a temporary folder first: --category,
    --since and --until say how much of it.
    """
    if as_csv and output.as_json():
        raise click.UsageError("Print CSV or JSON.")

    def answer(files: Path) -> None:
        try:
            found = ask(statement, files)
        except ModuleNotFoundError as error:
            raise InvalidInput("sql", str(error)) from error
        _print(found.schema.names, records(found), as_csv=as_csv)

    if place is not None:
        if categories or since is not None or until is not None:
            raise click.UsageError("--category, --since and --until are for a store, not for a PLACE.")
        answer(place)
        return
    with TemporaryDirectory(prefix="epochal-sql-") as folder:
        wanted = ExportScope(source="", categories=tuple(sorted(set(categories))), since=since, until=until)
        _exported(context.obj(), Path(folder), wanted, "beginning")
        answer(Path(folder))


def _print(names: Sequence[str], rows: Iterator[Mapping[str, Any]], *, as_csv: bool) -> None:
    if output.as_json():
        for row in rows:
            click.echo(json.dumps({name: _plain(value) for name, value in row.items()}).decode())
    elif as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([_text(row[name]) for name in names] for row in rows)
    else:
        for line in output.fitting(_table(names, ([_text(row[name]) for name in names] for row in rows))):
            click.echo(line)


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Columns as wide as what their first rows have."""
    left = iter(rows)
    first = list(islice(left, MEASURED))
    widths = [
        min(WIDEST, max(map(len, column)))
        for column in zip(*([" ".join(cell.split()) for cell in row] for row in (names, *first)), strict=True)
    ]
    for row in chain((names,), first, left):
        cells = (f"{' '.join(cell.split()):<{width}}" for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def _text(value: Any) -> str:
    plain = _plain(value)
    if plain is None:
        return ""
    return plain if isinstance(plain, str) else json.dumps(plain).decode()


def _plain(value: Any) -> Any:
    """A value as JSON has it: times as ISO 8601, bytes as hexadecimal digits, numbers that JSON lacks as text."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return value.hex()
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return str(value)
    return value
