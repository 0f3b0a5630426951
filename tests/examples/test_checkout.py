"""The checkout of the examples: each of its ends, as examples of its rules and in a store in memory."""

from __future__ import annotations

import pytest

from epochal import after, later
from epochal.contrib.processes import Append, CommandRefused, Done, Send
from epochal.contrib.processes.testing import given_process
from epochal.testing.feeds import MemoryStore
from examples.checkout.checkout import (
    CODEC,
    Abandoned,
    Checkout,
    Confirmed,
    GaveUp,
    Paid,
    Placed,
    Release,
    Request,
    Reserve,
    Reserved,
)

PLACED = Placed("17", "lamp", 10)


def test_its_rules() -> None:
    given_process(Checkout).when(PLACED).then(Send("Stock-lamp", Reserve("17")))
    reserved = given_process(Checkout, PLACED).when(Reserved("17"))
    reserved.then(Send("Payment", Request(10)), later("GaveUp", [GaveUp()], at=after(minutes=30)))
    reserved.when(Paid()).then(Append("Order", [Confirmed()]), Done())
    reserved.after(minutes=30).then(
        Send("Stock-lamp", Release("17")), Append("Order", [Abandoned("nobody has paid")]), Done()
    )
    given_process(Checkout, PLACED).when(CommandRefused(Reserve("17"), "SoldOut")).then(
        Append("Order", [Abandoned("SoldOut")]), Done()
    )


class Shop:
    """A store in memory."""

    def __init__(self) -> None:
        self.feed = MemoryStore()

    def append(self, stream: str, event: object) -> None:
        self.feed.streams.append(stream, [CODEC.encode(event)])

    def place(self, *orders: str) -> None:
        for order in orders:
            self.append(f"Order-{order}", Placed(order, "lamp", 10))
        self.feed.react(Checkout)

    def types(self, stream: str) -> list[str]:
        return [each.type for each in self.feed.streams.read(stream)]


@pytest.fixture
def shop() -> Shop:
    return Shop()


def test_an_order_that_is_paid_in_time_is_confirmed(shop: Shop) -> None:
    shop.place("17")
    assert shop.feed.advance(Checkout, minutes=29) == 0
    shop.append("Payment-17", Paid())
    assert shop.feed.advance(Checkout, days=1) == 0
    assert shop.types("Order-17") == ["Placed", "Confirmed"]
    assert shop.types("Stock-lamp") == ["Reserved"]


@pytest.mark.slow
def test_an_order_that_nobody_pays_is_abandoned_and_the_next_one_gets_what_it_held(shop: Shop) -> None:
    shop.place("1", "2", "3")
    shop.place("4")
    assert shop.types("Order-4") == ["Placed", "Abandoned"]
    assert shop.feed.advance(Checkout, minutes=30) == 3
    assert shop.types("Order-1") == ["Placed", "Abandoned"]
    assert sorted(shop.types("Stock-lamp")) == ["Released"] * 3 + ["Reserved"] * 3
    shop.place("5")
    assert shop.types("Payment-5") == ["Requested"]


def test_a_payment_that_comes_too_late_changes_nothing(shop: Shop) -> None:
    shop.place("17")
    shop.feed.advance(Checkout, minutes=30)
    shop.append("Payment-17", Paid())
    shop.feed.react(Checkout)
    assert shop.types("Order-17") == ["Placed", "Abandoned"]
