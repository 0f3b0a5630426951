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
from epochal.feed.history import FeedEvent
from epochal.layout.port import Removal
from epochal.lazy_dataclasses import dataclass
from epochal.model.kinds import must_be_done, must_be_plain, must_be_text, must_be_whole
from epochal.reactions.reaction import Delivery
from epochal.read_models.documents import reached

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
    "sqlite": "SERIALIZABLE",  # it has no other; named, an engine of `AUTOCOMMIT` has transactions here too
}

MAX_NAME_BYTES: Final = 200
"""Of a model's name or a stream's: with both a key has to stay below 1 KiB, which is Aurora DSQL's limit."""

MAX_GENERATION: Final = 2**31 - 1

ATTEMPTS: Final = 20
"""To commit one delivery while other writers are faster, or connections break."""

FEW: Final = 3
"""Where a constraint refuses a row. Another writer may have made it after this one's snapshot; from then on the fold
sees it, so that what is refused again and again is the fold's own mistake."""

CONFLICTS: Final = frozenset({"40001", "40P01", "OC000", "OC001"})
"""SQLSTATEs of who was slower, or had to give way in a deadlock; the last two are Aurora DSQL's words for it."""

TOO_MUCH: Final = "54000"
"""The SQLSTATE of a transaction beyond Aurora DSQL's 3,000 rows or 10 MiB."""

EXISTS: Final = frozenset({"42P07", "42710"})
"""SQLSTATEs of a table, and of its rows' type, that another has made meanwhile."""

OTHER_COLUMNS: Final = "42P16"
"""The SQLSTATE of a view that cannot be replaced, since its columns would change."""

LOCKED: Final = frozenset({5, 6})
"""SQLite's `BUSY` and `LOCKED`: another connection writes, and took longer than the driver's time-out."""

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
    Column("next_index", BigInteger),  # to be folded; null where only a removal has been
    Column("removal", BigInteger, nullable=False),  # the mark of the last one; 0 where none has been folded
)

_LIVE: Final = Table(
    "epochal_live",
    _OWN,
    Column("model", Text, primary_key=True),
    Column("generation", BigInteger, nullable=False),
)

Fold = Callable[[Connection, FeedEvent], object]
"""Takes one event into the tables. The transaction is not the fold's to end. It may be called again for the same event,
on tables without it."""

