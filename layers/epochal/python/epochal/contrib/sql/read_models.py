"""Read models in a SQL database: tables of your own, and how far each stream has been folded into them, written in one
transaction.

    def board(generation: int) -> MetaData:
        metadata = MetaData()
        Table(f"departures_{generation}", metadata, Column("flight", Text, primary_key=True), Column("gate", Text))
        return metadata

    models = SqlReadModels(engine=create_engine(url), tables={"board": board})
    first = models.open("board", 1)
    departures = first.tables["departures"]

    @reaction(name="board-1", categories=["Flight"], removed=lambda delivery: first.remove(delivery, forget))
    def update(delivery: Delivery) -> None:
        first.apply(delivery, fold)

So an event that is delivered twice is folded once, whoever is killed and whatever answer is lost. What a fold reads and
then writes, nobody else has written meanwhile: transactions are snapshots (`REPEATABLE READ`), and the slower of two
writers is refused and folds again. `wait_for` tells a caller when the events it appended are in the tables. A model is
rebuilt as its next generation, in tables of its own; `swap` makes it the live one, and views, by the tables' names
without the generation, its readers' way to it.

PostgreSQL, SQLite in a file, and Aurora DSQL by AWS's own dialect (`auroradsql`) keep that. Others are refused.
"""

from __future__ import annotations

import random
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, TypeVar

from epochal.errors import Contended, InvalidInput, brought_by
from epochal.feed.events import FeedEvent
from epochal.layout.changes import Removal
from epochal.lazy_dataclasses import dataclass
from epochal.model.kinds import must_be_text, must_be_whole
from epochal.model.plain_functions import must_be_done, must_be_plain
from epochal.reactions.definition import Delivery
from epochal.read_models.documents import backward_swap, wait_for_version

with brought_by("sql", "read models in a SQL database", "sqlalchemy"):
    from sqlalchemy import (
        DDL,
        BigInteger,
        Column,
        Connection,
        Engine,
        Insert,
        MetaData,
        StaticPool,
        Table,
        Text,
        Update,
        and_,
        delete,
        event,
        func,
        insert,
        inspect,
        null,
        select,
        update,
    )
    from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Row

T = TypeVar("T")

_ISOLATION: Final = {
    "postgresql": "REPEATABLE READ",
    "auroradsql": "REPEATABLE READ",
    "sqlite": "SERIALIZABLE",  # its only level; naming it makes transactions of an `AUTOCOMMIT` engine, too
}

MAX_NAME_BYTES: Final = 200
"""Longest name of a model or a stream: a key has both and has to stay below 1 KiB, Aurora DSQL's limit."""

MAX_GENERATION: Final = 2**31 - 1

ATTEMPTS: Final = 20
"""Most attempts to commit one delivery while other writers are faster, or connections break."""

FEW: Final = 3
"""Most attempts where a constraint refuses a row. Another writer may have made the row after this transaction's
snapshot; the next attempt sees it, so a row that is refused repeatedly is a mistake of the fold."""

CONFLICTS: Final = frozenset({"40001", "40P01", "OC000", "OC001"})
"""SQLSTATEs of a transaction that lost a conflict or a deadlock; the last two are Aurora DSQL's."""

TOO_MUCH: Final = "54000"
"""The SQLSTATE of a transaction beyond Aurora DSQL's 3,000 rows or 10 MiB."""

EXISTS: Final = frozenset({"42P07", "42710"})
"""SQLSTATEs of a table, and of its row type, that another transaction has created meanwhile."""

OTHER_COLUMNS: Final = "42P16"
"""The SQLSTATE of a view that cannot be replaced, since its columns would change."""

LOCKED: Final = frozenset({5, 6})
"""SQLite's `BUSY` and `LOCKED`: another connection is writing for longer than the driver's timeout."""

PAUSE_SECONDS: Final = 0.01
LONGEST_PAUSE_SECONDS: Final = 1.0

