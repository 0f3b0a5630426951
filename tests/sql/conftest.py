"""A database for each test: of SQLite, of PostgreSQL, and of what refuses what Aurora DSQL does."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine, create_engine

from tests.sql.dsql import dsql_engine
from tests.support.postgres import Postgres

_NUMBERS = itertools.count()


@pytest.fixture
def database(postgres: Postgres) -> str:
    """The name of an empty one."""
    name = f"test_{next(_NUMBERS)}"
    with psycopg.connect(postgres.conninfo(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} STRATEGY FILE_COPY".encode())
    return name


@pytest.fixture
def postgres_engine(postgres: Postgres, database: str) -> Iterator[Engine]:
    engine = create_engine(postgres.url(database))
    yield engine
    engine.dispose()


@pytest.fixture
def aurora_engine(postgres: Postgres, database: str) -> Iterator[Engine]:
    engine = dsql_engine(postgres.url(database, "auroradsql+psycopg"))
    yield engine
    engine.dispose()


@pytest.fixture
def sqlite_engine(tmp_path: Path) -> Iterator[Engine]:
    engine = create_engine(f"sqlite:///{tmp_path / 'models.db'}")
    yield engine
    engine.dispose()


@pytest.fixture(params=["sqlite", "postgres", "aurora"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """One after the other."""
    found: Engine = request.getfixturevalue(f"{request.param}_engine")
    return found


@pytest.fixture(params=["postgres", "aurora"])
def snapshots(request: pytest.FixtureRequest) -> Engine:
    """Those whose writers do not wait for each other from the beginning on."""
    found: Engine = request.getfixturevalue(f"{request.param}_engine")
    return found