FoldRemoval = Callable[[Connection, Removal], object]
"""Takes into the tables that events of a stream are gone; likewise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Database:
    """Transactions that are tried again."""

    engine: Engine
    clock: Callable[[], float]
    sleep: Callable[[float], object]

    def run(self, work: Callable[[Connection], T], subject: str, few: int = FEW) -> T:
        """What `work` returns, once it is committed. After a broken connection it may run again although it was.

        Args:
            subject: whom to name as overtaken.
            few: attempts where what is to be made is there.

        Raises:
            Contended: others were faster at every attempt.
            DBAPIError: the database refuses for another reason, or its connections break again and again.
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
        dialect = self.engine.dialect.name
        with self.engine.connect() as opened:
            connection = opened.execution_options(isolation_level=_ISOLATION[dialect])
            transaction = connection.begin()
            driver: Any = connection.connection.dbapi_connection
            if dialect == "sqlite" and not driver.in_transaction:
                # Its driver begins with the first change, so what is read before would be of no transaction.
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            result = work(connection)
            transaction.commit()
            return result


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlReadModel:
    """One generation of a read model.

    Attributes:
        tables: by their names without the generation.
    """

    database: _Database
    name: str
    generation: int
    metadata: MetaData
    tables: Mapping[str, Table]

    def create(self) -> None:
        """Make its tables, and the two of all read models, unless they are there."""
        for metadata in (_OWN, self.metadata):
            self.database.run(metadata.create_all, self.name, few=ATTEMPTS)

    def apply(self, delivery: Delivery, fold: Fold) -> int:
        """Fold a delivery's events in one transaction, those that have been folded before left out; how many were.

        Where that is more than Aurora DSQL takes at once, half of them go first.

        Raises:
            Contended: others were faster at every attempt.
            DBAPIError: of SQLAlchemy; what the database refuses otherwise.
            InvalidInput: `fold` is no plain function, or ends the transaction.
        """
        must_be_plain(fold, "fold")
        folded, most = 0, len(delivery.events)

        def work(connection: Connection) -> int:
            found = self._progress(connection, delivery.stream)
            place = found.next_index
            events = [each for each in delivery.events if place is None or each.index >= place][:most]
            with undivided(connection):
                for each in events:
                    must_be_done(fold(connection, each), "fold")
            if events:
                self._write(connection, delivery.stream, found, next_index=events[-1].index + 1)
            return len(events)

        while True:
            try:
                taken = self.database.run(work, delivery.stream)
            except DBAPIError as error:
                if _state(error) != TOO_MUCH or most == 1:
                    raise
                most = (most + 1) // 2
                continue
            folded += taken
            if taken < most or most == len(delivery.events):
                return folded

    def remove(self, delivery: Delivery, fold: FoldRemoval) -> bool:
        """Fold a delivery's removal; False where it has been folded before, or a later one of the stream has.

        Raises:
            Contended, DBAPIError, InvalidInput: as `apply` does; also where the delivery has events.
        """
        must_be_plain(fold, "fold")
        removal = delivery.removal
        if removal is None:
            raise InvalidInput("delivery", "must be one of a removal: events are for `apply`")

        def work(connection: Connection) -> bool:
            found = self._progress(connection, delivery.stream)
            if removal.mark <= (found.removal or 0):
                return False
            with undivided(connection):
                must_be_done(fold(connection, removal), "fold")
            self._write(connection, delivery.stream, found, removal=removal.mark)
            return True

        return self.database.run(work, delivery.stream)

    def place(self, stream: str) -> int | None:
        """The next index of a stream to be folded; None where none has been."""
        found: int | None = self.database.run(
            lambda connection: self._progress(connection, stream).next_index, stream
        )
        return found

    def wait_for(self, stream: str, version: int, *, seconds: float = 10.0) -> bool:
        """Wait until every event of a stream below `version` is in the tables; whether they are.

        With the version of an append, what is read afterwards shows it. It needs a reaction to all types of the
        stream's events: an event that is never delivered is waited for in vain.
        """
        of = self.database
        return reached(version, lambda: self.place(stream), seconds, of.clock, of.sleep)

    def _progress(self, connection: Connection, stream: str) -> Row[Any]:
        """How far a stream is, all null where it has no row; and the mark of the transaction, `began`."""
        began = select(mark_of(connection.dialect.name).label("began")).subquery()
        row = began.outerjoin(_PROGRESS, self._of(stream))
        return connection.execute(select(began, _PROGRESS).select_from(row)).one()

    def _write(self, connection: Connection, stream: str, found: Row[Any], **values: int) -> None:
        """Say how far a stream is folded, last: a transaction that the fold has broken takes no more, and is no
        success. Who folds the same at the same time is refused one of the two rows by the database.
        """
        written: Update | Insert
        if found.removal is not None:
            written = update(_PROGRESS).where(self._of(stream)).values(**values)
        else:
            key = {"model": self.name, "generation": self.generation, "stream": _key(stream)}
            written = insert(_PROGRESS).values(**{**key, "removal": 0, **values})
        began = mark_of(connection.dialect.name)
        if connection.execute(written.returning(began)).scalar_one() != found.began:
            raise refused()

    def _of(self, stream: str) -> ColumnElement[bool]:
        return and_(self._mine(), _PROGRESS.c.stream == _key(stream))

    def _mine(self) -> ColumnElement[bool]:
        return and_(_PROGRESS.c.model == self.name, _PROGRESS.c.generation == self.generation)

    def _drop(self) -> None:
        # The tables first: a reaction that still folds into them fails, where it would else begin anew.
        self.database.run(self.metadata.drop_all, self.name)
        some = select(_PROGRESS.c.stream).where(self._mine()).limit(AT_ONCE)
        rows = delete(_PROGRESS).where(self._mine(), _PROGRESS.c.stream.in_(some))
        while self.database.run(lambda connection: connection.execute(rows).rowcount, self.name):
            pass


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlReadModels:
    """The read models of a database, and which generation of each is live.

    Attributes:
        engine: of the database. What reaches it, and who one is there, is its creator's business.
        tables: for each model a function that describes a generation's tables, whose names end with `_` and it.
    """

    engine: Engine
    tables: Mapping[str, Callable[[int], MetaData]]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep

    def __post_init__(self) -> None:
        """Refuse what could not be kept."""
        if self.engine.dialect.name not in _ISOLATION:
            raise InvalidInput(
                "engine", f"must be of {', '.join(_ISOLATION)}, not {self.engine.dialect.name}"
            )
        if isinstance(self.engine.pool, StaticPool):
            raise InvalidInput("engine", "must not share one connection: streams are folded side by side")

    def open(self, name: str, generation: int) -> SqlReadModel:
        """One generation, for the reaction that makes it. Its tables are made by `create`."""
        must_be_text(name, MAX_NAME_BYTES, "name")
        must_be_whole(generation, "generation", 1, MAX_GENERATION)
        if name not in self.tables:
            raise InvalidInput("name", f"must be among {', '.join(sorted(self.tables))}, not {name!r}")
        metadata, ending = self.tables[name](generation), f"_{generation}"
        for each in metadata.tables:
            if not each.endswith(ending):
                raise InvalidInput("tables", f"must have names that end with {ending}, and {each} does not")
        return SqlReadModel(
            database=self._database,
            name=name,
            generation=generation,
            metadata=metadata,
            tables={each.name.removesuffix(ending): each for each in metadata.sorted_tables},
        )

    def live(self, name: str) -> SqlReadModel:
        """The generation that is live; the first, as long as none has been made so."""
        return self.open(name, self._database.run(lambda connection: _live(connection, name), name) or 1)

    def swap(self, name: str, generation: int) -> SqlReadModel:
        """Make a generation the live one, and the views that are named as its tables without the generation. Wait until
        its reaction has caught up, or readers go back in time. Cut off in between, it is repeated.

        Raises:
            InvalidInput: a later one is live already.
        """
        model = self.open(name, generation)

        def find_before(connection: Connection) -> SqlReadModel:
            live = _live(connection, name)
            if live is not None and live > generation:
                raise InvalidInput("generation", f"{live} is live already")
            return self.open(name, live or generation)

        def make_live(connection: Connection) -> None:
            find_before(connection)
            row = (
                insert(_LIVE).values(model=name)
                if _live(connection, name) is None
                else update(_LIVE).where(_LIVE.c.model == name)
            )
            connection.execute(row.values(generation=generation))

        def swap_together(connection: Connection) -> None:
            _views(connection, find_before(connection), model)
            make_live(connection)

        if self.engine.dialect.name != "auroradsql":
            self._database.run(swap_together, name)
            return model
        # Aurora DSQL has no transaction of rows and views. The generation is made live last: until then a repeat knows
        # the views of the one before.
        before = self._database.run(find_before, name)
        self._database.run(lambda connection: _views(connection, before, model), name)
        self._database.run(make_live, name)
        return model

    def drop(self, name: str, generation: int) -> None:
        """Delete the tables of a generation, and how far they were. Remove its reaction first.

        Raises:
            InvalidInput: it is the live one.
        """
        if self.live(name).generation == generation:
            raise InvalidInput("generation", f"must not be the one that is live: {generation}")
        self.open(name, generation)._drop()  # noqa: SLF001  a generation does not know whether it is live

    @property
    def _database(self) -> _Database:
        return _Database(engine=self.engine, clock=self.clock, sleep=self.sleep)