AT_ONCE: Final = 1_000
"""Rows of a generation that are deleted in one transaction."""

_OWN: Final = MetaData()

_PROGRESS: Final = Table(
    "epochal_progress",
    _OWN,
    Column("model", Text, primary_key=True),
    Column("generation", BigInteger, primary_key=True, autoincrement=False),
    Column("stream", Text, primary_key=True),
    Column("next_index", BigInteger),  # next index to fold; null if only a removal has been folded
    Column("removal", BigInteger, nullable=False),  # mark of the last removal folded; 0 for none
)

_LIVE: Final = Table(
    "epochal_live",
    _OWN,
    Column("model", Text, primary_key=True),
    Column("generation", BigInteger, nullable=False),
)

Fold = Callable[[Connection, FeedEvent], object]
"""A function that updates a read model's tables for one event. It must not end the transaction. It may be called again
for the same event, on tables that do not have the event yet.
"""

FoldRemoval = Callable[[Connection, Removal], object]
"""A function that updates a read model's tables when events of a stream have been pruned or deleted, under the same
rules as `Fold`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Database:
    """A database whose transactions are retried after conflicts and broken connections."""

    engine: Engine
    clock: Callable[[], float]
    sleep: Callable[[float], object]

    def run(self, work: Callable[[Connection], T], subject: str, few: int = FEW) -> T:
        """Run `work` in a transaction and return its result; retry conflicts, in the end raise `Contended`.

        If the connection breaks during the commit, `work` may run again although it was committed.

        Args:
            work: the function that reads and writes through the transaction's connection.
            subject: name of the stream or model that an error mentions.
            few: most attempts if a row or table that `work` makes exists already.

        Raises:
            Contended: other writers were faster at every attempt.
            DBAPIError: the database refuses for another reason, or its connections break at every attempt.
        """
        attempt = 0
        while True:
            attempt += 1
            try:
                return self._once(work)
            except DBAPIError as error:
                if attempt < _attempts(error, few):
                    longest = min(LONGEST_PAUSE_SECONDS, PAUSE_SECONDS * 2.0**attempt)
                    self.sleep(random.uniform(0, longest))  # noqa: S311  it spreads writers, and hides nothing
                    continue
                if _state(error) in CONFLICTS:
                    raise Contended(subject, attempt) from error
                raise

    def _once(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction, commit it, and return its result."""
        dialect = self.engine.dialect.name
        with self.engine.connect() as opened:
            connection = opened.execution_options(isolation_level=_ISOLATION[dialect])
            transaction = connection.begin()
            driver: Any = connection.connection.dbapi_connection
            if dialect == "sqlite" and not driver.in_transaction:
                # The driver begins a transaction at the first change, so earlier reads would be outside of it.
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            result = work(connection)
            transaction.commit()
            return result


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlReadModel:
    """One generation of a read model in SQL tables.

    Attributes:
        database: the database that holds the generation's tables.
        name: name of the model.
        generation: number of the generation, 1 or more.
        metadata: SQLAlchemy's description of the generation's tables.
        tables: the generation's tables, by their names without the generation's number.
    """

    database: _Database
    name: str
    generation: int
    metadata: MetaData
    tables: Mapping[str, Table]

    def create(self) -> None:
        """Create the generation's tables, and the two that all read models share for progress, unless they exist."""
        for metadata in (_OWN, self.metadata):
            self.database.run(metadata.create_all, self.name, few=ATTEMPTS)

    def apply(self, delivery: Delivery, fold: Fold) -> int:
        """Fold a delivery's new events in one transaction, or more if too large; return how many were folded.

        Events that have been folded before are left out.

        If the transaction is larger than Aurora DSQL allows, it is split: half of the events are committed first.

        Args:
            delivery: delivery that a reaction's handler receives.
            fold: plain function of the connection and one event, which writes to the tables. It must not end the
                transaction.

        Raises:
            Contended: other writers were faster at every attempt.
            DBAPIError: SQLAlchemy's error if the database refuses for another reason.
            InvalidInput: `fold` is no plain function, or ends the transaction.
        """
        must_be_plain(fold, "fold")
        folded, most = 0, len(delivery.events)

        def work(connection: Connection) -> int:
            """Fold the next events of the delivery, at most `most`, and return how many were folded."""
            progress = self._progress(connection, delivery.stream)
            place = progress.next_index
            events = [event for event in delivery.events if place is None or event.index >= place][:most]
            with undivided(connection):
                for event in events:
                    must_be_done(fold(connection, event), "fold")
            are_last = not events or events[-1] is delivery.events[-1]
            following = delivery.following if are_last else events[-1].index + 1
            if place is None or place < following:
                self._write(connection, delivery.stream, progress, next_index=following)
            return len(events)

        while True:
            try:
                applied = self.database.run(work, delivery.stream)
            except DBAPIError as error:
                if _state(error) != TOO_MUCH or most == 1:
                    raise
                most = (most + 1) // 2
                continue
            folded += applied
            if applied < most or most == len(delivery.events):
                return folded

    def skip(self, delivery: Delivery) -> bool:
        """Note that the model has read a stream to the end of a delivery; return whether that was new.

        It is the `skipped` of a reaction: `wait_for` succeeds with versions that such events end at.

        Args:
            delivery: delivery that a reaction's `skipped` receives, without events.

        Returns:
            False if that was known before.
        """

        def work(connection: Connection) -> bool:
            """Write the stream's progress unless it is as far already, and return whether it was written."""
            progress = self._progress(connection, delivery.stream)
            if progress.next_index is not None and progress.next_index >= delivery.following:
                return False
            self._write(connection, delivery.stream, progress, next_index=delivery.following)
            return True

        return self.database.run(work, delivery.stream)

    def remove(self, delivery: Delivery, fold: FoldRemoval) -> bool:
        """Fold the removal of events that a delivery tells into the tables; return whether it was new.

        It is not new if it, or a later removal of the stream, has been folded before.

        Args:
            delivery: delivery of a removal, without events.
            fold: plain function of the connection and the removal, which writes to the tables.

        Raises:
            Contended, DBAPIError: as for `apply`.
            InvalidInput: `fold` is no plain function or ends the transaction, or the delivery has events.
        """
        must_be_plain(fold, "fold")
        removal = delivery.removal
        if removal is None:
            raise InvalidInput("delivery", "must be of a removal: pass events to `apply`")

        def work(connection: Connection) -> bool:
            """Fold the removal unless the stream's progress includes it, and return whether it was folded."""
            progress = self._progress(connection, delivery.stream)
            if removal.mark <= (progress.removal or 0):
                return False
            with undivided(connection):
                must_be_done(fold(connection, removal), "fold")
            self._write(connection, delivery.stream, progress, removal=removal.mark)
            return True

        return self.database.run(work, delivery.stream)

    def place(self, stream: str) -> int | None:
        """Return the index of a stream's next event to fold; None if none of its events has been folded.

        Args:
            stream: name of the stream.
        """
        progress: int | None = self.database.run(
            lambda connection: self._progress(connection, stream).next_index, stream
        )
        return progress

    def wait_for(self, stream: str, version: int, *, seconds: float = 10.0) -> bool:
        """Wait at most `seconds` until a stream's events below `version` are folded; return whether they are.

        Returns False after `seconds`.

        If `version` is the version that an append returned, reads afterwards include the append. Events of types that
        the model does not read are passed with those that it reads, if they come in one append. Where appends may have
        no others, the reaction needs `skipped=model.skip`, or a wait for their versions always times out.

        Args:
            stream: name of the stream.
            version: index after the last event to wait for, such as the version that an append returns.
            seconds: time to wait at most.
        """
        database = self.database
        return wait_for_version(version, lambda: self.place(stream), seconds, database.clock, database.sleep)

    def _progress(self, connection: Connection, stream: str) -> Row[Any]:
        """Read the row of a stream's progress, all null if missing, with the mark of the transaction.

        The mark is the column `began`.
        """
        began = select(mark_of(connection.dialect.name).label("began")).subquery()
        row = began.outerjoin(_PROGRESS, self._of(stream))
        return connection.execute(select(began, _PROGRESS).select_from(row)).one()

    def _write(self, connection: Connection, stream: str, row: Row[Any], **values: int) -> None:
        """Write a stream's progress as its transaction's last statement; raise if the transaction was ended.

        A transaction that the fold has broken accepts no further statement, so it cannot succeed. If two writers
        fold the same events at the same time, the database refuses one of the two rows.

        Raises:
            InvalidInput: the fold has ended the transaction.
        """
        written: Update | Insert
        if row.removal is not None:
            written = update(_PROGRESS).where(self._of(stream)).values(**values)
        else:
            key = {"model": self.name, "generation": self.generation, "stream": _key(stream)}
            written = insert(_PROGRESS).values(**{**key, "removal": 0, **values})
        began = mark_of(connection.dialect.name)
        if connection.execute(written.returning(began)).scalar_one() != row.began:
            raise refused()

    def _of(self, stream: str) -> ColumnElement[bool]:
        """Build the condition on the progress row of a stream."""
        return and_(self._mine(), _PROGRESS.c.stream == _key(stream))

    def _mine(self) -> ColumnElement[bool]:
        """Build the condition on the progress rows of this generation."""
        return and_(_PROGRESS.c.model == self.name, _PROGRESS.c.generation == self.generation)

    def _drop(self) -> None:
        """Delete the generation's tables, and then its rows of progress, some at a time."""
        # The tables are dropped first: a reaction that still folds into them fails instead of starting again.
        self.database.run(self.metadata.drop_all, self.name)
        some = select(_PROGRESS.c.stream).where(self._mine()).limit(AT_ONCE)
        rows = delete(_PROGRESS).where(self._mine(), _PROGRESS.c.stream.in_(some))
        while self.database.run(lambda connection: connection.execute(rows).rowcount, self.name):
            pass


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlReadModels:
    """The read models of a database, and which generation of each is live.

    Attributes:
        engine: SQLAlchemy's engine for the database, with network access and credentials set up by its creator.
        tables: for each model name, a function that describes the tables of a generation; their names end with `_` and
            the generation's number.
        clock: function that returns the time in seconds, for timeouts.
        sleep: function that waits for a number of seconds.
    """

    engine: Engine
    tables: Mapping[str, Callable[[int], MetaData]]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep

    def __post_init__(self) -> None:
        """Raise `InvalidInput` if the engine's database or connection pool is not supported."""
        if self.engine.dialect.name not in _ISOLATION:
            raise InvalidInput(
                "engine", f"must be for {', '.join(_ISOLATION)}, not {self.engine.dialect.name}"
            )
        if isinstance(self.engine.pool, StaticPool):
            raise InvalidInput("engine", "must not share one connection: streams are folded concurrently")

    def open(self, name: str, generation: int) -> SqlReadModel:
        """Open a generation of a model; raise `InvalidInput` for an unknown model or wrong names of tables.

        It is for the reaction that builds it. Its tables are made by `create`.

        Args:
            name: name of the read model.
            generation: number of the generation, 1 or more.

        Raises:
            InvalidInput: there is no such model, or a table's name does not end with the generation.
        """
        must_be_text(name, MAX_NAME_BYTES, "name")
        must_be_whole(generation, "generation", 1, MAX_GENERATION)
        if name not in self.tables:
            raise InvalidInput("name", f"must be one of {', '.join(sorted(self.tables))}, not {name!r}")
        metadata, ending = self.tables[name](generation), f"_{generation}"
        for table in metadata.tables:
            if not table.endswith(ending):
                raise InvalidInput("tables", f"must have names that end with {ending}, but {table} does not")
        return SqlReadModel(
            database=self._database,
            name=name,
            generation=generation,
            metadata=metadata,
            tables={table.name.removesuffix(ending): table for table in metadata.sorted_tables},
        )

    def live(self, name: str) -> SqlReadModel:
        """Open the live generation of a model, which is the first one until `swap` is called.

        Args:
            name: name of the read model.
        """
        return self.open(name, self._database.run(lambda connection: _live(connection, name), name) or 1)

    def swap(self, name: str, generation: int) -> SqlReadModel:
        """Make a generation live and point the views to its tables; return it, raise if a later one is live.

        The views are named like the tables without the generation. Wait until the generation's reaction has caught
        up, or readers go back in time. If a swap is interrupted, repeat it.

        Args:
            name: name of the read model.
            generation: number of the generation, 1 or more.

        Raises:
            InvalidInput: a later generation is live already, or tables of this one do not exist.
        """
        model = self.open(name, generation)

        def find_before(connection: Connection) -> SqlReadModel:
            """Return the live generation, else this one; raise if a later one is live or a table is missing.

            Raises:
                InvalidInput: a later generation is live already, or tables of this one do not exist.
            """
            live = _live(connection, name)
            if live is not None and live > generation:
                raise backward_swap(generation, live)
            _check_tables(connection, model)
            return self.open(name, live or generation)

        def make_live(connection: Connection) -> None:
            """Write the row that makes the generation live; raise if a later one is or a table is missing."""
            find_before(connection)
            row = (
                insert(_LIVE).values(model=name)
                if _live(connection, name) is None
                else update(_LIVE).where(_LIVE.c.model == name)
            )
            connection.execute(row.values(generation=generation))

        def swap_together(connection: Connection) -> None:
            """Replace the views and make the generation live in one transaction."""
            _replace_views(connection, find_before(connection), model)
            make_live(connection)

        if self.engine.dialect.name != "auroradsql":
            self._database.run(swap_together, name)
            return model
        # Aurora DSQL has no transaction of both rows and views. The generation is made live last: until then a repeated
        # call still knows the views of the previous generation.
        before = self._database.run(find_before, name)
        self._database.run(lambda connection: _replace_views(connection, before, model), name)
        self._database.run(make_live, name)
        return model

    def drop(self, name: str, generation: int) -> None:
        """Delete the tables and the progress of a generation; raise if it is the live one.

        Remove its reaction first.

        Args:
            name: name of the read model.
            generation: number of the generation.

        Raises:
            InvalidInput: the generation is the live one.
        """
        if self.live(name).generation == generation:
            raise InvalidInput("generation", f"must not be the live one, {generation}")
        self.open(name, generation)._drop()  # noqa: SLF001  a generation does not know whether it is live

    @property
    def _database(self) -> _Database:
        """The database of the engine, with retries that use the clock of this object."""
        return _Database(engine=self.engine, clock=self.clock, sleep=self.sleep)


