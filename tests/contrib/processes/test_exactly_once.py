"""A process that is killed at any request, and given anything again, does what it does once and in order."""

from __future__ import annotations

import pytest

from tests.contrib.processes.world import Placed, World

PAID = [
    "$input", "$send", "$timer-set", "$performed",
    "$input", "$call", "$timer-cancelled",
    "Shipped", "$performed",
    "$input", "$publish", "$append", "$done", "$performed",
]  # fmt: skip
REFUSED = [
    "$input", "$send", "$timer-set", "$refused",
    "$input", "$append", "$done", "$timer-cancelled", "$performed",
]  # fmt: skip


def played(total: int, world: World | None = None) -> World:
    """An order, and all that follows from it."""
    world = world or World()
    world.append("Order-1", Placed(total))
    world.run()
    return world


def test_an_order_is_paid_shipped_and_confirmed_in_this_order() -> None:
    world = played(10)
    assert world.types("checkout-1") == PAID
    assert world.types("Payment-1") == ["Charged"]
    assert world.types("Order-1") == ["Placed", "Confirmed"]
    assert world.outside.calls == [("carrier", "checkout-1@5"), ("news", "checkout-1@10")]
    assert world.instance().state.seen == ("Placed", "Charged", "Shipped")
    assert world.instance().done


def test_a_refusal_comes_back_as_an_input() -> None:
    world = played(1_000)
    assert world.types("checkout-1") == REFUSED
    assert world.types("Payment-1") == []
    assert world.types("Order-1") == ["Placed", "Released"]


@pytest.mark.slow
@pytest.mark.parametrize("arrives", [False, True])
@pytest.mark.parametrize(("total", "story"), [(10, PAID), (1_000, REFUSED)])
@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.proof)])
def test_killed_at_any_request_it_ends_as_if_it_had_not_been(
    total: int, story: list[str], arrives: bool, every: int
) -> None:
    whole = played(total)
    assert whole.requests > 30
    for death in range(every - 1, whole.requests, every):
        world = World(dies=lambda number, death=death: arrives if number == death else None)  # type: ignore[misc]
        played(total, world)
        assert [each for each in world.types("checkout-1") if each != "$performed"] == [
            each for each in story if each != "$performed"
        ]
        assert world.events("Payment-1") == whole.events("Payment-1")
        assert world.events("Order-1") == whole.events("Order-1")
        assert world.outside.once == whole.outside.once, "in order, and the same keys"
        assert len(world.outside.calls) <= len(whole.outside.calls) + 1, "again only what was under way"
        assert world.instance() == whole.instance()


def test_what_comes_again_from_the_beginning_changes_nothing() -> None:
    world = played(10)
    before, calls = world.events("checkout-1"), list(world.outside.calls)
    for reaction in world.reactions:
        world.feed.groups.reset(reaction.name, "beginning")
    world.run()
    assert (world.events("checkout-1"), world.outside.calls) == (before, calls)
    assert world.types("Payment-1") == ["Charged"]
    assert [each for each in world.passed if each[0] == "again"] == [
        ("again", "Order-1@0"),
        ("again", "Payment-1@0"),
        ("again", "checkout-1@7"),
    ]
