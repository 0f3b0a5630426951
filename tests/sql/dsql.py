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
    event.listen(engine, "do_execute", _judge)
    event.listen(engine, "do_execute_no_params", lambda *given: _judge(given[0], given[1], None, given[2]))
    event.listen(engine, "do_executemany", _judge_many)
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
    """Rows that a transaction has changed so far."""

    rows: int = 0


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


def _judge(cursor: Any, statement: str, parameters: Any, _: Any) -> bool:
    seen = _seen(cursor)
    if (found := _UNKNOWN.search(statement)) is not None:
        raise psycopg.errors.FeatureNotSupported(f"{found[0]} is not supported")
    if cursor.connection.isolation_level not in (None, psycopg.IsolationLevel.REPEATABLE_READ):
        raise psycopg.errors.FeatureNotSupported("isolation levels other than REPEATABLE READ")
    if getattr(cursor.connection, "waits", False):
        raise psycopg.errors.FeatureNotSupported("unsupported mode. please use CREATE INDEX ASYNC")
    if _SCHEMA.match(statement):
        if seen.rows:
            raise psycopg.errors.FeatureNotSupported("ddl and dml are not supported in the same transaction")
        cursor.execute(statement)
        cursor.connection.commit()  # as AWS's dialect does: a second one is in a transaction of its own
        return True
    cursor.execute(statement, parameters)
    if _ROWS.match(statement):
        _count(seen, cursor.rowcount)
    return True


def _judge_many(cursor: Any, statement: str, parameters: Any, _: Any) -> bool:
    seen = _seen(cursor)
    cursor.executemany(statement, parameters)
    _count(seen, len(parameters))
    return True


def _count(seen: _Seen, rows: int) -> None:
    seen.rows += rows
    if seen.rows > MAX_ROWS:
        raise psycopg.errors.ProgramLimitExceeded("transaction row limit exceeded")
