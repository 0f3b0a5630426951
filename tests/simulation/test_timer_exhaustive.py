"""Timers on small worlds, without luck: set, cancelled, set again, armed by two and fired by two, with deaths anywhere.

A timer that is pending and due fires once, at its time or later; and nothing else fires.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from epochal.contrib.timers import engine, protocol
from epochal.contrib.timers.engine import Engine
from epochal.contrib.timers.protocol import Armed, Came, Doing, Fire, LoadPending, Sent, Wake, Worked
from epochal.contrib.timers.stores import PendingTimers, pending_in
from epochal.model.expected_version import ANY
from epochal.model.moments import Ticks
from epochal.plan.batches import side_by_side
from epochal.plan.ops import Delete, Put
from tests.simulation.exploring import each_of
from tests.simulation.mutants import Mutant, Patch
from tests.simulation.timer_explorer import World

HOUR = 3_600

ONCE = (("S", "x", 1),)
ANEW = (("S", "x", 1), ("S", "x", 1))
AGAIN = (("S", "x", 1), ("C", "x"), ("S", "x", 2))
SAME = (("S", "x", 1), ("C", "x"), ("S", "x", 1))
LATE = (("N",), ("C", "x"), ("S", "x", 1))
TWO_OF_A_SLOT = (("S", "y", 3), ("S", "x", 2))
TWO = (("S", "y", 2), ("S", "x", 1))


def a_timer_and_two_deaths() -> World:
    return World(script=ONCE, deaths=2)


def a_timer_of_a_slot_and_a_death() -> World:
    return World(script=ONCE, unit=HOUR, until=1)


def a_timer_that_is_cancelled_and_set_again() -> World:
    return World(script=AGAIN, deaths=0)


def a_timer_of_a_slot_that_is_cancelled_and_set_again() -> World:
    return World(script=SAME, unit=HOUR, deaths=0, until=1)


def a_timer_of_a_slot_that_is_set_anew_and_a_death() -> World:
    return World(script=ANEW, unit=HOUR, until=1)


def a_timer_that_two_fire() -> World:
    return World(script=ONCE, wakers=2)


def a_timer_that_two_arm() -> World:
    return World(script=ONCE, reactors=2)


def two_timers() -> World:
    return World(script=TWO, deaths=0)


def two_timers_of_slots() -> World:
    return World(script=TWO, unit=HOUR, deaths=0)


def two_timers_within_a_slot() -> World:
    """A slot's wake-up comes when it begins, and its timers are due later in it."""
    return World(script=TWO_OF_A_SLOT, moments=(0, 1_200, 1_220, 1_240), until=3, deaths=0)


def a_timer_of_a_slot_whose_stream_goes_on() -> World:
    return World(script=(("S", "x", 1), ("N",)), unit=HOUR, until=1)


def two_reactors_that_delete_what_was_cancelled() -> World:
    return World(script=LATE, reactors=2, unit=HOUR, until=1, deaths=0, tidy=True)


def two_fire_what_is_cancelled_and_set_again() -> World:
    return World(script=SAME, wakers=2, deaths=0)


def two_arm_what_is_set_anew() -> World:
    return World(script=ANEW, reactors=2, deaths=0)


def a_death_and_a_timer_that_is_cancelled_and_set_again() -> World:
    return World(script=AGAIN, deaths=1)


def a_timer_that_is_set_twice_cancelled_and_set_once_more() -> World:
    return World(script=(*ANEW, ("C", "x"), ("S", "x", 1)), deaths=0)


def two_arm_and_two_fire() -> World:
    return World(script=ONCE, reactors=2, wakers=2, deaths=0)


WORLDS = (
    a_timer_of_a_slot_and_a_death,
    a_timer_and_two_deaths,
    a_timer_that_is_cancelled_and_set_again,
    a_timer_of_a_slot_that_is_cancelled_and_set_again,
    a_timer_of_a_slot_that_is_set_anew_and_a_death,
    a_timer_that_two_fire,
    a_timer_that_two_arm,
    two_timers,
    two_timers_of_slots,
    two_timers_within_a_slot,
    a_timer_of_a_slot_whose_stream_goes_on,
    two_reactors_that_delete_what_was_cancelled,
    two_fire_what_is_cancelled_and_set_again,
    two_arm_what_is_set_anew,
    a_death_and_a_timer_that_is_cancelled_and_set_again,
    a_timer_that_is_set_twice_cancelled_and_set_once_more,
    two_arm_and_two_fire,
)
DEAR = (
    two_reactors_that_delete_what_was_cancelled,
    two_fire_what_is_cancelled_and_set_again,
    two_arm_what_is_set_anew,
    a_death_and_a_timer_that_is_cancelled_and_set_again,
    a_timer_that_is_set_twice_cancelled_and_set_once_more,
    two_arm_and_two_fire,
)


