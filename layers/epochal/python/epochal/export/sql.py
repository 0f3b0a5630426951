"""SQL over files of rows, by DuckDB: one statement that reads the table `events`, and nothing else of the machine.

A statement is checked to be a SELECT before anything runs, and the database may open the files of rows alone: no other
file, no network, no extension, no variable of the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from epochal.errors import InvalidInput, brought_by
from epochal.export.files import FORMATS, TYPED, Format
from epochal.export.parts import found_in
from epochal.rows import COLUMNS, Kind

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

MEMORY: Final = "1GB"
"""What the database takes; what a statement needs beyond it, it keeps on disk."""

AT_ONCE: Final = 2_048
"""Rows of an answer in memory."""

LARGEST: Final = 64 * 1024 * 1024
"""Bytes of a line of NDJSON or CSV."""

_TYPES: Final[dict[Kind, str]] = {
    "int": "BIGINT",
    "time": "TIMESTAMPTZ",
    "texts": "VARCHAR[]",
    "bool": "BOOLEAN",
}
_TYPES_OF: Final = {"int64": "BIGINT", "float64": "DOUBLE", "bool": "BOOLEAN", "timestamp": "TIMESTAMPTZ"}
"""Of columns that a codec's events have."""

_COLUMNS: Final = {each.name: _TYPES.get(each.kind, "VARCHAR") for each in COLUMNS}


def files_at(place: Path) -> tuple[Format, list[Path]]:
    """The files of rows at a place, which is one of them or a folder of such.

    Raises:
        InvalidInput: there are none, or of several formats; or the export there is not complete.
    """
    if not place.is_dir():
        named: dict[str, Format] = {f".{each}": each for each in FORMATS}
        if not place.is_file() or place.suffix not in named:
            raise InvalidInput("place", f"must be a folder, or a file with rows: {', '.join(named)}")
        return named[place.suffix], [place.resolve()]
    export = found_in(place)
    if export is not None and not export.complete:
        raise InvalidInput("place", "has an export that has not ended: run it again, and it goes on")
    found = {each: sorted(place.glob(f"*.{each}")) for each in FORMATS}
    there = [each for each in FORMATS if found[each]]
    if len(there) != 1:
        raise InvalidInput("place", "must have files of one format" if there else "has no files with rows")
    return there[0], [path.resolve() for path in found[there[0]]]


def ask(statement: str, place: Path) -> pa.RecordBatchReader:
    """The answer to a statement over the files at a place, read as it is consumed.

    Raises:
        InvalidInput: it is no SQL, not one SELECT, names what is not there, or cannot be computed.
    """
    format_, paths = files_at(place)
    export = found_in(place if place.is_dir() else place.parent)
    typed = () if export is None else export.wanted.columns
    database = _opened(
        format_, paths, {f"{TYPED}{name}": _TYPES_OF.get(kind, "VARCHAR") for name, kind in typed}
    )
    with _refused():
        statements = database.extract_statements(statement)
    duckdb = engine()
    if [each.type for each in statements] != [duckdb.StatementType.SELECT]:
        raise InvalidInput("statement", "must be one SELECT: nothing else is run")
    with _refused():
        # Of columns of one name each gets another, as in a subquery: in a row there is one of a name.
        relation = database.sql(statement).project("*")
        # So it is called from DuckDB 2 on.
        reading = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
        answer: pa.RecordBatchReader = reading(AT_ONCE)
        return answer


def records(answer: pa.RecordBatchReader) -> Iterator[dict[str, Any]]:
    """The rows of an answer."""
    while True:
        with _refused():
            try:
                rows = answer.read_next_batch().to_pylist()
            except StopIteration:
                return
        yield from rows


def _opened(format_: Format, paths: Sequence[Path], typed: Mapping[str, str]) -> duckdb.DuckDBPyConnection:
    """A database in memory, with the table, closed to all else."""
    closed = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "memory_limit": MEMORY,
        "preserve_insertion_order": "true",
    }
    database: duckdb.DuckDBPyConnection = engine().connect(":memory:", config=closed)
    listed = ", ".join(map(_quoted, map(str, paths)))
    database.execute(f"SET allowed_paths = [{listed}]")
    for setting in ("TimeZone = 'UTC'", "enable_external_access = false", "lock_configuration = true"):
        database.execute(f"SET {setting}")
    with _refused():
        database.execute(f"CREATE VIEW events AS {_reading(format_, listed, {**_COLUMNS, **typed})}")
    return database


def _reading(format_: Format, listed: str, columns: Mapping[str, str]) -> str:
    if format_ == "parquet":
        return f"SELECT * FROM read_parquet([{listed}], hive_partitioning=false)"  # noqa: S608  paths are quoted
    types = ", ".join(f"{_quoted(name)}: {_quoted(kind)}" for name, kind in columns.items())
    if format_ == "ndjson":
        more = f"format='newline_delimited', maximum_object_size={LARGEST}, hive_partitioning=false"
        return f"SELECT * FROM read_json([{listed}], columns={{{types}}}, {more})"  # noqa: S608  likewise
    as_text = types.replace("VARCHAR[]", "VARCHAR")
    more = f"header=true, delim=',', quote='\"', escape='\"', max_line_size={LARGEST}, auto_detect=false"
    more += ", hive_partitioning=false"
    tags = "REPLACE (CAST(CAST(tags AS JSON) AS VARCHAR[]) AS tags)"
    return f"SELECT * {tags} FROM read_csv([{listed}], columns={{{as_text}}}, {more})"  # noqa: S608  likewise


def _quoted(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


@contextmanager
def _refused() -> Iterator[None]:
    """What DuckDB refuses is an error of the statement, and so is a time that Python has none for."""
    duckdb = engine()
    import pyarrow as pa  # noqa: PLC0415  it is there where DuckDB is

    try:
        yield
    except (duckdb.Error, pa.ArrowException, OverflowError, ValueError) as error:
        raise InvalidInput("statement", f"is refused: {error}") from error


def engine() -> Any:
    """DuckDB; raises `ModuleNotFoundError` with what to install."""
    with brought_by("export", "SQL statements", "duckdb", "pyarrow"):
        import duckdb  # noqa: PLC0415  an extra
        import pyarrow as pa  # noqa: F401, PLC0415  likewise
    return duckdb
