# ruff: noqa: SLF001  what is left out is inside
"""What keeps read models in PostgreSQL exact, left out piece by piece: killed histories find each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, Engine, null
from sqlalchemy.exc import DBAPIError

from epochal.contrib.sql import read_models as sql
from tests.sql.histories import Fates, World
from tests.support.postgres import Postgres

MOST = 300
"""Histories that a mutant may survive."""

Patch = pytest.MonkeyPatch


def without_snapshots(monkeypatch: Patch) -> None:
    """What a fold has read, another may change before it writes."""
    monkeypatch.setitem(sql._ISOLATION, "postgresql", "READ COMMITTED")


def progress_last(monkeypatch: Patch) -> None:
    """How far a stream is, is committed after what is folded, in a transaction of its own."""
    monkeypatch.setattr(sql, "mark_of", lambda _: null())
    write, once = sql.SqlReadModel._write, sql._Database._once
    later: dict[Connection, Callable[[], object]] = {}

    def kept(self: sql.SqlReadModel, connection: Connection, *given: Any, **values: int) -> None:
        later[connection] = lambda: once(self.database, lambda other: write(self, other, *given, **values))

    def then(self: sql._Database, work: Callable[[Connection], Any]) -> Any:
        used: list[Connection] = []

        def noted(connection: Connection) -> Any:
            used.append(connection)
            return work(connection)

        result = once(self, noted)
        later.pop(used[0], lambda: None)()
        return result

    monkeypatch.setattr(sql.SqlReadModel, "_write", kept)
    monkeypatch.setattr(sql._Database, "_once", then)


def places_are_not_asked(monkeypatch: Patch) -> None:
    """What has been folded before is folded again."""
    progress = sql.SqlReadModel._progress

    class Forgetful:
        def __init__(self, found: Any) -> None:
            self.began, self.next_index, self.removal = found.began, None, found.removal and 0

    def forgetful(self: sql.SqlReadModel, connection: Connection, stream: str) -> Any:
        return Forgetful(progress(self, connection, stream))

    monkeypatch.setattr(sql.SqlReadModel, "_progress", forgetful)


def each_statement_by_itself(monkeypatch: Patch) -> None:
    """Nothing is taken back."""
    monkeypatch.setattr(sql, "mark_of", lambda _: null())
    monkeypatch.setitem(sql._ISOLATION, "postgresql", "AUTOCOMMIT")


def removals_are_not_noted(monkeypatch: Patch) -> None:
    """A removal that comes again is folded again."""
    write = sql.SqlReadModel._write

    def other(self: sql.SqlReadModel, connection: Connection, stream: str, found: Any, **values: int) -> None:
        write(self, connection, stream, found, **{**values, "removal": 0})

    monkeypatch.setattr(sql.SqlReadModel, "_write", other)


def a_place_is_one_too_high(monkeypatch: Patch) -> None:
    """The event after what was folded is taken for folded."""
    write = sql.SqlReadModel._write

    def other(self: sql.SqlReadModel, connection: Connection, stream: str, found: Any, **values: int) -> None:
        write(self, connection, stream, found, **{name: value + 1 for name, value in values.items()})

    monkeypatch.setattr(sql.SqlReadModel, "_write", other)


def nothing_is_tried_again(monkeypatch: Patch) -> None:
    """An answer that is lost is taken for a success."""
    once = sql._Database._once

    def swallowing(self: sql._Database, work: Callable[[Connection], Any]) -> Any:
        try:
            return once(self, work)
        except DBAPIError as error:
            if error.connection_invalidated:
                return 0
            raise

    monkeypatch.setattr(sql._Database, "_once", swallowing)


MUTANTS = (
    without_snapshots,
    progress_last,
    places_are_not_asked,
    each_statement_by_itself,
    removals_are_not_noted,
    a_place_is_one_too_high,
    nothing_is_tried_again,
)


@pytest.fixture
def fates(postgres: Postgres) -> Iterator[Fates]:
    with psycopg.connect(postgres.conninfo(), autocommit=True) as admin:
        yield Fates(admin)


@pytest.mark.parametrize("mutant", MUTANTS, ids=[each.__name__ for each in MUTANTS])
def test_a_history_finds_what_was_left_out(
    postgres_engine: Engine, fates: Fates, monkeypatch: Patch, mutant: Callable[[Patch], None]
) -> None:
    world = World(postgres_engine, fates)
    mutant(monkeypatch)
    for seed in range(MOST):
        expected, found = world.play(seed)
        if found != expected:
            return
    pytest.fail(f"{MOST} histories hold without it")
