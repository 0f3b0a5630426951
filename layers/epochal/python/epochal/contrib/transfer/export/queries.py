"""SQL over files of rows, by DuckDB: a single statement reads the table `events`, and cannot access anything else.

A statement is checked to be a SELECT before anything runs. The database may open the files of rows only: it cannot
access other files, the network, extensions or variables of the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from epochal.contrib.transfer.export.files import FORMATS, TYPED, Format
from epochal.contrib.transfer.export.parts import load_export
from epochal.contrib.transfer.rows import COLUMNS, Kind
from epochal.errors import InvalidInput, brought_by

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

MEMORY: Final = "1GB"
"""Memory of the database; a statement that needs more spills to disk."""

AT_ONCE: Final = 2_048
"""Rows of a result in memory at a time."""

LARGEST: Final = 64 * 1024 * 1024
"""Largest line of NDJSON or CSV, in bytes."""

_TYPES: Final[dict[Kind, str]] = {
    "int": "BIGINT",
    "time": "TIMESTAMPTZ",
    "texts": "VARCHAR[]",
    "bool": "BOOLEAN",
}
_TYPES_OF: Final = {"int64": "BIGINT", "float64": "DOUBLE", "bool": "BOOLEAN", "timestamp": "TIMESTAMPTZ"}
"""SQL types of the columns of a codec's events, by their column types."""

_COLUMNS: Final = {column.name: _TYPES.get(column.kind, "VARCHAR") for column in COLUMNS}


def files_at(place: Path) -> tuple[Format, list[Path]]:
    """Return the format and paths of the row files at a path; raise if none, mixed or unfinished ones.

    Raises:
        InvalidInput: the path does not exist, or has files of no format or of several; or the export in the folder
            is not complete.
    """
    if not place.is_dir():
        if not place.exists():
            raise InvalidInput("place", f"{place} does not exist")
        formats_by_suffix: dict[str, Format] = {f".{name}": name for name in FORMATS}
        if not place.is_file() or place.suffix not in formats_by_suffix:
            raise InvalidInput(
                "place", f"must be a folder, or a file that ends in one of {', '.join(formats_by_suffix)}"
            )
        return formats_by_suffix[place.suffix], [place.resolve()]
    export = load_export(place)
    if export is not None and not export.complete:
        raise InvalidInput("place", "contains an unfinished export: run the export again to finish it")
    files = {name: sorted(place.glob(f"*.{name}")) for name in FORMATS}
    formats = [name for name in FORMATS if files[name]]
    if len(formats) != 1:
        raise InvalidInput(
            "place", "must contain files of a single format" if formats else "contains no files with rows"
        )
    return formats[0], [path.resolve() for path in files[formats[0]]]


def ask(statement: str, place: Path) -> pa.RecordBatchReader:
    """Run one SELECT, and no other SQL, over the row files at a path; return a reader of the result.

    The statement reads the table `events`. It runs as the result is consumed.

    Raises:
        InvalidInput: the statement is no SQL, is not a single SELECT, names what does not exist, or cannot be
            computed.
    """
    format_, paths = files_at(place)
    export = load_export(place if place.is_dir() else place.parent)
    typed = () if export is None else export.scope.columns
    database = _opened(
        format_, paths, {f"{TYPED}{name}": _TYPES_OF.get(kind, "VARCHAR") for name, kind in typed}
    )
    with _refused():
        statements = database.extract_statements(statement)
    duckdb = engine()
    if [parsed.type for parsed in statements] != [duckdb.StatementType.SELECT]:
        raise InvalidInput("statement", "must be a single SELECT statement")
    with _refused():
        # This renames columns of the same name, as a subquery does: a dictionary has each name once.
        relation = database.sql(statement).project("*")
        # DuckDB 2 renames the method.
        reading = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
        answer: pa.RecordBatchReader = reading(AT_ONCE)
        return answer


def records(answer: pa.RecordBatchReader) -> Iterator[dict[str, Any]]:
    """Yield a query result's rows as dictionaries by column name; raise `InvalidInput` if the query fails.

    Raises:
        InvalidInput: the query fails while it is computed.
    """
    while True:
        with _refused():
            try:
                rows = answer.read_next_batch().to_pylist()
            except StopIteration:
                return
        yield from rows


def _opened(format_: Format, paths: Sequence[Path], typed: Mapping[str, str]) -> duckdb.DuckDBPyConnection:
    """Open an in-memory DuckDB database with the view `events` over row files, and access to nothing else.

    The database can access these files and nothing else.

    Args:
        format_: format of the files
        paths: paths of the files
        typed: SQL types of the columns of a codec's events, by column name
    """
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
    """Build the SELECT with which DuckDB reads files of rows.

    Args:
        format_: format of the files
        listed: quoted paths of the files, with commas between them
        columns: SQL types of all columns, by name
    """
    if format_ == "parquet":
        return f"SELECT * FROM read_parquet([{listed}], hive_partitioning=false)"  # noqa: S608  paths are quoted
    types = ", ".join(f"{_quoted(name)}: {_quoted(kind)}" for name, kind in columns.items())
    if format_ == "ndjson":
        more = f"format='newline_delimited', maximum_object_size={LARGEST}, hive_partitioning=false"
        return f"SELECT * FROM read_json([{listed}], columns={{{types}}}, {more})"  # noqa: S608  likewise
    as_text = types.replace("VARCHAR[]", "VARCHAR")
    more = "header=true, delim=',', quote='\"', escape='\"', auto_detect=false, hive_partitioning=false"
    more += f", max_line_size={LARGEST}, buffer_size={2 * LARGEST}"  # DuckDB 1 takes 16, above MEMORY
    tags = "REPLACE (CAST(CAST(tags AS JSON) AS VARCHAR[]) AS tags)"
    return f"SELECT * {tags} FROM read_csv([{listed}], columns={{{as_text}}}, {more})"  # noqa: S608  likewise


def _quoted(text: str) -> str:
    """Quote a text as a SQL string."""
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


@contextmanager
def _refused() -> Iterator[None]:
    """Turn errors of DuckDB and Arrow within a block into `InvalidInput` about the SQL statement.

    A time that Python's datetime cannot hold counts as an error of the statement, too.
    """
    duckdb = engine()
    import pyarrow as pa  # noqa: PLC0415  it is there where DuckDB is

    try:
        yield
    except (duckdb.Error, pa.ArrowException, OverflowError, ValueError) as error:
        raise InvalidInput("statement", f"cannot be run: {error}") from error


def engine() -> Any:
    """Import DuckDB and pyarrow, and return DuckDB's module; raise if one of them is not installed.

    Raises:
        ModuleNotFoundError: DuckDB or pyarrow is not installed; the error says what to install.
    """
    with brought_by("export", "SQL statements", "duckdb", "pyarrow"):
        import duckdb  # noqa: PLC0415  an extra
        import pyarrow as pa  # noqa: F401, PLC0415  likewise
    return duckdb