@each_of(WORLDS, dear=DEAR)
def test_a_timer_fires_once_if_it_is_pending_at_its_time_whatever_happens(world: Callable[[], World]) -> None:
    found = world()
    assert found.explore() > 100
    if world is two_timers_within_a_slot:
        assert found.met >= {"fired", "refused", "schedule", "schedule that is there", "early"}


# ------------------------------------------------------------------------------------------------ the rules taken out


def a_wake_up_is_sent_before_its_item_is_put(patch: Patch) -> None:
    def arming(table: str, timers: Sequence[Armed], now: Callable[[], Ticks]) -> Doing[None]:
        yield Sent.arming(timers, now())
        yield from side_by_side(Put(table=table, item=each.item) for each in timers)

    patch.setattr(protocol, "arming", arming)


def items_have_the_names_of_timers(patch: Patch) -> None:
    """Of one name and time there is one item, however often that is set."""
    right: Any = Armed.key
    patch.setattr(Armed, "key", property(lambda self: right.fget(replace(self, place=0))))


def a_firing_has_no_condition(patch: Patch) -> None:
    append = Engine.try_append
    patch.setattr(Engine, "try_append", lambda self, scope, events, _: append(self, scope, events, ANY))


def an_item_is_deleted_before_the_firing(patch: Patch) -> None:
    firing = protocol.firing

    def deleted(table: str, timers: Sequence[Armed], now: Ticks) -> Doing[Came]:
        yield from side_by_side(Delete(table=table, key=each.key) for each in timers)
        return (yield from firing(table, timers, now))

    patch.setattr(protocol, "firing", deleted)


def a_wake_up_is_done_when_it_is_taken(patch: Patch) -> None:
    patch.setattr(World, "done_when_taken", True)


def wake_ups_of_a_slot_that_is_at_work_are_merged(patch: Patch) -> None:
    patch.setattr(protocol, "NEAR", -(10**15))


def a_refused_firing_is_not_tried_again(patch: Patch) -> None:
    fire = Engine._fire  # noqa: SLF001  likewise

    def once(self: Engine, asked: Fire) -> Any:
        answer = fire(self, asked)
        return answer if isinstance(answer, int) else len(asked.due)

    patch.setattr(Engine, "_fire", once)


def what_is_pending_is_fired_before_its_time(patch: Patch) -> None:
    firing = protocol.firing
    patch.setattr(protocol, "firing", lambda table, timers, _: firing(table, timers, Ticks(10**18)))


def what_is_early_is_taken_for_due(patch: Patch) -> None:
    """The item goes, and so does its wake-up, though its timer is still to come."""
    all_fired = protocol._all_fired  # noqa: SLF001  likewise
    firing = protocol.firing

    def over(table: str, timers: Sequence[Armed], now: Ticks) -> Doing[Came]:
        came = yield from firing(table, timers, now)
        yield from side_by_side(Delete(table=table, key=each.key) for each in timers)
        return came

    patch.setattr(protocol, "firing", over)
    patch.setattr(
        protocol,
        "_slot",
        lambda table, wake, now, worked: all_of(table, wake, now, worked, all_fired),
    )


def all_of(table: str, wake: Wake, now: Callable[[], Ticks], worked: Worked, fired: Any) -> Doing[None]:
    page = yield protocol.due(table, wake.shard, wake.since, wake.until, limit=protocol.PAGE)
    yield from fired(table, [protocol.read_armed(each) for each in page.items], now, worked)


def what_is_early_is_not_woken_again(patch: Patch) -> None:
    waking = protocol.waking

    def silent(table: str, wakes: Sequence[Wake], now: Callable[[], Ticks], into: Worked) -> Doing[Worked]:
        steps = waking(table, wakes, now, into)
        asked = next(steps)
        try:
            while True:
                asked = steps.send(None if isinstance(asked, Sent) else (yield asked))
        except StopIteration as end:
            worked: Worked = end.value
            return worked

    patch.setattr(protocol, "waking", silent)