def _live(connection: Connection, name: str) -> int | None:
    """Read the number of a model's live generation, or None if none has been made live."""
    generation = connection.execute(
        select(_LIVE.c.generation).where(_LIVE.c.model == name)
    ).scalar_one_or_none()
    return None if generation is None else int(generation)


def _check_tables(connection: Connection, model: SqlReadModel) -> None:
    """Raise `InvalidInput` unless all tables of a generation exist."""
    inspector = inspect(connection)
    for table in model.tables.values():
        if not inspector.has_table(table.name, schema=table.schema):
            rule = f"{model.generation} of {model.name} has no table {table.name}: create() it first"
            raise InvalidInput("generation", f"{rule}, and let its reaction catch up")


def _replace_views(connection: Connection, before: SqlReadModel, model: SqlReadModel) -> None:
    """Create or replace the views of a generation, and drop those that only the one before had.

    In Aurora DSQL, each statement is a transaction of its own: a view that keeps its columns is replaced by one
    statement, and any other view is missing until the next statement.
    """
    quote = connection.dialect.identifier_preparer
    for name in sorted({*before.tables, *model.tables}):
        view = quote.quote(name)
        if name not in model.tables:
            connection.execute(_changing_schema(f"DROP VIEW IF EXISTS {view}"))
            continue
        rows = f"SELECT * FROM {quote.format_table(model.tables[name])}"  # noqa: S608  the name is quoted
        if connection.dialect.name == "auroradsql" and _try_replace_view(connection, f"{view} AS {rows}"):
            continue
        connection.execute(_changing_schema(f"DROP VIEW IF EXISTS {view}"))
        connection.execute(_changing_schema(f"CREATE VIEW {view} AS {rows}"))


