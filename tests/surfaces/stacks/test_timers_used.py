"""What the functions of timers may do is what their plans do: held together over tables in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random

from epochal.contrib.sekiban.items import EVENTS, TAGS
from epochal.layout.port import Port
from epochal.layout.tables import TIMERS
from epochal.model.events import Event
from epochal.plan.failures import Lost
from epochal.plan.ops import Op, Put, Transact, Update
from epochal.plugins import layouts
from epochal.scheduling import after, cancel, later
from epochal.store.tagged import TaggedStore
from tests.contrib.timers.world import World
from tests.support.permissions import Allowed, actions, allowed, on

DAY = 86_400
PORTS: dict[str, Port] = {each.name: each.port for each in layouts()}


def asked_by(world: World, do: Callable[[], object]) -> list[Op]:
    """What the engine asks meanwhile."""
    world.asked.clear()
    do()
    return [*world.asked]


def used(operations: Iterable[Op]) -> Allowed:
    """What may be done by whoever asks this."""
    return {pair for op in operations for pair in actions(op)}


def overtaken(world: World, once: Callable[[], object]) -> None:
    """Somebody else is faster than the next write of the engine to a stream."""

    def fails(op: Op) -> None:
        if isinstance(op, Put | Update | Transact) and f"'{TIMERS.kind}'" not in repr(op):
            world.fails = lambda _: None
            once()

    world.fails = fails


def lost(world: World) -> None:
    """The answer to the next write of the engine to a stream does not arrive, though it was done."""

    def fails(op: Op) -> None:
        if isinstance(op, Put | Update | Transact) and f"'{TIMERS.kind}'" not in repr(op):
            world.fails = lambda _: None
            world.tables.execute(op)
            raise Lost("reset")

    world.fails = fails


def fired_in_streams(world: World, layout: str) -> list[Op]:
    store, large = world.stores[layout], Random(1).randbytes(2_000)
    found = list[Op]()
    for number, events in enumerate((1, 60)):
        stream = f"Loan-{number}"
        world.set(
            stream, "reminder", DAY, *[Event(type="Came", data=large) for _ in range(20)], layout=layout
        )
        store.append(stream, [Event(type="Moved", data=large) for _ in range(events)])
        for _ in range(events):
            store.append(stream, [Event(type="Moved", data=large)])
        world.set(stream, "other", DAY, layout=layout)
    world.set("Loan-2", "cancelled", DAY, layout=layout)
    store.append("Loan-2", [cancel("cancelled")])
    world.arm()
    overtaken(world, lambda: store.append("Loan-0", [Event(type="Meanwhile")]))
    found += asked_by(world, lambda: world.advance(DAY - 1))
    found += asked_by(world, lambda: world.advance(DAY))
    world.set("Loan-3", "reminder", DAY, layout=layout)
    world.arm()
    lost(world)
    found += asked_by(world, lambda: world.advance(2 * DAY))
    assert world.items() == []
    return found


def fired_under_tags(world: World, store: TaggedStore) -> list[Op]:
    for number in range(30):
        timer = later(
            f"reminder{number}", [Event(type="Came", tags=("loan:1", "member:2"))], at=after(days=1)
        )
        store.append([replace(timer, tags=("loan:1",))])
    large = Random(1).randbytes(30_000)
    for name in ("a", "b"):
        came = [Event(type="Came", data=large, tags=("shop:1",))]
        store.append([later(name, came, at=after(days=1), tags=("loan:2", "member:2"))])
    for tag in (
        "loan:2",
        "member:2",
    ):  # whose timers are among those of both, whose bodies are with one of the tags
        store.append([later("c", [Event(type="Came")], at=after(days=1), tags=(tag,))])
    store.append([cancel("a", tags=("loan:2", "member:2"))])
    world.arm()
    overtaken(world, lambda: store.append([cancel("reminder7", tags=("loan:1",))]))
    found = asked_by(world, lambda: world.advance(2 * DAY))
    store.append([later("c", [Event(type="Came")], at=after(days=1), tags=("loan:3", "member:3"))])
    world.arm()
    lost(world)
    found += asked_by(world, lambda: world.advance(2 * DAY))
    assert world.items() == []
    return found


def test_what_fires_timers_in_pages_may_do_what_it_does_and_nothing_else() -> None:
    found = fired_in_streams(World(), "pages") + fired_under_tags(world := World(), world.tagged)
    assert used(found) - on(TIMERS.kind, "Query", "DeleteItem") == allowed(PORTS["pages"], "timers")


def test_so_may_what_fires_them_in_tips() -> None:
    found = fired_in_streams(World(), "tips")
    assert used(found) - on(TIMERS.kind, "Query", "DeleteItem") == allowed(PORTS["tips"], "timers")


def fired_under_tags_of_sekiban() -> list[Op]:
    world = World()
    store = replace(world.feed.dcb, driver=world.engine.driver, now=lambda: world.time)
    world.engine = replace(world.engine, tagged={"dcb": store})
    return fired_under_tags(world, store)


def test_so_may_what_fires_them_under_tags_of_sekibans_tables() -> None:
    # Transactions that get what a plain read does not find, as of events that expire.
    seldom = on(EVENTS.kind, "GetItem") | on(TAGS.kind, "GetItem")
    found = fired_under_tags_of_sekiban()
    assert used(found) - on(TIMERS.kind, "Query", "DeleteItem") == allowed(PORTS["dcb"], "timers") - seldom


def armed() -> list[Op]:
    world = World()
    world.set("Loan-1", "reminder", DAY)
    world.set("Loan-1", "soon", 5)
    return asked_by(world, world.arm)


def test_what_arms_puts_items_and_does_nothing_else() -> None:
    assert used(armed()) == on(TIMERS.kind, "PutItem")


def test_a_tick_asks_the_table_of_timers_and_no_other() -> None:
    world = World()
    world.set("Loan-1", "reminder", DAY)
    world.arm()
    assert asked_by(world, lambda: world.advance(DAY - 60)) == []
