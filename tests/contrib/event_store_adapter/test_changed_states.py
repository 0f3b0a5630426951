"""Snapshots of aggregates of a class that has changed since: the state is made from the events."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from epochal.contrib.event_store_adapter.deciders import AggregateDeciders
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.event_store_adapter.snapshot_policies import every
from epochal.contrib.event_store_adapter.state_codecs import StateCodec, json_state
from epochal.errors import EventsPruned, InvalidInput
from epochal.plan.ops import Delete
from tests.contrib.event_store_adapter.world import ALICE, World, site
from tests.core.deciders.changed_states import ACCOUNT, CHANGES, COUNTING, Account, Counting, Program


def on(world: World, program: Program, events: int = 1, **changes: Any) -> AggregateDeciders[int, Any, Any]:
    """A program on aggregates, which keeps a snapshot every so many events."""
    return AggregateDeciders(
        store=world.store(),
        decider=program.decider,
        codec=program.codec,
        state=json_state(program.kind, **changes),
        policy=every(events),
    )


@pytest.mark.parametrize("events", [1, 2, 50])
@pytest.mark.parametrize("change", CHANGES)
def test_a_snapshot_of_a_changed_class_gives_way_to_the_events(change: str, events: int) -> None:
    before, after = CHANGES[change]
    world = World()
    for amount in (5, 4):
        on(world, before, events).handle(ALICE, amount)
    assert on(world, after, events).query(ALICE, lambda state: state) == after.folded(5, 4)
    assert on(world, after, events).handle(ALICE, 3).state == after.folded(5, 4, 3)
    assert on(world, after, events).query(ALICE, lambda state: state) == after.folded(5, 4, 3)


def balance(state: Any) -> Any:
    return state.balance


def test_the_next_append_stores_a_snapshot_whatever_the_policy_says() -> None:
    world = World()
    on(world, ACCOUNT).handle(ALICE, 5)
    on(world, COUNTING, 50).handle(ALICE, 4)
    found = world.store().latest_snapshot(ALICE)
    assert found is not None
    assert (found.seq_nr, found.data) == (2, b'{"balance":9,"payments":2}')
    before = world.meter.requests
    on(world, COUNTING, 50).load(ALICE)
    assert world.meter.requests - before == 1
    after = on(world, COUNTING, 50).handle(ALICE, 3).standing
    assert (after.state, after.events) == (Counting(12, 3), 1), "the policy decides again"


def test_a_snapshot_of_another_version_of_the_rules_is_not_used() -> None:
    twice = replace(ACCOUNT, evolve=lambda state, event: Account(state.balance + 2 * event.amount))
    world = World()
    on(world, ACCOUNT).handle(ALICE, 5)
    assert on(world, twice).query(ALICE, balance) == 5, "no schema shows what another `evolve` does"
    assert on(world, twice, version="2").handle(ALICE, 4).state == Account(18)
    assert on(world, ACCOUNT, version="2").query(ALICE, balance) == 18
    assert on(world, ACCOUNT).query(ALICE, balance) == 9


def test_a_snapshot_that_does_not_say_what_it_was_made_with_is_not_used_unless_it_is_trusted() -> None:
    world = World()
    paid = AggregateEvent(type="Paid", data=b'{"amount":5}')
    world.store().append(ALICE, [paid], snapshot=b'{"balance":100}')
    assert on(world, ACCOUNT).query(ALICE, balance) == 5
    assert on(world, ACCOUNT, trust_unmarked=True).query(ALICE, balance) == 100
    assert on(world, ACCOUNT, trust_unmarked=True, version="2").query(ALICE, balance) == 5


def test_a_snapshot_stored_by_a_program_that_knows_no_marks_does_not_inherit_the_one_before() -> None:
    world = World()
    on(world, ACCOUNT).handle(ALICE, 5)
    paid = AggregateEvent(type="Paid", data=b'{"amount":4}')
    world.store().append(ALICE, [paid], snapshot=b'{"balance":100}')
    assert on(world, ACCOUNT).query(ALICE, balance) == 9
    on(world, ACCOUNT, 50).handle(ALICE, 3)
    on(world, ACCOUNT, 50).handle(ALICE, 2)
    found = world.store().latest_snapshot(ALICE)
    assert found is not None
    assert (found.seq_nr, found.made_with) == (3, json_state(Account).made_with)


def test_where_events_are_missing_that_would_stand_in_an_error_says_so_and_what_to_do() -> None:
    world = World()
    for amount in (5, 4, 3):
        on(world, ACCOUNT).handle(ALICE, amount)
    tables = site()
    world.tables.execute(Delete(table=tables.journal, key=tables.keys.key(ALICE, 1)))
    assert on(world, ACCOUNT).query(ALICE, balance) == 12
    with pytest.raises(
        EventsPruned, match=r"user-account, which is not used: .*\. Use the class and the version"
    ):
        on(world, COUNTING).query(ALICE, balance)


def test_a_decision_that_is_overtaken_keeps_no_snapshot_that_is_out_of_date() -> None:
    world = World()
    known = on(world, COUNTING).handle(ALICE, 5).standing
    on(world, ACCOUNT).handle(ALICE, 4)
    outcome = on(world, COUNTING, 50).handle(ALICE, 3, known=known)
    assert outcome.state == Counting(12, 3)
    found = world.store().latest_snapshot(ALICE)
    assert found is not None
    assert found.seq_nr == 3


def test_a_repeat_under_a_key_is_answered_from_the_events() -> None:
    world = World()
    on(world, ACCOUNT).handle(ALICE, 5, idempotency_key="a")
    again = on(world, COUNTING).handle(ALICE, 5, idempotency_key="a")
    assert (again.replayed, again.state) == (True, Counting(5, 1))


@pytest.mark.parametrize("made_with", [2, "x" * 65])
def test_what_a_state_is_made_with_is_a_short_text(made_with: Any) -> None:
    with pytest.raises(InvalidInput, match="made_with"):
        StateCodec(encode=str.encode, decode=bytes.decode, made_with=made_with)
