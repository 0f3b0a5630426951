"""What pages and replays of an aggregate read and cost, in memory and on DynamoDB Local, to the unit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest

from epochal.contrib.event_store_adapter.event_pages import page
from epochal.contrib.event_store_adapter.ids import AggregateTypes, aggregate_id
from epochal.contrib.event_store_adapter.items import JOURNAL, SNAPSHOT, JournalSite, KeyResolver
from epochal.contrib.event_store_adapter.model import AggregateEvent, Lock
from epochal.contrib.event_store_adapter.outcomes import AggregateAppended
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.dynamo.interpreter import interpreter
from epochal.model.expected_version import ANY, NO_STREAM
from epochal.plan.ops import Execute, Scan
from epochal.plan.values import item_size
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from tests.support.tables import Tables

ALICE, BOB = (aggregate_id("user-account", name) for name in ("alice", "bob"))
COUNT = 1_250
BODY = b'"' + b"x" * 300 + b'"'


@pytest.fixture(scope="module", params=["memory", pytest.param("ddbl", marks=pytest.mark.ddbl)])
def store(request: pytest.FixtureRequest) -> Iterator[AggregateStore]:
    if request.param == "memory":
        memory = MemoryTables({JOURNAL.kind: JOURNAL, SNAPSHOT.kind: SNAPSHOT})
        yield over(memory.execute, JOURNAL.kind, SNAPSHOT.kind)
    else:
        with Tables(request.getfixturevalue("ddbl")) as local:
            yield over(interpreter(local.client), local.create(JOURNAL), local.create(SNAPSHOT))


def over(execute: Execute, journal: str, snapshot: str) -> AggregateStore:
    site = JournalSite(
        journal=journal, snapshot=snapshot, keys=KeyResolver(), types=AggregateTypes(["user-account"])
    )
    return AggregateStore(driver=Driver(execute=execute, meter=Meter()), site=site)


@pytest.fixture(scope="module")
def lock(store: AggregateStore) -> Lock:
    """Of an aggregate of 1,250 events of 300 bytes, whose snapshot is of the first; no test adds any."""
    outcome = store.append(ALICE, [AggregateEvent(type="Renamed", data=BODY)], snapshot=b"{}")
    assert isinstance(outcome, AggregateAppended)
    while outcome.lock.seq_nr < COUNT:
        some = min(90, COUNT - outcome.lock.seq_nr)
        more = [AggregateEvent(type="Renamed", data=BODY)] * some
        outcome = store.append(ALICE, more, expected=outcome.lock)
        assert isinstance(outcome, AggregateAppended)
    return outcome.lock


def cost(store: AggregateStore, read: Callable[[], list[int]]) -> tuple[list[int], float, int]:
    """The numbers that were read, the read units and the requests."""
    before, requests = store.driver.meter.units.read, store.driver.meter.requests
    found = read()
    return found, store.driver.meter.units.read - before, store.driver.meter.requests - requests


def weight(store: AggregateStore, *numbers: range) -> float:
    """Read units of a request for these events, by the bytes of their items."""
    wanted = {str(n) for each in numbers for n in each}
    items = store.driver.ask(Scan(table=store.site.journal)).items
    return math.ceil(sum(item_size(item) for item in items if item["seq_nr"]["N"] in wanted) / 4_096)


def test_the_latest_events_cost_what_they_weigh_and_not_a_unit_each(
    store: AggregateStore, lock: Lock
) -> None:
    def last_200() -> list[int]:
        found = page(store, ALICE, lock, start=1_051, limit=200, max_bytes=10**7)
        return [each.seq_nr for each in found.events]

    # As text, shorter numbers lie among them.
    units = weight(store, range(1_051, 1_251), range(106, 126), range(11, 13))
    assert units == 26
    assert cost(store, last_200) == (list(range(1_051, 1_251)), units, 1)


def test_a_replay_from_a_snapshot_is_one_request_for_its_events_and_packs_them(
    store: AggregateStore, lock: Lock
) -> None:
    def since() -> list[int]:
        return [each.seq_nr for each in store.events_after(ALICE, 1_230)]

    units = weight(store, range(1_231, 1_251), range(124, 126))
    assert units == 3
    # The head is a unit and a request besides.
    assert cost(store, since) == (list(range(1_231, 1_251)), 1 + units, 2)


def test_where_most_of_a_range_is_not_wanted_events_are_read_by_key(
    store: AggregateStore, lock: Lock
) -> None:
    def early() -> list[int]:
        found = page(store, ALICE, lock, start=101, limit=20, max_bytes=10**7)
        return [each.seq_nr for each in found.events]

    # Among 101 to 120 lie 1010 to 1199 too.
    assert cost(store, early) == (list(range(101, 121)), 20, 1)


def test_a_key_is_one_append_to_its_aggregate_whatever_is_expected_later(store: AggregateStore) -> None:
    begun = store.append(BOB, [AggregateEvent(type="Opened", data=b"1")], snapshot=b"{}")
    paid = [AggregateEvent(type="Paid", data=b"7")]
    first = store.append(BOB, paid, snapshot=b"{}", expected=begun.lock, idempotency_key="k")
    assert (first.first, first.replayed) == (2, False)

    for expected in (begun.lock, first.lock, NO_STREAM, ANY):
        again = store.append(BOB, paid, snapshot=b"{}", expected=expected, idempotency_key="k")
        assert (again.first, again.lock, again.replayed) == (2, first.lock, True)
    assert store.lock(BOB) == first.lock