def _try_replace_view(connection: Connection, view: str) -> bool:
    """Replace a view with one statement, and return False if its columns differ from the existing ones."""
    try:
        connection.execute(_changing_schema(f"CREATE OR REPLACE VIEW {view}"))
    except DBAPIError as error:
        if _state(error) != OTHER_COLUMNS:
            raise
        connection.connection.rollback()
        return False
    return True


def _changing_schema(statement: str) -> DDL:
    """Build a statement that AWS's dialect for Aurora DSQL commits at once as a change of schema.

    The dialect does not recognize such a statement in plain text.
    """
    return DDL("%(statement)s", context={"statement": statement})  # type: ignore[no-untyped-call]


def _attempts(error: DBAPIError, few: int) -> int:
    """Return how many attempts a transaction gets that fails with an error; 1 means no retry."""
    if error.connection_invalidated or _state(error) in CONFLICTS:
        return ATTEMPTS
    if getattr(error.orig, "sqlite_errorcode", 0) & 0xFF in LOCKED:
        return ATTEMPTS
    return few if isinstance(error, IntegrityError) or _state(error) in EXISTS else 1


def _state(error: DBAPIError) -> str | None:
    """Return the SQLSTATE of an error, as psycopg or psycopg2 has it, or None."""
    return getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)


