"""G18: read models in PostgreSQL have every event once, whoever is killed and whatever breaks."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sqlalchemy import Engine

from tests.sql.histories import FATES, Fates, World
from tests.support.postgres import Postgres

FEW = 60
MANY = 10_000
AT_ONCE = 4


@pytest.fixture
def fates(postgres: Postgres) -> Iterator[Fates]:
    with psycopg.connect(postgres.conninfo(), autocommit=True) as admin:
        yield Fates(admin)


@pytest.mark.parametrize(
    "histories", [FEW, pytest.param(MANY, marks=[pytest.mark.proof, pytest.mark.timeout(3_600)])]
)
def test_no_event_is_lost_or_doubled_whoever_is_killed(
    postgres_engine: Engine, fates: Fates, histories: int
) -> None:
    world = World(postgres_engine, fates)
    with ThreadPoolExecutor(AT_ONCE) as several:
        for seed, (expected, found) in enumerate(several.map(world.play, range(histories))):
            assert found == expected, f"history {seed}"
    places = [f"{when} a {what}" for when in ("before", "after") for what in ("statement", "commit")]
    assert set(fates.met) == {f"{fate} {place}" for fate in FATES for place in places}
    print(f"{histories:,} histories: {sum(fates.met.values()):,} breaks, {dict(fates.met)}")  # noqa: T201
