"""G3 with real threads on DynamoDB Local: of N writers with one expectation one wins; where any will do, all do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from epochal.contrib.equinox.calving import Fixed
from epochal.contrib.equinox.streams import Tips
from epochal.deciders.codecs import EventCodec
from epochal.deciders.on_streams import Decider, Deciders
from epochal.deciders.stream_decisions import Transacted
from epochal.layout.streams import AnyStreamLayout
from epochal.model.events import Event
from epochal.model.expected_version import ANY, NO_STREAM, AtVersion, ExpectedVersion
from epochal.model.outcomes import Appended, Conflict, Outcome
from epochal.plan.ops import Execute, Get, Op, Query, Reply
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from tests.contract.places import PATIENT, Place
from tests.support.stream_layouts import LAYOUTS

pytestmark = pytest.mark.ddbl

TWO_STEP = Tips(calving=Fixed(max_events=2, mode="two-step"))
AT_ONCE = Tips(calving=Fixed(max_events=2, mode="transactional"))

KINDS: dict[str, tuple[AnyStreamLayout, int]] = {
    **{f"{name}, no stream": (layout, 0) for name, layout in LAYOUTS.items()},
    **{f"{name}, token": (layout, 1) for name, layout in LAYOUTS.items()},
    "tips, token, calving": (TWO_STEP, 2),
    "tips, token, calving at once": (AT_ONCE, 2),
}
"""How the stream is stored, and how many events it has when the race begins."""

in_every_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


def store(place: Place, layout: AnyStreamLayout, execute: Execute | None = None) -> Streams:
    driver = Driver(execute=execute or place.execute, meter=Meter(), patience=PATIENT)
    return Streams(driver=driver, table=place.table, layout=layout)


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
@pytest.mark.parametrize("kind", KINDS)
def test_of_many_writers_with_one_expectation_exactly_one_wins(
    on_ddbl: Place, kind: str, racers: int
) -> None:
    layout, before = KINDS[kind]
    streams, name = store(on_ddbl, layout), on_ddbl.partition
    expected: ExpectedVersion = NO_STREAM
    if before:
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


@in_every_layout
@pytest.mark.parametrize("racers", [2, 16])
def test_writers_that_have_all_read_before_any_of_them_writes_do_not_lose_updates(
    on_ddbl: Place, layout: AnyStreamLayout, racers: int
) -> None:
    """The barrier stands between read and write, where two copies of one truth are most likely to meet."""
    name = on_ddbl.partition
    store(on_ddbl, layout).append(name, [Event(type="Before")] * 3)
    barrier, met = threading.Barrier(racers), set[int]()

    def meet_after_reading(op: Op) -> Reply:
        reply = on_ddbl.execute(op)
        if isinstance(op, Get | Query) and threading.get_ident() not in met:
            met.add(threading.get_ident())
            barrier.wait()
        return reply

    streams = store(on_ddbl, layout, meet_after_reading)
    outcomes = race(
        racers, lambda number: streams.try_append(name, [event(number)], expected=AtVersion(version=3))
    )

    assert sum(isinstance(outcome, Appended) for outcome in outcomes) == 1
    assert len(list(store(on_ddbl, layout).read(name))) == 4


@pytest.mark.parametrize(
    "layout", [*LAYOUTS.values(), TWO_STEP, AT_ONCE], ids=[*LAYOUTS, "two-step", "at once"]
)
def test_where_any_version_will_do_every_racer_appends_once_at_an_index_of_its_own(
    on_ddbl: Place, layout: AnyStreamLayout
) -> None:
    streams, name = store(on_ddbl, layout), on_ddbl.partition

    outcomes = race(12, lambda number: streams.try_append(name, [event(number)], expected=ANY))

    firsts = {
        outcome.first: number for number, outcome in enumerate(outcomes) if isinstance(outcome, Appended)
    }
    assert sorted(firsts) == list(range(12))
    assert {found.index: int(found.data) for found in streams.read(name)} == firsts


@in_every_layout
def test_racers_with_one_key_append_once(on_ddbl: Place, layout: AnyStreamLayout) -> None:
    streams, name = store(on_ddbl, layout), on_ddbl.partition

    outcomes = race(16, lambda _: streams.try_append(name, [event(0)], idempotency_key="one"))

    assert {outcome.first for outcome in outcomes if isinstance(outcome, Appended)} == {0}
    assert len(outcomes) == 16
    assert len(list(streams.read(name))) == 1


@in_every_layout
def test_of_requests_under_one_key_one_decides_and_all_are_answered_the_same(
    on_ddbl: Place, layout: AnyStreamLayout
) -> None:
    """A command that is refused once it is done: of five with one key, three got a conflict."""
    name, numbers = on_ddbl.partition, count()

    class Full(Exception):
        pass

    def decide(total: int) -> list[Event]:
        if total:
            raise Full
        return [event(next(numbers))]

    def ask(_: int) -> Transacted[int, Event]:
        deciders = Deciders(
            streams=store(on_ddbl, layout),
            decider=Decider[None, int, Event](
                initial=int, evolve=lambda total, _: total + 1, decide=lambda _, total: decide(total)
            ),
            codec=EventCodec[Event](
                encode=lambda each: each, decode=lambda stored: Event(type=stored.type, data=stored.data)
            ),
        )
        return deciders.handle(name, None, idempotency_key="request-1")

    with ThreadPoolExecutor(12) as pool:
        told = list(pool.map(ask, range(12)))

    (stored,) = store(on_ddbl, layout).read(name)
    assert {(each.version, each.state) for each in told} == {(1, 1)}
    assert {each.events[0].data for each in told} == {stored.data}
    assert [each.replayed for each in told].count(False) == 1
