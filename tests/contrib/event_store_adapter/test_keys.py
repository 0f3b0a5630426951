"""An idempotency key is one append to its aggregate, whatever a repeat expects."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.model import AggregateEvent, ExpectedLock
from epochal.contrib.event_store_adapter.outcomes import AggregateAppended, AggregateConflict
from epochal.contrib.event_store_adapter.port import appended, end
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.errors import InvalidInput
from epochal.model.expected_version import ANY, NO_STREAM, STREAM_EXISTS, AtVersion
from epochal.plan.ops import Op, Put, Reply, Transact
from tests.contrib.event_store_adapter.world import ALICE, World, event, numbers

STATE = b"{}"
EXPECTATIONS = ("any", "exists", "none", "version", "lock")


@pytest.fixture
def world() -> World:
    return World()


def now_as(name: str, store: AggregateStore) -> ExpectedLock:
    lock = store.lock(ALICE)
    if lock is None:
        return ANY if name == "any" else NO_STREAM
    return {
        "any": ANY,
        "exists": STREAM_EXISTS,
        "none": NO_STREAM,
        "version": AtVersion(version=lock.version),
        "lock": lock,
    }[name]


def pay(store: AggregateStore, expected: ExpectedLock = ANY) -> AggregateAppended | AggregateConflict:
    return store.try_append(ALICE, [event(1)], snapshot=STATE, expected=expected, idempotency_key="pay-1")


@pytest.mark.slow
@pytest.mark.parametrize(("first", "then"), list(product(EXPECTATIONS, EXPECTATIONS)))
@pytest.mark.parametrize("others", [0, 2])
def test_a_repeat_under_another_expectation_is_answered_like_the_first(
    world: World, first: str, then: str, others: int
) -> None:
    store = world.store()
    if first != "none":
        store.append(ALICE, [event(0)], snapshot=STATE)
    paid = pay(store, now_as(first, store))
    assert isinstance(paid, AggregateAppended)
    for _ in range(others):
        store.append(ALICE, [event(2)])

    for expected in (now_as(then, store), NO_STREAM, AtVersion(version=9)):
        assert pay(world.store(), expected) == replace(paid, replayed=True)
    assert numbers(store).count(1) == 1


def test_the_record_is_part_of_the_append_and_no_head(world: World) -> None:
    transactions: list[Transact] = []

    def watched(op: Op) -> Reply:
        if isinstance(op, Transact):
            transactions.append(op)
        return world.tables.execute(op)

    store = world.store()
    store = replace(store, driver=replace(store.driver, execute=watched))
    pay(store, NO_STREAM)

    (transaction,) = transactions
    head, first, record = transaction.writes
    assert isinstance(record, Put)
    assert isinstance(first, Put)
    assert record.table == store.site.snapshot
    assert record.item["pkey"] == record.item["skey"]
    assert not {"aid", "seq_nr", "active_ttl_seq_nr"} & record.item.keys(), "it would be in an index"
    assert (appended(record.item), end(record.item)) == (None, None)
    assert store.replay(ALICE) is not None
    assert isinstance(head, Put)


def test_other_contents_under_a_key_are_refused_and_change_nothing(world: World) -> None:
    store = world.store()
    pay(store)
    others = [[event(2)], [event(1), event(1)], [event(1, "Other")]]
    for new, snapshot in (*((each, STATE) for each in others), ([event(1)], b"[]")):
        for expected in (ANY, NO_STREAM, now_as("lock", store)):
            with pytest.raises(
                InvalidInput, match="idempotency_key: was already used for an append with other"
            ):
                store.append(ALICE, new, snapshot=snapshot, expected=expected, idempotency_key="pay-1")
    dated = AggregateEvent(type=event(1).type, data=event(1).data, occurred_at="2013-01-01T00:00:00Z")
    with pytest.raises(InvalidInput, match="idempotency_key"):
        store.append(ALICE, [dated], snapshot=STATE, idempotency_key="pay-1")
    assert numbers(store) == [1]


def test_a_key_is_of_its_aggregate_alone(world: World) -> None:
    store = world.store()
    for value in ("ann", "bob"):
        one = AggregateId(type=ALICE.type, value=value)
        for replayed in (False, True):
            made = store.append(one, [event(1)], snapshot=STATE, idempotency_key="k")
            assert (made.first, made.replayed) == (1, replayed)


def test_a_conflict_leaves_the_key_free(world: World) -> None:
    store = world.store()
    store.append(ALICE, [event(0)], snapshot=STATE)
    assert isinstance(pay(store, NO_STREAM), AggregateConflict)
    assert isinstance(pay(store, AtVersion(version=7)), AggregateConflict)
    made = store.append(ALICE, [event(2)], idempotency_key="pay-1")
    assert (made.first, made.replayed) == (2, False)


def test_a_key_is_forgotten_after_a_day(world: World) -> None:
    store = world.store()
    pay(store)
    now = store.now()
    within, after = (replace(store, now=lambda s=s: now + s * 10**9) for s in (86_000, 87_000))  # type: ignore[misc]
    assert getattr(pay(within), "replayed", None) is True
    assert getattr(pay(after), "replayed", None) is False
    assert numbers(store) == [1, 1]


@pytest.mark.parametrize("key", ["", "k" * 4097, 7])
def test_a_malformed_key_is_refused(world: World, key: object) -> None:
    with pytest.raises(InvalidInput, match="idempotency_key"):
        world.store().append(ALICE, [event(0)], snapshot=STATE, idempotency_key=key)  # type: ignore[arg-type]