def _key(stream: str) -> str:
    """Return a stream's name as a row's key, or its SHA-256 if the name cannot be a key.

    That is a name that is too long, or has a NUL, which PostgreSQL cannot store in text.
    """
    if "\0" not in stream and len(stream.encode()) <= MAX_NAME_BYTES:
        return stream
    return f"sha256:{sha256(stream.encode()).hexdigest()}"


# A part of a transaction in which a fold cannot end it. Ending it would commit half of a delivery, or lose the writes
# before. There are four ways to try:
#
#     `commit()` and `rollback()` of SQLAlchemy   refused
#     the driver's own                            refused where its connections take attributes, as psycopg's do
#     a statement, as `ROLLBACK`                  refused, before it is sent
#     several statements in one text, or a        detected at the end, when a part has been committed, which cannot be
#     driver of C other than SQLite's             undone; the rest is rolled back
#
# SQLite refuses all of them itself, by an authorizer. If a fold swallows the error, the transaction is refused at the
# end.

_ENDS: Final = re.compile(
    r"(?:COMMIT|END|ABORT|PREPARE\s+TRANSACTION|ROLLBACK(?!\s+(?:(?:WORK|TRANSACTION)\s+)?TO\b))\b",
    re.IGNORECASE,
)
"""A statement that ends a transaction; `ROLLBACK TO` a savepoint does not."""

