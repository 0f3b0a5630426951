"""What a call consumed comes with its outcome: all of it, and nothing of what other calls consumed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.contrib.equinox.port import TIPS
from epochal.contrib.event_store_adapter import memory_aggregates
from epochal.contrib.event_store_adapter.ids import aggregate_id
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.event_store_adapter.outcomes import AggregateConflict
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.contrib.sekiban import memory_dcb_events
from epochal.contrib.sekiban.store import DcbEvents
from epochal.deciders.on_queries import Decisions
from epochal.deciders.projections import projection
from epochal.errors import ConflictError, InvalidInput, Unavailable
from epochal.model.capacity import Capacity
from epochal.model.events import Event
from epochal.model.expected_version import NO_STREAM, AtVersion
from epochal.model.outcomes import Conflict
from epochal.model.tags import Query, QueryItem
from epochal.store.driver import Driver, Meter, Patience
from epochal.store.streams import Streams
from epochal.testing.memory import Fault, Faults, MemoryTables
from epochal.testing.stores import memory_streams

EVENT = Event(type="Added", data=b"{}")
OPENED = Event(type="Opened", tags=("cart:1",), data=b"{}")
CART = Query(items=(QueryItem(types=frozenset(), tags=frozenset({"cart:1"})),))
ORDER = aggregate_id("order", "1")
LARGE = 3_000

Store = Streams | AggregateStore | DcbEvents


def streams() -> Streams:
    store = memory_tips()
    store.append("Cart-1", [EVENT] * 3)
    return store


def paged() -> Streams:
    store = memory_streams()
    store.append("Cart-1", [EVENT] * 3)
    return store


def aggregates() -> AggregateStore:
    store = memory_aggregates()
    store.append(ORDER, [AggregateEvent(type="Opened", data=b"{}")], snapshot=b'{"seq_nr": 1}')
    return store


def tagged() -> DcbEvents:
    store = memory_dcb_events()
    store.append([OPENED])
    return store


def decide(store: DcbEvents) -> object:
    opened = projection(tags=["cart:1"], on={"Opened": lambda count, _: count + 1}, initial=0)
    return Decisions(store=store).handle({"opened": opened}, lambda _: [OPENED])


CALLS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    f"{call} ({made.__name__})": (made, work)
    for made in (streams, paged)
    for call, work in {
        "append": lambda store: store.append("Cart-1", [EVENT]),
        "append under a key": lambda store: store.append("Cart-1", [EVENT], idempotency_key="k"),
        "conflict": lambda store: store.try_append("Cart-1", [EVENT], expected=NO_STREAM),
        "load": lambda store: store.load("Cart-1"),
        "page": lambda store: store.page("Cart-1"),
        "page of no stream": lambda store: store.page("Cart-2"),
        "prune": lambda store: store.prune("Cart-1", 2),
        "delete": lambda store: store.delete("Cart-1"),
        "delete refused": lambda store: store.try_delete("Cart-1", expected=AtVersion(version=9)),
    }.items()
} | {
    "aggregate appended": (
        aggregates,
        lambda store: store.append(ORDER, [AggregateEvent(type="Paid", data=b"{}")]),
    ),
    "aggregate conflict": (
        aggregates,
        lambda store: store.try_append(
            ORDER, [AggregateEvent(type="Paid", data=b"{}")], snapshot=b"{}", expected=NO_STREAM
        ),
    ),
    "replay": (aggregates, lambda store: store.replay(ORDER)),
    "tagged appended": (tagged, lambda store: store.append([OPENED])),
    "tagged conflict": (tagged, lambda store: store.try_append([OPENED], fail_if=CART)),
    "tagged read": (tagged, lambda store: store.read(CART)),
    "tagged read of the first": (tagged, lambda store: store.read(CART, limit=1)),
    "tagged read of the last": (tagged, lambda store: store.read(CART, direction="backward", limit=1)),
    "tagged page": (tagged, lambda store: store.page(CART, takes=lambda _: True)),
    "tagged page back": (tagged, lambda store: store.page_back(CART, takes=lambda _: True)),
    "decision": (tagged, decide),
}


@pytest.mark.parametrize("call", CALLS)
def test_an_outcome_carries_what_its_call_has_moved_the_meter_by(call: str) -> None:
    made, work = CALLS[call]
    store = made()
    meter: Meter = store.driver.meter
    units, requests = meter.units, meter.requests
    outcome = work(store)
    spent = meter.units - units
    assert outcome.capacity == Capacity(
        read=spent.read, write=spent.write, requests=meter.requests - requests
    )
    assert outcome.capacity.requests > 0
    assert outcome.capacity.read + outcome.capacity.write > 0


def test_archiving_and_pruning_is_one_call() -> None:
    tables = MemoryTables(dict.fromkeys(("tips", "archive"), TIPS))
    store = memory_tips(tables)
    store = replace(store, archive=replace(store, table="archive"))
    store.append("Cart-1", [EVENT] * 3)
    meter = store.driver.meter
    before = meter.requests
    pruned = store.archive_and_prune("Cart-1", 2)
    assert pruned is not None
    assert pruned.capacity.requests == meter.requests - before
    assert pruned.capacity.write == 2, "one copy and one mark"


@pytest.mark.parametrize("made", [streams, paged])
def test_calls_in_threads_each_carry_their_own(made: Callable[[], Streams]) -> None:
    store = made()

    def append(number: int) -> Capacity:
        data = Random(1).randbytes(LARGE) if number % 2 else b"{}"
        event = Event(type="Added", data=data)
        return store.append(f"Cart-{number + 10}", [event], expected=NO_STREAM).capacity

    alone = [append(-1), append(-2)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(append, range(64)))
    assert alone[0] != alone[1]
    assert together == [alone[1], alone[0]] * 32


def test_what_was_refused_and_tried_again_is_part_of_it() -> None:
    store = memory_tips()
    faults = Faults(store.driver.execute, {0: Fault.UNANSWERED, 1: Fault.THROTTLED})
    driver = replace(store.driver, execute=faults.execute, sleep=lambda _: None)
    appended = replace(store, driver=driver).append("Cart-1", [EVENT], expected=NO_STREAM)
    assert appended.version == 1
    assert appended.capacity.requests == 3
    assert appended.capacity.write == 1, "the refusal of the third; answers that were lost tell nothing"


def test_errors_carry_it_and_so_do_the_conflicts_in_them() -> None:
    store = streams()
    with pytest.raises(ConflictError) as conflict:
        store.append("Cart-1", [EVENT], expected=NO_STREAM)
    assert isinstance(conflict.value.outcome, Conflict)
    assert conflict.value.outcome.capacity == conflict.value.capacity
    assert conflict.value.capacity.write == 1


def test_an_outage_says_how_many_requests_it_took() -> None:
    store = memory_tips()
    faults = Faults(store.driver.execute, dict.fromkeys(range(9), Fault.THROTTLED))
    patience = Patience(retries=3)
    driver = Driver(execute=faults.execute, meter=Meter(), patience=patience, sleep=lambda _: None)
    with pytest.raises(Unavailable) as outage:
        replace(store, driver=driver).load("Cart-1")
    assert outage.value.capacity == Capacity(requests=4)


def test_what_was_not_asked_of_dynamodb_was_not_measured() -> None:
    with pytest.raises(InvalidInput) as invalid:
        memory_tips().append("Cart-1", [])
    assert invalid.value.capacity is None


def test_a_read_is_measured_as_far_as_it_was_consumed() -> None:
    store = memory_streams()
    for number in range(40):
        store.append("Cart-1", [Event(type="Added", data=Random(number).randbytes(LARGE))])
    measured, meter = store.metered()
    events = measured.read("Cart-1")
    begun = meter.capacity
    list(events)
    assert meter.capacity.read > begun.read >= 1


def test_a_metered_store_counts_for_the_store_that_it_is_of_too() -> None:
    store = streams()
    before = store.driver.meter.requests
    measured, meter = store.metered()
    measured.load("Cart-1")
    store.load("Cart-1")
    assert (meter.requests, store.driver.meter.requests - before) == (1, 2)


def test_outcomes_are_equal_whatever_they_have_consumed() -> None:
    assert Conflict(version=1, capacity=Capacity(write=1.0)) == Conflict(version=1)
    assert AggregateConflict(version=1, capacity=Capacity(write=1.0)) == AggregateConflict(version=1)
