"""Commands that export events to files, and query these by SQL."""

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

from epochal.care.spooled_tables import SpooledTables
from epochal.care.table_exports import export_at
from epochal.cli import inputs, output
from epochal.cli.feed import CATEGORIES
from epochal.cli.inputs import Unsound
from epochal.cli.target import Choice, OpenedStore, on_store, open_store, side_by_side
from epochal.codec import json
from epochal.contrib.transfer.export import origins
from epochal.contrib.transfer.export.parts import EventExport, ExportCounts, ExportScope
from epochal.contrib.transfer.export.queries import ask, records
from epochal.contrib.transfer.rows import micros_of
from epochal.dynamo.s3_objects import S3Objects
from epochal.errors import InvalidInput
from epochal.feed.reader import FeedReader
from epochal.index.checkpoints import FeedStart, parse_place
from epochal.layout.source import Source
from epochal.layout.tables import every_table
from epochal.lazy_dataclasses import replace
from epochal.model.moments import read_moment
from epochal.model.quantities import quantity
from epochal.plan.tables import TableSpec

MEASURED: Final = 100
"""Rows that a printed table's column widths are computed from."""

WIDEST: Final = 60


def _moment(_: click.Context, option: click.Parameter, text: str | None) -> int | None:
    """Parse the ISO 8601 time of an option to microseconds since 1970."""
    return None if text is None else micros_of(read_moment(text, option.opts[0]))


SINCE = click.option(
    "--since", callback=_moment, help="Include only events that happened at this ISO 8601 time or later."
)
UNTIL = click.option(
    "--until", callback=_moment, help="Include only events that happened before this ISO 8601 time."
)


@click.command(name="export", short_help="Write events of the feed, of tables or of exports into files.")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "format_",
    type=click.Choice(("parquet", "ndjson", "csv")),
    default="parquet",
    show_default=True,
    help="Format of the files.",
)
@CATEGORIES
@SINCE
@UNTIL
@click.option(
    "--from",
    "start",
    help="Place in the feed to begin at: an ISO 8601 time, or beginning, which is the default.",
)
@click.option(
    "--tables", is_flag=True, help="Read events from the tables that store them, instead of the feed."
)
@click.option(
    "--from-export",
    "exports",
    multiple=True,
    metavar="TABLE=PLACE",
    help="Read a DynamoDB export of a table, in a folder or at s3://bucket/prefix. Repeat it for incremental "
    "exports, in order.",
)
@click.option(
    "--codec",
    default="",
    metavar="MODULE:NAME",
    help="Codec made by json_codec. The fields of its events become columns.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    help="Number of processes that export in parallel. The default is one for each core, at most 4.",
)
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
    """Write events of the feed, of tables or of DynamoDB exports as rows to files in FOLDER.

    Each event is a row. The export ends at the last event that is in the feed when it begins. Run the command again to
    continue after an interruption.
    """
    if tables and exports:
        raise click.UsageError("Give --tables or --from-export, not both.")
    if start is not None and (tables or exports):
        raise click.UsageError("--from applies only to the feed, not to --tables or --from-export.")
    place = parse_place(start or "beginning", "--from")
    if codec:
        inputs.load_named(codec, "--codec", "a codec")
    scope = ExportScope(
        source=" ".join((_source(store), *(("tables",) if tables else ()), *exports)),
        format=format_,
        categories=tuple(sorted(set(categories))),
        since=since,
        until=until,
        start=start or "beginning",
        codec=codec,
    )
    if tables or exports:
        counts = _from_tables(store, folder, scope, exports, workers)
    else:
        counts = _exported(store, folder, scope, place, workers)
    files = len(list(folder.glob(f"*.{format_}")))
    view = {
        "folder": str(folder),
        "format": format_,
        "files": files,
        "rows": counts.rows,
        "gone": counts.gone,
        "unreadable": counts.faults,
    }
    gone_words = f", {counts.gone:,} of them gone" if counts.gone else ""
    files_in_folder = f"{quantity(files, 'file')} of {folder}"
    output.document(view, [f"{quantity(counts.rows)} in {files_in_folder}{gone_words}"])
    if counts.faults:
        raise Unsound(
            f"{counts.faults:,} of the events cannot be read: `select stream, index, fault` shows which and why"
        )


def _exported(
    store: OpenedStore, folder: Path, scope: ExportScope, start: FeedStart, workers: int | None = None
) -> ExportCounts:
    """Export the feed of a store to files in a folder, with a progress line, and return the counts."""
    choice, workers = side_by_side(workers)
    event_export = origins.begin_feed(store.feed, folder, scope, start)
    opened: Callable[[], FeedReader] = (lambda: store.feed) if choice is None else partial(_feed, choice)
    return _run_with_progress(partial(origins.run_feed, event_export, opened), event_export, workers)


def _from_tables(
    store: OpenedStore, folder: Path, scope: ExportScope, exports: Sequence[str], workers: int | None
) -> ExportCounts:
    """Export the events of a store's tables, or of DynamoDB exports of tables, and return the counts.

    Args:
        store: opened store
        folder: folder for the files
        scope: selection of events
        exports: `TABLE=PLACE` for each export to read; empty to read the tables themselves
        workers: number of worker processes; None for the default

    Raises:
        InvalidInput: an export is not named as `TABLE=PLACE`, or none is of a table with heads of streams.
    """
    choice, workers = side_by_side(workers)
    with TemporaryDirectory(prefix="epochal-export-") as spool:
        file = Path(spool) / "tables" if exports else None
        sources = store.deployment.sources
        if file is None:
            sizes = {size.name: size.bytes for size in store.sizes()}
        else:
            sizes = _spooled(store, file, exports)
            sources = tuple(source for source in sources if source.table in sizes)
            if not sources:
                raise InvalidInput("--from-export", "must include a table that holds the heads of streams")
        segments = {source.base: origins.segments_of(sizes.get(source.table, 0)) for source in sources}
        event_export = origins.begin_tables(folder, scope, segments)
        opened = partial(_tables, store, file) if choice is None else partial(_tables_there, choice, file)
        return _run_with_progress(partial(origins.run_tables, event_export, opened), event_export, workers)


