"""A database for each test: of SQLite, of PostgreSQL, and of what refuses what Aurora DSQL does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine, create_engine

from tests.sql.dsql import dsql_engine
from tests.support.postgres import Postgres

EMPTY = """
DO $$ DECLARE each name; BEGIN
    PERFORM pg_terminate_backend(pid, 10000)
        FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();
    FOR each IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema$)' LOOP
        EXECUTE format('DROP SCHEMA %I CASCADE', each);
    END LOOP;
    CREATE SCHEMA public;
END $$
"""


@pytest.fixture(scope="session")
def _database(postgres: Postgres) -> str:
    with psycopg.connect(postgres.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE test STRATEGY FILE_COPY")
    return "test"


@pytest.fixture
def database(postgres: Postgres, _database: str) -> str:
    """The name of an empty one: to empty it takes a fraction of making one."""
    with psycopg.connect(postgres.conninfo(_database)) as connection:
        connection.execute(EMPTY)
    return _database


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
