"""G3 with real threads on DynamoDB Local: of N writers with one expectation one wins; where any will do, all do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from epochal.layout.tips.calving import Fixed
from epochal.layout.tips.streams import Tips
from epochal.model.events import Event
from epochal.model.outcomes import Appended, Conflict, Outcome
from epochal.model.versions import ANY, NO_STREAM, AtVersion, ExpectedVersion
from epochal.plan.ops import Execute, Get, Op, Reply
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from tests.contract.places import PATIENT, Place

pytestmark = pytest.mark.ddbl

TWO_STEP = Fixed(max_events=2, mode="two-step")
AT_ONCE = Fixed(max_events=2, mode="transactional")


def store(place: Place, calving: Fixed, execute: Execute | None = None) -> Streams:
    driver = Driver(execute=execute or place.execute, meter=Meter(), patience=PATIENT)
    return Streams(driver=driver, table=place.table, layout=Tips(calving=calving))


def race(racers: int, run: Callable[[int], Outcome]) -> list[Outcome]:
    """All start together; their outcomes."""
    barrier = threading.Barrier(racers)

    def start(number: int) -> Outcome:
        barrier.wait()
        return run(number)

    with ThreadPoolExecutor(racers) as pool:
        return list(pool.map(start, range(racers)))


def event(number: int) -> Event:
    return Event(type="Raced", data=b"%d" % number)


@pytest.mark.parametrize("racers", [2, 8, 64])
@pytest.mark.parametrize("kind", ["no stream", "token", "token, calving", "token, calving at once"])
def test_of_many_writers_with_one_expectation_exactly_one_wins(
    on_ddbl: Place, kind: str, racers: int
) -> None:
    calving = AT_ONCE if kind.endswith("at once") else TWO_STEP
    streams, name = store(on_ddbl, calving), on_ddbl.partition
    expected: ExpectedVersion = NO_STREAM
    before = 0
    if kind != "no stream":
        before = 2 if "calving" in kind else 1
        outcome = streams.try_append(name, [Event(type="Before")] * before)
        assert isinstance(outcome, Appended)
        expected = outcome.token

    outcomes = race(racers, lambda number: streams.try_append(name, [event(number)], expected=expected))

    winners = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, Appended)]
    assert len(winners) == 1
    assert all(
        isinstance(outcome, Conflict) for number, outcome in enumerate(outcomes) if number not in winners
    )
    assert [found.data for found in streams.read(name, start=before)] == [b"%d" % winners[0]]


@pytest.mark.parametrize("racers", [2, 16])
def test_writers_that_have_all_read_before_any_of_them_writes_do_not_lose_updates(
    on_ddbl: Place, racers: int
) -> None:
    """The barrier stands between read and write, where two copies of one truth are most likely to meet."""
    name = on_ddbl.partition
    store(on_ddbl, TWO_STEP).append(name, [Event(type="Before")] * 3)
    barrier = threading.Barrier(racers)

    def meet_after_reading(op: Op) -> Reply:
        reply = on_ddbl.execute(op)
        if isinstance(op, Get):
            barrier.wait()
        return reply

    streams = store(on_ddbl, TWO_STEP, meet_after_reading)
    outcomes = race(
        racers, lambda number: streams.try_append(name, [event(number)], expected=AtVersion(version=3))
    )

    assert sum(isinstance(outcome, Appended) for outcome in outcomes) == 1
    assert len(list(store(on_ddbl, TWO_STEP).read(name))) == 4


@pytest.mark.parametrize("calving", [TWO_STEP, AT_ONCE], ids=["two-step", "at once"])
def test_where_any_version_will_do_every_racer_appends_once_at_an_index_of_its_own(
    on_ddbl: Place, calving: Fixed
) -> None:
    streams, name = store(on_ddbl, calving), on_ddbl.partition

    outcomes = race(12, lambda number: streams.try_append(name, [event(number)], expected=ANY))

    firsts = {
        outcome.first: number for number, outcome in enumerate(outcomes) if isinstance(outcome, Appended)
    }
    assert sorted(firsts) == list(range(12))
    assert {found.index: int(found.data) for found in streams.read(name)} == firsts


def test_racers_with_one_key_append_once(on_ddbl: Place) -> None:
    streams, name = store(on_ddbl, TWO_STEP), on_ddbl.partition

    outcomes = race(16, lambda _: streams.try_append(name, [event(0)], idempotency_key="one"))

    assert {outcome.first for outcome in outcomes if isinstance(outcome, Appended)} == {0}
    assert len(outcomes) == 16
    assert len(list(streams.read(name))) == 1