def _spooled(store: OpenedStore, file: Path, exports: Sequence[str]) -> dict[str, int]:
    """Load DynamoDB exports of tables into a local file, and return the file's size for each table name.

    The size of the whole file stands for each table's.

    Raises:
        InvalidInput: an export is not named as `TABLE=PLACE`, with a table that the store has.
    """
    tables = {kind: name for name, kind in store.deployment.settings.kinds.items()}
    places: dict[str, list[str]] = {}
    for export in exports:
        kind, equals, place = export.partition("=")
        if not equals or kind not in tables:
            raise InvalidInput(
                "--from-export",
                f"must be TABLE=PLACE, where TABLE is one of {', '.join(sorted(tables))}, got {export!r}",
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
    """Return the key schemas of a store's tables, by table name."""
    specs = {spec.kind: spec for spec in every_table()}
    return {name: specs[kind] for name, kind in store.deployment.settings.kinds.items()}


def _tables(store: OpenedStore, file: Path | None) -> tuple[FeedReader, Sequence[Source]]:
    """Return the feed reader and sources of a store, which read `file` in place of tables if it is given.

    Args:
        store: opened store
        file: file with exports of tables, to read in place of the tables; None for the tables
    """
    deployment = store.deployment
    if file is not None:
        spooled = SpooledTables(file, _specs(store))
        deployment = replace(deployment, driver=replace(deployment.driver, execute=spooled.execute))
    return deployment.feed, deployment.sources


def _tables_there(choice: Choice, file: Path | None) -> tuple[FeedReader, Sequence[Source]]:
    """Open a store in a worker process, and return its feed reader and sources as `_tables` does."""
    return _tables(open_store(choice), file)


def _run_with_progress(
    run: Callable[..., ExportCounts], event_export: EventExport, workers: int
) -> ExportCounts:
    """Run an export with a progress line, and return its counts."""
    with output.progress("exporting") as tell:
        return run(
            workers=min(workers, max(1, len(event_export.ranges))),
            report=lambda counts: tell(quantity(counts.rows)),
        )


def _feed(choice: Choice) -> FeedReader:
    """Open a store in a worker process, and return its feed reader."""
    return open_store(choice).feed


def _source(store: OpenedStore) -> str:
    """Return a name for the store's feed: endpoint or region, and the name of its index table."""
    parameters = click.get_current_context().find_root().params
    where = parameters.get("endpoint") or parameters.get("region") or ""
    return f"{where} {store.deployment.settings.index_table}".strip()


@click.command(short_help="Run a SELECT in DuckDB over `events`; print the rows.")
@click.argument("statement")
@click.argument("place", type=click.Path(path_type=Path), required=False)
@CATEGORIES
@SINCE
@UNTIL
@click.option("--csv", "as_csv", is_flag=True, help="Print the result as CSV.")
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
    """Run a SELECT in DuckDB over the table `events`, of an export or of the store, and print the rows.

    PLACE is an export, or a file of one. Without PLACE, the events of the store that --category, --since
    and --until select are exported to a temporary folder first.
    """
    if as_csv and output.as_json():
        raise click.UsageError("Give --csv or --json, not both.")

    def answer(files: Path) -> None:
        """Run the statement over the files, and print the rows."""
        try:
            answered = ask(statement, files)
        except ModuleNotFoundError as error:
            raise InvalidInput("sql", str(error)) from error
        _print(answered.schema.names, records(answered), as_csv=as_csv)

    if place is not None:
        if categories or since is not None or until is not None:
            raise click.UsageError("--category, --since and --until apply only without PLACE.")
        answer(place)
        return
    with TemporaryDirectory(prefix="epochal-sql-") as folder:
        scope = ExportScope(source="", categories=tuple(sorted(set(categories))), since=since, until=until)
        _exported(context.obj(), Path(folder), scope, "beginning")
        answer(Path(folder))


def _print(names: Sequence[str], rows: Iterator[Mapping[str, Any]], *, as_csv: bool) -> None:
    """Print the rows of a query as JSON lines, as CSV, or as an aligned table."""
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
    """Yield the lines of an aligned table, with column widths taken from the first rows."""
    remaining = iter(rows)
    first = list(islice(remaining, MEASURED))
    widths = [
        min(WIDEST, max(map(len, column)))
        for column in zip(*([" ".join(cell.split()) for cell in row] for row in (names, *first)), strict=True)
    ]
    for row in chain((names,), first, remaining):
        cells = (f"{' '.join(cell.split()):<{width}}" for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def _text(value: Any) -> str:
    """Format a value as the text of a CSV or table cell."""
    plain = _plain(value)
    if plain is None:
        return ""
    return plain if isinstance(plain, str) else json.dumps(plain).decode()


def _plain(value: Any) -> Any:
    """Convert a value to one for JSON: times to ISO 8601, bytes to hex digits, others it lacks to text.

    Times become ISO 8601 text, bytes hexadecimal digits, and numbers that JSON lacks text.
    """
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {str(name): _plain(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    if isinstance(value, bytes):
        return value.hex()
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return str(value)
    return value
