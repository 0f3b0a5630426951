"""The sales of the examples: each event is in the tables once, and a new generation takes the place of the old one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from epochal import Event
from epochal.contrib.sql.read_models import SqlReadModels
from epochal.testing.feeds import MemoryStore
from examples.sales.sales import OWED, described, updating


class Shop:
    """A store in memory, and a database in a file."""

    def __init__(self, models: SqlReadModels) -> None:
        self.feed, self.models = MemoryStore(), models

    def append(self, stream: str, kind: str, **data: Any) -> int:
        return self.feed.streams.append(
            stream, [Event.json(kind, data, timestamp="2026-11-01T00:00:00Z")]
        ).version

    def asked(self, query: Any = OWED) -> list[tuple[Any, ...]]:
        with self.models.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(query)]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    engine = create_engine(f"sqlite:///{tmp_path / 'sales.db'}")
    shop = Shop(SqlReadModels(engine=engine, tables={"sales": described}))
    shop.append("Order-1", "Placed", customer="Customer-a", cents=1_250)
    shop.append("Order-2", "Placed", customer="Customer-a", cents=99)
    shop.append("Order-3", "Placed", customer="Customer-b", cents=500)
    shop.append("Customer-a", "Joined", name="Ann")
    shop.append("Customer-b", "Joined", name="Bob")
    shop.append("Order-2", "Paid")
    yield shop
    engine.dispose()


def test_what_is_owed_is_asked_by_a_join_as_soon_as_it_was_waited_for(shop: Shop) -> None:
    kept = updating(shop.models, 1)
    shop.feed.react(kept)
    model = shop.models.swap("sales", 1)
    assert shop.asked() == [("Ann", 1, 1_250), ("Bob", 1, 500)]
    version = shop.append("Customer-b", "Renamed", name="Robert")
    assert not model.wait_for("Customer-b", version, seconds=0)
    shop.feed.react(kept)
    assert model.wait_for("Customer-b", version, seconds=0)
    assert shop.asked() == [("Ann", 1, 1_250), ("Robert", 1, 500)]


def test_what_is_delivered_again_counts_once(shop: Shop) -> None:
    kept = updating(shop.models, 1)
    shop.feed.react(kept)
    shop.models.swap("sales", 1)
    before = shop.asked()
    assert sum(ran.events for ran in shop.feed.react(replace(kept, name="again"))) == 6
    assert shop.asked() == before


def test_a_generation_is_built_beside_the_live_one_and_then_takes_its_views(shop: Shop) -> None:
    first, second = updating(shop.models, 1), updating(shop.models, 2)
    shop.feed.react(first)
    shop.models.swap("sales", 1)
    shop.feed.react(second)
    assert "paid_at" not in shop.asked(text("SELECT sql FROM sqlite_master WHERE name = 'orders'"))[0][0]
    shop.models.swap("sales", 2)
    shop.models.drop("sales", 1)
    assert shop.asked() == [("Ann", 1, 1_250), ("Bob", 1, 500)]
    (paid,) = shop.asked(text("SELECT id, paid_at FROM orders WHERE paid"))
    assert paid == ("Order-2", "2026-11-01T00:00:00.0000000+00:00")


def test_a_customer_whose_stream_is_deleted_is_in_no_table(shop: Shop) -> None:
    kept = updating(shop.models, 1)
    shop.feed.react(kept)
    shop.models.swap("sales", 1)
    shop.feed.streams.delete("Customer-a")
    shop.feed.react(kept)
    assert shop.asked(text("SELECT name FROM customers")) == [("Bob",)]