_BLANK: Final = re.compile(r"(?:\s|;|--[^\n]*+\n)*+")
"""What may stand before a statement beside comments in `/* */`."""

_COMMENT_MARK: Final = re.compile(r"/\*|\*/")


def ends_transaction(statement: str) -> bool:
    """Return whether a statement ends a transaction, whatever comments stand before it.

    Comments nest in PostgreSQL and do not in SQLite, so both ways of reading them count.
    """
    return any(_ENDS.match(statement, _begin_of(statement, nested=nested)) for nested in (False, True))


def _begin_of(statement: str, *, nested: bool) -> int:
    """Return where a statement begins after blanks and comments; its end if a comment does not end."""
    begin = _end_of_blank(statement, 0)
    while statement.startswith("/*", begin):
        end = _end_of_nested(statement, begin) if nested else statement.find("*/", begin + 2) + 2
        if end < begin + 2:
            return len(statement)
        begin = _end_of_blank(statement, end)
    return begin


def _end_of_nested(statement: str, begin: int) -> int:
    """Return where a comment that may contain others ends; 0 if it does not."""
    depth = 0
    for mark in _COMMENT_MARK.finditer(statement, begin):
        depth += 1 if mark[0] == "/*" else -1
        if not depth:
            return mark.end()
    return 0