def a_slot_is_looked_at_up_to_its_beginning(patch: Patch) -> None:
    of_slot = Wake.of_slot
    patch.setattr(Wake, "of_slot", lambda timer: replace(of_slot(timer), until=of_slot(timer).since))


def only_settings_after_the_last_one_are_looked_at(patch: Patch) -> None:
    patch.setattr(
        engine,
        "pending_in",
        lambda store, stream, first, *more, **how: pending_in(store, stream, first + 1, *more, **how),
    )


def a_firing_says_nothing_of_itself(patch: Patch) -> None:
    from epochal.scheduling import Timer  # noqa: PLC0415  it is patched

    firing = Timer.firing
    patch.setattr(Timer, "firing", lambda self: firing(self)[:-1])


def a_timer_that_is_due_already_is_not_armed(patch: Patch) -> None:
    arming = Sent.arming
    patch.setattr(
        Sent, "arming", lambda timers, now: arming([each for each in timers if each.due > now], now)
    )


def what_was_cancelled_takes_other_settings_with_it(patch: Patch) -> None:
    """A firing deletes every item of its stream."""
    firing = protocol.firing

    def tidy(table: str, timers: Sequence[Armed], now: Ticks) -> Doing[Came]:
        came = yield from firing(table, timers, now)
        found = yield protocol.due(table, timers[0].shard, protocol.BEGINNING, protocol.NEVER, limit=100)
        yield from side_by_side(
            Delete(table=table, key={name: each[name] for name in ("p", "s")}) for each in found.items
        )
        return came

    patch.setattr(protocol, "firing", tidy)


def an_index_is_no_part_of_what_a_firing_says(patch: Patch) -> None:
    """Whatever is pending under the name counts as what the item was put for."""
    load = Engine._load  # noqa: SLF001  likewise

    def trusting(self: Engine, asked: LoadPending) -> PendingTimers:
        found = load(self, asked)
        first = asked.timers[0]
        return replace(found, pending=tuple(replace(each, setting=first.place) for each in found.pending))

    patch.setattr(Engine, "_load", trusting)


CAUGHT: dict[Mutant, tuple[Callable[[], World], str]] = {
    a_wake_up_is_sent_before_its_item_is_put: (a_timer_of_a_slot_and_a_death, "never fired"),
    items_have_the_names_of_timers: (two_reactors_that_delete_what_was_cancelled, "never fired"),
    a_firing_has_no_condition: (a_timer_that_is_cancelled_and_set_again, "though pending is"),
    an_item_is_deleted_before_the_firing: (a_timer_of_a_slot_that_is_set_anew_and_a_death, "never fired"),
    a_wake_up_is_done_when_it_is_taken: (a_timer_and_two_deaths, "never fired"),
    wake_ups_of_a_slot_that_is_at_work_are_merged: (
        a_timer_of_a_slot_that_is_cancelled_and_set_again,
        "never fired",
    ),
    a_refused_firing_is_not_tried_again: (a_timer_of_a_slot_whose_stream_goes_on, "never fired"),
    what_is_pending_is_fired_before_its_time: (a_timer_that_is_cancelled_and_set_again, "before its time"),
    what_is_early_is_taken_for_due: (two_timers_within_a_slot, "never fired"),
    what_is_early_is_not_woken_again: (two_timers_within_a_slot, "never fired"),
    a_slot_is_looked_at_up_to_its_beginning: (two_timers_of_slots, "never fired"),
    only_settings_after_the_last_one_are_looked_at: (a_timer_and_two_deaths, "never fired"),
    a_firing_says_nothing_of_itself: (a_timer_and_two_deaths, "never fired|fired"),
    a_timer_that_is_due_already_is_not_armed: (a_timer_and_two_deaths, "never fired"),
    what_was_cancelled_takes_other_settings_with_it: (two_timers_of_slots, "never fired"),
    an_index_is_no_part_of_what_a_firing_says: (a_timer_that_is_cancelled_and_set_again, "though pending is"),
}


@pytest.mark.parametrize("mutant", CAUGHT, ids=lambda each: each.__name__)
def test_a_rule_that_is_left_out_loses_a_timer_or_fires_it_wrongly(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, found = CAUGHT[mutant]
    mutant(monkeypatch)
    with pytest.raises(AssertionError, match=found):
        world().explore()
