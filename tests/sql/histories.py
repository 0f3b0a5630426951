"""Killed histories: the events of some streams, delivered by two workers side by side, again and again, to a database
whose connections break, until both are done. What the tables then say is compared with a fold of the events.

A worker is a thread with what a process has: it is killed before or after any statement or commit, its socket shut
first, so that nothing of what it leaves behind is said to the database. Then it begins again somewhere before. Or only
its connection breaks, from this end or from the server's, or after a commit whose answer it never gets.
"""

from __future__ import annotations

import hashlib
import os
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    Table,
    Text,
    event,
    insert,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError

from epochal import Delivery, FeedEvent
from epochal.contrib.sql.read_models import SqlReadModel, SqlReadModels
from epochal.errors import Contended
from epochal.layout.changes import Removal

OF_STATEMENTS, OF_COMMITS = 0.01, 0.05
"""The share that something happens to; commits are few."""

FATES: Final = ("killed", "cut", "ended by the server")


class Killed(BaseException):
    """The end of a process."""


def described(generation: int) -> MetaData:
    """A row for each event, a number that streams share, and a digest that tells the order."""
    metadata = MetaData()
    Table(
        f"events_{generation}",
        metadata,
        Column("history", Text),
        Column("stream", Text),
        Column("place", Text),
    )
    for name, value in (("counts", Integer), ("digests", Text)):
        Table(
            f"{name}_{generation}",
            metadata,
            Column("history", Text, primary_key=True),
            Column("key", Text, primary_key=True),
            Column("value", value, nullable=False),
        )
    return metadata


@dataclass(slots=True)
class State:
    """What a history comes to."""

    events: Counter[tuple[str, str]] = field(default_factory=Counter)
    counts: dict[str, int] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)

    def take(self, stream: str, place: str, kind: str) -> None:
        self.events[stream, place] += 1
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.digests[stream] = following(self.digests.get(stream, ""), place)