def _end_of_blank(statement: str, begin: int) -> int:
    """Return where blanks, semicolons and line comments from an index on end."""
    blank = _BLANK.match(statement, begin)
    return begin if blank is None else blank.end()


_ENDINGS: Final = ("commit", "rollback")


def mark_of(dialect: str) -> ColumnElement[Any]:
    """Build the expression for when a transaction began, which is the same in all its statements.

    The next transaction has another value. SQLite has no such expression, so it gets null; there a savepoint marks
    the transaction.
    """
    return null() if dialect == "sqlite" else func.transaction_timestamp()


@contextmanager
def undivided(connection: Connection) -> Iterator[None]:
    """Run a block within a transaction; raise `InvalidInput` if the block ends it, or tries to.

    Raises:
        InvalidInput: the block ended the transaction, or tried to.
    """
    guard = _Guard(connection)
    listeners: list[tuple[str, Callable[..., Any]]] = [
        *((ending, guard.ending) for ending in _ENDINGS),
        ("before_cursor_execute", guard.executing),
    ]
    savepoint = guard.in_sqlite() if connection.dialect.name == "sqlite" else guard.in_driver()
    try:
        with savepoint:
            for name, listener in listeners:
                event.listen(connection, name, listener)
            try:
                yield
            finally:
                for name, listener in listeners:
                    event.remove(connection, name, listener)
    except Exception as error:
        if guard.tried:  # the error that the fold or the database raised in turn says less
            raise refused() from error
        raise
    if guard.tried:
        raise refused()


def refused() -> InvalidInput:
    """Make the error for a fold that ends the transaction, or tries to."""
    return InvalidInput("fold", "must leave the transaction to the read model, which commits it")


@dataclass(slots=True)
class _Guard:
    """A guard that refuses to end a connection's transaction, and remembers whether that was tried."""

    connection: Connection
    tried: bool = False

    def refuse(self) -> None:
        """Record the attempt to end the transaction, and raise `InvalidInput`."""
        self.tried = True
        raise refused()

    def ending(self, connection: Connection) -> None:
        """Invalidate the connection and refuse, before SQLAlchemy ends the transaction."""
        connection.invalidate()  # a commit refused by its listener leaves an open transaction in the pool
        self.refuse()

    def executing(self, _: Connection, __: Any, statement: str, *___: Any) -> None:
        """Refuse a statement that ends the transaction, before it is executed."""
        if ends_transaction(statement):
            self.refuse()

    @contextmanager
    def in_driver(self) -> Iterator[None]:
        """Replace the driver connection's `commit` and `rollback` by `refuse` within a block.

        Connections that are written in C do not allow this, and stay as they are.
        """
        driver: Any = self.connection.connection.dbapi_connection
        with suppress(AttributeError):  # a connection written in C takes no attributes
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
        """Make SQLite refuse every statement that ends the transaction within a block.

        SQLite also ends a transaction on its own where a constraint says `ON CONFLICT ROLLBACK`, which is detected
        because the block's savepoint is gone.
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
        """Deny an SQLite operation on the transaction other than to begin one; allow everything else."""
        if action != sqlite3.SQLITE_TRANSACTION or operation == "BEGIN":
            return sqlite3.SQLITE_OK
        self.tried = True
        return sqlite3.SQLITE_DENY
