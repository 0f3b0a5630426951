"""A part of a SQL transaction in which nobody ends it.

A fold that ended it would have half of its delivery committed, or lose what it wrote before. There are four ways to:

    `commit()` and `rollback()` of SQLAlchemy   refused
    the driver's own                            refused where its connections take attributes, as psycopg's do
    a statement, as `ROLLBACK`                  refused, before it is sent
    several statements in one text, or a        noticed at the end, when what was committed so is there: nothing can
    driver of C other than SQLite's             take it back; the rest is rolled back

SQLite refuses all of them itself, by an authorizer. What is swallowed is refused at the end.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from epochal.errors import InvalidInput, brought_by
from epochal.lazy_dataclasses import dataclass

with brought_by("sql", "read models in a SQL database", "sqlalchemy"):
    from sqlalchemy import event, func, null
    from sqlalchemy.exc import SQLAlchemyError

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

_ENDS: Final = re.compile(
    r"(?:\s|;|--[^\n]*\n|/\*.*?\*/)*(?:COMMIT|END|ABORT|PREPARE\s+TRANSACTION"
    r"|ROLLBACK(?!\s+(?:(?:WORK|TRANSACTION)\s+)?TO\b))\b",
    re.IGNORECASE | re.DOTALL,
)
"""A statement that ends a transaction; `ROLLBACK TO` a savepoint does not."""

_ENDINGS: Final = ("commit", "rollback")


def mark_of(dialect: str) -> ColumnElement[Any]:
    """What is the same in every statement of a transaction, and in the next one is not: when it began. SQLite has
    none; a savepoint is its mark.
    """
    return null() if dialect == "sqlite" else func.transaction_timestamp()


@contextmanager
def undivided(connection: Connection) -> Iterator[None]:
    """A block in which the transaction is not ended; raises `InvalidInput` where that is tried."""
    guard = _Guard(connection)
    listeners: list[tuple[str, Callable[..., Any]]] = [
        *((each, guard.ending) for each in _ENDINGS),
        ("before_cursor_execute", guard.executing),
    ]
    kept = guard.in_sqlite() if connection.dialect.name == "sqlite" else guard.in_driver()
    try:
        with kept:
            for name, listener in listeners:
                event.listen(connection, name, listener)
            try:
                yield
            finally:
                for name, listener in listeners:
                    event.remove(connection, name, listener)
    except Exception as error:
        if guard.tried:  # what the fold or the database made of the refusal says less
            raise refused() from error
        raise
    if guard.tried:
        raise refused()


def refused() -> InvalidInput:
    """What a fold is answered that ends the transaction, or tries to."""
    return InvalidInput("fold", "must leave the transaction to the read model, which commits it")


@dataclass(slots=True)
class _Guard:
    """Refuses, and remembers that it had to."""

    connection: Connection
    tried: bool = False

    def refuse(self) -> None:
        """In place of what ends a transaction."""
        self.tried = True
        raise refused()

    def ending(self, connection: Connection) -> None:
        """Before SQLAlchemy ends it."""
        connection.invalidate()  # a commit that its listener refuses leaves an open transaction in the pool
        self.refuse()

    def executing(self, _: Connection, __: Any, statement: str, *___: Any) -> None:
        """Before a statement."""
        if _ENDS.match(statement):
            self.refuse()

    @contextmanager
    def in_driver(self) -> Iterator[None]:
        """Put this in place of the methods of the driver's connection."""
        driver: Any = self.connection.connection.dbapi_connection
        with suppress(AttributeError):  # a connection of C has no place for it
            for name in _ENDINGS:
                setattr(driver, name, self.refuse)
        try:
            yield
        finally:
            with suppress(AttributeError):
                for name in _ENDINGS:
                    delattr(driver, name)

    @contextmanager
    def in_sqlite(self) -> Iterator[None]:
        """Have SQLite refuse every such statement, whoever sends it. It also ends a transaction on its own, where a
        constraint says `ON CONFLICT ROLLBACK`: then the savepoint is gone.
        """
        driver: Any = self.connection.connection.dbapi_connection
        savepoint = f"epochal_{token_hex(8)}"
        self.connection.exec_driver_sql(f"SAVEPOINT {savepoint}")
        driver.set_authorizer(self._judge)
        try:
            yield
        finally:
            if not self.connection.invalidated and not self.connection.closed:
                driver.set_authorizer(None)
        try:
            self.connection.exec_driver_sql(f"RELEASE {savepoint}")
        except SQLAlchemyError as error:
            raise refused() from error

    def _judge(self, action: int, operation: str | None, *_: object) -> int:
        if action != sqlite3.SQLITE_TRANSACTION or operation == "BEGIN":
            return sqlite3.SQLITE_OK
        self.tried = True
        return sqlite3.SQLITE_DENY
