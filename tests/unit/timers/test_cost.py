"""What a timer costs, from its setting to its firing: the same whatever waits beside it."""

from __future__ import annotations

from epochal.layout.port import every_table
from epochal.model.events import Event
from epochal.model.versions import Capacity
from epochal.plan.ops import Op, Reply
from epochal.plan.values import NONE
from epochal.store.timers import in_, later
from epochal.testing.memory import MemoryTables
from tests.unit.timers.world import World

DAY = 86_400
LIVES = 50


def spent(world: World, before: Capacity) -> tuple[float, float]:
    """Read and write units since then, of every table."""
    after = world.meter.capacity
    return after.read - before.read, after.write - before.write


class Counting(MemoryTables):
    """Tables that count the units of all requests, whoever sends them."""

    units = NONE

    def execute(self, op: Op) -> Reply:
        reply = super().execute(op)
        self.units += reply.units
        return reply


def life(pending: int, together: int) -> tuple[float, float]:
    """Units of a timer's whole life: its setting, the reaction that arms it with its checkpoint, and its firing. Only
    the index is not in it, which each append costs that is in the feed.
    """
    tables = Counting({spec.kind: spec for spec in every_table()})
    world = World(tables=tables)
    for number in range(pending):
        world.set(f"Waiting-{number}", "reminder", 300 * DAY)
    for number in range(together):
        world.streams.append(f"Loan-{number}", [Event.json("Lent", {})])
    world.arm()
    tables.units = NONE
    for number in range(together):
        world.set(f"Loan-{number}", "reminder", DAY)
    setting, tables.units = tables.units, NONE
    world.feed.index()
    tables.units = NONE
    world.arm()
    world.advance(2 * DAY)
    came = setting + tables.units
    assert all(world.types(f"Loan-{number}")[-1] == "$timer-fired" for number in range(together))
    return came.read / together, came.write / together


def test_a_life_is_at_most_eight_write_units_and_four_read_units() -> None:
    read, write = life(0, LIVES)
    assert write <= 5
    assert read <= 4


def test_a_lone_life_is_at_most_eight_write_units() -> None:
    """What it reads is the reaction's run, which looks at every partition, however many timers it finds there."""
    _, write = life(0, 1)
    assert write == 5


def test_what_waits_besides_moves_no_figure() -> None:
    assert life(0, LIVES) == life(400, LIVES)


def test_a_setting_costs_nothing_beside_the_append_that_it_goes_with() -> None:
    world = World()
    world.streams.append("Loan-1", [Event.json("Made", {})])
    token = world.streams.append("Loan-1", [Event.json("Made", {})]).token
    before = world.meter.capacity
    reminder = later("reminder", [Event.json("Reminded", {})], at=in_(days=14))
    world.streams.append("Loan-1", [Event.json("Lent", {}), reminder], expected=token)
    assert spent(world, before)[1] == 1
