"""Statements that would end a fold's transaction are refused before they are sent, in a time that grows with them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, create_engine, text

from epochal.contrib.sql.read_models import undivided
from epochal.errors import InvalidInput

ENDING = [
    "COMMIT",
    "  ; commit",
    "/* a */ -- b\n ;commit",
    "/* a /* b */ c */ COMMIT",
    "/* a /* b */ COMMIT",
    "/* COMMIT */ /**/ end",
    "/***/ABORT",
    "/* /*/ COMMIT",
    "-- a\r\nROLLBACK",
    "ROLLBACK WORK",
    "PREPARE TRANSACTION 'a'",
]
HARMLESS = [
    "SELECT 1",
    "/* COMMIT */ SELECT 1",
    "-- COMMIT\nSELECT 1",
    "/* a */ /* COMMIT */ -- COMMIT\n SELECT 1",
    "SELECT 'COMMIT'",
]


@pytest.fixture
def connection() -> Iterator[Connection]:
    with create_engine("sqlite://").connect() as connection, connection.begin():
        yield connection


@pytest.mark.parametrize("statement", ENDING)
def test_a_statement_that_ends_the_transaction_is_refused(connection: Connection, statement: str) -> None:
    with pytest.raises(InvalidInput, match="must leave the transaction"), undivided(connection):
        connection.execute(text(statement))


@pytest.mark.parametrize("statement", HARMLESS)
def test_another_statement_is_executed(connection: Connection, statement: str) -> None:
    with undivided(connection):
        assert connection.execute(text(statement)).scalar() is not None


@pytest.mark.parametrize(
    ("comment", "count"), [("/* */", 22), ("/* */ ", 22), ("/**/;", 22), ("/*\n*/-- */\n", 13)]
)
def test_comments_before_a_statement_take_no_time(connection: Connection, comment: str, count: int) -> None:
    start = time.process_time()
    with undivided(connection):
        assert connection.execute(text(f"{comment * count}SELECT 1")).scalar() == 1
    assert time.process_time() - start < 0.5