def _live(connection: Connection, name: str) -> int | None:
    found = connection.execute(select(_LIVE.c.generation).where(_LIVE.c.model == name)).scalar_one_or_none()
    return None if found is None else int(found)


def _views(connection: Connection, before: SqlReadModel, model: SqlReadModel) -> None:
    """Replace the views, one after the other. In Aurora DSQL, where each statement is a transaction of its own, a view
    that keeps its columns is replaced by one statement, and any other is missing until the next one.
    """
    quote = connection.dialect.identifier_preparer
    for name in sorted({*before.tables, *model.tables}):
        view = quote.quote(name)
        if name not in model.tables:
            connection.execute(_changing_schema(f"DROP VIEW IF EXISTS {view}"))
            continue
        rows = f"SELECT * FROM {quote.format_table(model.tables[name])}"  # noqa: S608  it is quoted
        if connection.dialect.name == "auroradsql" and _replaced(connection, f"{view} AS {rows}"):
            continue
        connection.execute(_changing_schema(f"DROP VIEW IF EXISTS {view}"))
        connection.execute(_changing_schema(f"CREATE VIEW {view} AS {rows}"))


def _replaced(connection: Connection, view: str) -> bool:
    """Whether one statement made the view, which it does unless the view that is there has other columns."""
    try:
        connection.execute(_changing_schema(f"CREATE OR REPLACE VIEW {view}"))
    except DBAPIError as error:
        if _state(error) != OTHER_COLUMNS:
            raise
        connection.connection.rollback()
        return False
    return True


def _changing_schema(statement: str) -> DDL:
    """A statement that AWS's dialect for Aurora DSQL commits at once: of texts it cannot tell what they are."""
    return DDL("%(statement)s", context={"statement": statement})  # type: ignore[no-untyped-call]


def _attempts(error: DBAPIError, few: int) -> int:
    """How often what failed so is tried at most."""
    if error.connection_invalidated or _state(error) in CONFLICTS:
        return ATTEMPTS
    if getattr(error.orig, "sqlite_errorcode", 0) & 0xFF in LOCKED:
        return ATTEMPTS
    return few if isinstance(error, IntegrityError) or _state(error) in EXISTS else 1


def _state(error: DBAPIError) -> str | None:
    """The SQLSTATE, as psycopg or psycopg2 has it."""
    return getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)


def _key(stream: str) -> str:
    """A stream in the key of a row. Long names, and those that no text of PostgreSQL can hold, are there by their
    digest.
    """
    if "\0" not in stream and len(stream.encode()) <= MAX_NAME_BYTES:
        return stream
    return f"sha256:{sha256(stream.encode()).hexdigest()}"


# A part of a transaction in which nobody ends it: a fold that did would have half of its delivery committed, or lose
# what it wrote before. There are four ways to:
#
#     `commit()` and `rollback()` of SQLAlchemy   refused
#     the driver's own                            refused where its connections take attributes, as psycopg's do
#     a statement, as `ROLLBACK`                  refused, before it is sent
#     several statements in one text, or a        noticed at the end, when what was committed so is there: nothing can
#     driver of C other than SQLite's             take it back; the rest is rolled back
#
# SQLite refuses all of them itself, by an authorizer. What is swallowed is refused at the end.

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
