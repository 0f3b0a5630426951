"""A category gets a dictionary where it pays on streams it was not trained on, and another once its events change."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from epochal.care.auditor import Trained, train
from epochal.care.training import EACH, EXAMPLES, LEAST, TOGETHER
from epochal.contrib.equinox.port import tips_source
from epochal.errors import InvalidInput
from epochal.layout.pages.items import STREAMS, read_page
from epochal.layout.pages.port import pages_source
from epochal.layout.pages.streams import Pages
from epochal.model.events import Event
from epochal.plan.ops import Put, Scan
from epochal.plan.values import binary
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from tests.support.dictionaries import forget

SOURCE = pages_source("streams")


class Shop:
    """Orders, some events a stream."""

    def __init__(self) -> None:
        self.tables = MemoryTables({"streams": STREAMS})
        self.driver = Driver(execute=self.tables.execute, meter=Meter())
        self.now = 1_357_000_000_000_000_000
        self._rng = Random(1)

    @property
    def streams(self) -> Streams:
        """As a process of its own opens them."""
        layout = Pages(dictionaries=True)
        return Streams(driver=self.driver, table="streams", layout=layout, now=lambda: self.now)

    def order(self, stream: str, events: int = 1, **fields: Any) -> None:
        store = self.streams
        for _ in range(events):
            data = {"order": self._rng.randrange(10**9), "currency": "EUR", "country": "Germany", **fields}
            store.append(stream, [Event(type="Ordered", data=json.dumps(data).encode())])

    def fill(self, streams: int = 60, **fields: Any) -> None:
        for number in range(streams):
            self.order(f"Order-{number}", **fields)

    def train(self, category: str = "Order") -> Trained:
        return train(self.driver, SOURCE, category)

    def used(self, stream: str) -> list[str | None]:
        """The dictionary of each of a stream's frames."""
        items = [item for item in self.tables.items("streams") if item["p"]["S"] == stream]
        frames = [frame for item in items for frame in read_page(item).frames]
        return [None if frame.dictionary is None else frame.dictionary.hex() for frame in frames]


@pytest.fixture
def shop() -> Shop:
    return Shop()


def test_writers_take_what_pays_and_everything_is_read_as_before(shop: Shop) -> None:
    shop.fill()
    before = [event.data for event in shop.streams.read("Order-1")]
    trained = shop.train()
    shop.order("Order-1")

    assert trained.in_use
    assert (trained.category, trained.streams, trained.events, trained.measured) == ("Order", 40, 40, 20)
    assert trained.after < 0.6 * trained.before
    assert shop.used("Order-1") == [None, trained.dictionary]
    assert [event.data for event in shop.streams.read("Order-1")][:1] == before
    assert len(list(shop.streams.read("Order-1"))) == 2


def test_what_is_in_use_is_measured_against_so_the_same_events_change_nothing(shop: Shop) -> None:
    shop.fill()
    first = shop.train()
    again = shop.train()
    assert (again.in_use, again.dictionary) == (False, first.dictionary)
    assert again.before == again.after == first.after


@pytest.mark.slow
def test_events_of_another_shape_get_another_dictionary_and_old_ones_are_still_read(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.fill()
    first = shop.train()
    shop.order("Order-1")
    for number in range(60):
        shop.order(
            f"Order-{number}", 4, warehouse="Rotterdam", carrier="by rail and ship", priority="standard"
        )
    second = shop.train()
    shop.now += 3600 * 10**9
    shop.order("Order-1")

    assert second.in_use
    assert second.dictionary != first.dictionary
    assert {first.dictionary, second.dictionary} < set(shop.used("Order-1"))
    forget(monkeypatch)
    assert len(list(shop.streams.read("Order-1"))) == 7


@pytest.mark.parametrize(
    ("streams", "events", "enough"),
    [(3, 40, False), (20, 2, False), (44, 1, False), (45, 1, True), (8, 9, False)],
)
def test_of_few_events_or_streams_nothing_is_made(
    shop: Shop, streams: int, events: int, enough: bool
) -> None:
    for number in range(streams):
        shop.order(f"Order-{number}", events)
    trained = shop.train()
    assert (trained.dictionary is not None, trained.in_use) == (enough, enough)
    assert (trained.events >= LEAST) or not enough
    assert trained.events <= EACH * streams


@pytest.mark.slow
def test_where_it_does_not_pay_nothing_is_changed(shop: Shop) -> None:
    rng = Random(1)
    for number in range(60):
        shop.order(f"Order-{number}", note=rng.randbytes(900).hex())
    trained = shop.train()
    assert trained.dictionary is not None
    assert trained.after > 0.9 * trained.before
    assert not trained.in_use
    assert [item for item in shop.tables.items("streams") if item["p"]["S"].startswith("$")] == []


def test_other_categories_are_not_trained_on(shop: Shop) -> None:
    shop.fill()
    for number in range(60):
        shop.order(f"Return-{number}", reason="arrived too late")
    trained = shop.train()
    assert (trained.streams, trained.measured) == (40, 20)
    shop.order("Return-1")
    assert shop.used("Return-1") == [None, None]


def test_what_is_pruned_or_cannot_be_read_is_not_trained_on(shop: Shop) -> None:
    shop.fill()
    for number in range(30):
        shop.streams.prune(f"Order-{number}", 1)
    item = next(item for item in shop.tables.items("streams") if item["p"]["S"] == "Order-40")
    shop.driver.ask(Put(table="streams", item={**item, "f": {"L": [binary(b"\x63")]}}))
    trained = shop.train()
    assert trained.streams + trained.measured < 30


@pytest.mark.slow
def test_training_is_bounded(shop: Shop) -> None:
    """By requests, by what is looked at, and by what is trained on."""
    for number in range(500):
        shop.order(f"Order-{number}", note="x" * 300)
    ops: list[Any] = []

    def execute(op: Any) -> Any:
        ops.append(op)
        return shop.tables.execute(op)

    trained = train(Driver(execute=execute, meter=Meter()), SOURCE, "Order")
    assert trained.events <= EXAMPLES
    assert trained.events * 400 < TOGETHER
    assert all(not op.consistent for op in ops if isinstance(op, Scan))


def test_layouts_without_dictionaries_say_so(shop: Shop) -> None:
    with pytest.raises(InvalidInput, match="tips has no dictionaries"):
        train(shop.driver, tips_source("tips"), "Order")
