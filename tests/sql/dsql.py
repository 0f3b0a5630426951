"""A PostgreSQL that refuses what Aurora DSQL refuses, asked through AWS's own dialect.

It has what AWS's user guide says of transactions and statements: one change of the schema in a transaction and nothing
else beside it, `CREATE INDEX ASYNC` alone, 3,000 rows, no savepoints, sequences or foreign keys, snapshots as the one
isolation. What it has not: keys of 1 KiB, 10 MiB and five minutes of a transaction, and that writers never wait: here
the slower of two waits for the other, and is then refused as he would be there when he commits. `refuse_commits` does
that too, for as many commits as it is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

import psycopg
from sqlalchemy import Connection, Engine, create_engine, event

MAX_ROWS: Final = 3_000

_SCHEMA: Final = re.compile(r"\s*(CREATE|ALTER|DROP)\b", re.IGNORECASE)
_ROWS: Final = re.compile(r"\s*(INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE)
_UNKNOWN: Final = re.compile(
    r"\b(SAVEPOINT|TRUNCATE|SERIAL|BIGSERIAL|SEQUENCE|REFERENCES|TEMP|TEMPORARY|CREATE TYPE|LISTEN)\b",
    re.IGNORECASE,
)
_INDEX: Final = re.compile(r"(CREATE (?:UNIQUE )?INDEX )(ASYNC )?", re.IGNORECASE)


def dsql_engine(url: str) -> Engine:
    """Of a PostgreSQL."""
    default = {"options": "-c default_transaction_isolation=repeatable\\ read"}
    engine = create_engine(url, connect_args=default)
    event.listen(engine, "before_cursor_execute", _rewritten, retval=True)
    # These listeners return nothing, so AWS's dialect then executes the statement itself.
    event.listen(engine, "do_execute", lambda *given: _judge(given[0], given[1]))
    event.listen(engine, "do_execute_no_params", lambda *given: _judge(given[0], given[1]))
    event.listen(engine, "do_executemany", lambda *given: _judge(given[0], given[1]))
    event.listen(engine, "after_cursor_execute", _count)
    return engine


def refuse_commits(engine: Engine, times: int) -> Callable[[], int]:
    """Refuse so many commits from now on as Aurora DSQL does who was slower; how many are left."""
    commit, left = engine.dialect.do_commit, times

    def refusing(connection: Any) -> None:
        nonlocal left
        if left:
            left -= 1
            connection.rollback()
            raise psycopg.errors.SerializationFailure("change conflicts with another transaction (OC000)")
        commit(connection)

    engine.dialect.do_commit = refusing  # type: ignore[method-assign]
    return lambda: left


@dataclass(slots=True)
class _Seen:
    """What a transaction has done so far.

    Attributes:
        rows: number of rows that it has changed.
        writes: whether it has a statement that changes rows.
        schema: whether it has one that changes the schema.
    """

    rows: int = 0
    writes: bool = False
    schema: bool = False


_SEEN: Final[WeakKeyDictionary[Any, _Seen]] = WeakKeyDictionary()


def _seen(cursor: Any) -> _Seen:
    driver = cursor.connection
    if driver not in _SEEN or driver.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
        _SEEN[driver] = _Seen()
    return _SEEN[driver]


def _rewritten(
    _: Connection, cursor: Any, statement: str, parameters: Any, __: Any, ___: bool
) -> tuple[str, Any]:
    """PostgreSQL has no `ASYNC`; whether it was there is kept."""
    found = _INDEX.match(statement)
    cursor.connection.waits = found is not None and not found[2]
    return _INDEX.sub(r"\1", statement), parameters


def _judge(cursor: Any, statement: str) -> None:
    """Raise what Aurora DSQL answers to a statement that it does not take here."""
    seen = _seen(cursor)
    if (found := _UNKNOWN.search(statement)) is not None:
        raise psycopg.errors.FeatureNotSupported(f"{found[0]} is not supported")
    if cursor.connection.isolation_level not in (None, psycopg.IsolationLevel.REPEATABLE_READ):
        raise psycopg.errors.FeatureNotSupported("isolation levels other than REPEATABLE READ")
    if getattr(cursor.connection, "waits", False):
        raise psycopg.errors.FeatureNotSupported("unsupported mode. please use CREATE INDEX ASYNC")
    if _SCHEMA.match(statement):
        if seen.schema:
            raise psycopg.errors.FeatureNotSupported(
                "multiple ddl statements are not supported in a transaction"
            )
        seen.schema = True
    if _ROWS.match(statement):
        seen.writes = True
    if seen.schema and seen.writes:
        raise psycopg.errors.FeatureNotSupported("ddl and dml are not supported in the same transaction")


def _count(_: Connection, cursor: Any, statement: str, parameters: Any, __: Any, executemany: bool) -> None:
    if not _ROWS.match(statement):
        return
    seen = _seen(cursor)
    seen.rows += len(parameters) if executemany else cursor.rowcount
    if seen.rows > MAX_ROWS:
        raise psycopg.errors.ProgramLimitExceeded("transaction row limit exceeded")