def following(digest: str, place: str) -> str:
    return hashlib.sha256(f"{digest}{place}".encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Folds:
    """The same in SQL."""

    history: str
    model: SqlReadModel

    def event(self, connection: Connection, each: FeedEvent) -> None:
        self._take(connection, each.stream, str(each.index), each.type)

    def removal(self, connection: Connection, removal: Removal) -> None:
        self._take(connection, removal.stream, f"removed {removal.mark}", "removed")

    def _take(self, connection: Connection, stream: str, place: str, kind: str) -> None:
        values = {"history": self.history, "stream": stream, "place": place}
        connection.execute(insert(self.model.tables["events"]).values(values))
        self._change(connection, "counts", kind, lambda n: (n or 0) + 1)
        self._change(connection, "digests", stream, lambda digest: following(digest or "", place))

    def _change(self, connection: Connection, table: str, key: str, change: Callable[[Any], Any]) -> None:
        rows = self.model.tables[table]
        here = (rows.c.history == self.history) & (rows.c.key == key)
        before = connection.execute(select(rows.c.value).where(here)).scalar()
        if before is None:
            connection.execute(insert(rows).values(history=self.history, key=key, value=change(None)))
        else:
            connection.execute(update(rows).where(here).values(value=change(before)))

    def found(self, connection: Connection) -> State:
        state = State()
        events, counts, digests = (self.model.tables[name] for name in ("events", "counts", "digests"))
        for row in connection.execute(select(events).where(events.c.history == self.history)):
            state.events[row.stream, row.place] += 1
        for rows, kept in ((counts, state.counts), (digests, state.digests)):
            for row in connection.execute(select(rows).where(rows.c.history == self.history)):
                kept[row.key] = row.value
        return state


@dataclass(slots=True)
class Fates:
    """What happens to the statements and commits of an engine, in each thread by luck of its own."""

    admin: psycopg.Connection[Any]
    met: Counter[str] = field(default_factory=Counter)
    _lucks: threading.local = field(default_factory=threading.local)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def rule(self, engine: Engine) -> None:
        event.listen(engine, "do_execute", self._execute)
        commit = engine.dialect.do_commit

        def committing(connection: Any) -> None:
            self._befall(connection.dbapi_connection, "before a commit", OF_COMMITS)
            commit(connection)
            if self._befall(connection.dbapi_connection, "after a commit", OF_COMMITS):
                connection.dbapi_connection.execute("SELECT 1")  # the answer is lost

        engine.dialect.do_commit = committing  # type: ignore[method-assign]

    def within(self, luck: random.Random | None) -> None:
        """From now on, in this thread; None for nothing."""
        self._lucks.luck = luck

    def _execute(self, cursor: Any, statement: str, parameters: Any, _: Any) -> bool:
        self._befall(cursor.connection, "before a statement")
        cursor.execute(statement, parameters)
        self._befall(cursor.connection, "after a statement")
        return True

    def _befall(self, driver: psycopg.Connection[Any], where: str, share: float = OF_STATEMENTS) -> bool:
        """Whether anything happened that leaves the worker alive."""
        luck = getattr(self._lucks, "luck", None)
        if luck is None or luck.random() > share:
            return False
        fate = luck.choice(FATES)
        with self._lock:
            self.met[f"{fate} {where}"] += 1
            if fate == "ended by the server":
                self.admin.execute("SELECT pg_terminate_backend(%s)", [driver.info.backend_pid])
        if fate != "ended by the server":
            with suppress(OSError), socket.socket(fileno=os.dup(driver.fileno())) as ended:
                ended.shutdown(socket.SHUT_RDWR)
        if fate == "killed":
            raise Killed
        return True


def deliveries(history: str, luck: random.Random) -> dict[str, list[Delivery]]:
    """Of each stream, in order; some streams have been pruned or deleted meanwhile."""
    return {
        stream: [*_of(stream, luck)]
        for stream in (f"{history}-{name}" for name in "abc"[: luck.randint(2, 3)])
    }


def _of(stream: str, luck: random.Random) -> Iterator[Delivery]:
    index, first = 0, 0
    for _ in range(luck.randint(1, 4)):
        if index > first and luck.random() < 0.3:
            removal = Removal(stream, index, "emptied", index, first)
            first = index
            yield Delivery(group="g", partition=0, stream=stream, events=(), removal=removal)
        events = tuple(
            FeedEvent(stream=stream, index=index + each, type=luck.choice("xy"))
            for each in range(luck.randint(1, 3))
        )
        index += len(events)
        yield Delivery(group="g", partition=0, stream=stream, events=events)


def folded(given: dict[str, list[Delivery]]) -> State:
    """What they come to, each once and in order."""
    state = State()
    for each in (each for of_stream in given.values() for each in of_stream):
        if each.removal is not None:
            state.take(each.stream, f"removed {each.removal.mark}", "removed")
        for one in each.events:
            state.take(each.stream, str(one.index), one.type)
    return state


@dataclass(slots=True)
class World:
    """A database with the tables of one model, in which histories are played side by side in time.

    Attributes:
        workers: threads that deliver the same.
    """

    engine: Engine
    fates: Fates
    workers: int = 2
    opened: SqlReadModel = field(init=False)

    def __post_init__(self) -> None:
        models = SqlReadModels(
            engine=self.engine, tables={"all": described}, sleep=lambda seconds: time.sleep(seconds / 20)
        )
        self.opened = models.open("all", 1)
        self.opened.create()
        self.fates.rule(self.engine)

    def play(self, seed: int) -> tuple[State, State]:
        """What it should have come to, and what it has."""
        history = f"h{seed}"
        given = deliveries(history, random.Random(seed))
        folds, failed = Folds(history, self.opened), list[BaseException]()

        def run(number: int) -> None:
            try:
                self._work(folds, given, random.Random(f"{seed}/{number}"))
            except BaseException as error:  # noqa: BLE001  the thread's is the test's
                failed.append(error)

        threads = [threading.Thread(target=run, args=(number,)) for number in range(self.workers)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        if failed:
            raise failed[0]
        with self.engine.connect() as connection:
            return folded(given), folds.found(connection)

    def _work(self, folds: Folds, given: dict[str, list[Delivery]], luck: random.Random) -> None:
        """Deliver everything, streams in turn as luck has it; after an end, and now and then, from further back."""
        left = dict.fromkeys(given, 0)
        while left:
            stream = luck.choice(sorted(left))
            if left[stream] == len(given[stream]):
                del left[stream]
                continue
            self.fates.within(luck)
            try:
                self._deliver(folds, given[stream][left[stream]])
                left[stream] += 1
            except (Killed, Contended, DBAPIError):
                left[stream] = luck.randint(0, left[stream])
            finally:
                self.fates.within(None)
            if luck.random() < 0.1:
                left[stream] = luck.randint(0, left[stream])

    def _deliver(self, folds: Folds, each: Delivery) -> None:
        if each.removal is not None:
            self.opened.remove(each, folds.removal)
        else:
            self.opened.apply(each, folds.event)
