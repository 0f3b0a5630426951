from dataclasses import replace

import pytest

from bench.calving import play
from bench.corpus import Workload
from bench.local import local_at
from bench.pages import CASES, STREAMS, Cost, cost, encoding, store, within
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables

SMALLEST = {(case.name, case.kind): case for case in reversed(CASES)}
"""Of each workload and kind of bodies; larger ones are tried in the proof."""


@pytest.mark.parametrize(
    "case",
    [case if case in SMALLEST.values() else pytest.param(case, marks=pytest.mark.proof) for case in CASES],
    ids=lambda case: f"{case.name} {case.size} {case.kind}",
)
def test_an_event_on_pages_takes_no_more_than_promised(case):
    assert within(case, cost(case))


def test_dynamodb_charges_for_pages_what_the_memory_interpreter_charges(ddbl):
    workload = Workload(size=400, kind="direct", unfold=2000, length=100)
    memory = MemoryTables({"streams": STREAMS})

    def played(driver, table):
        return play(store(driver, table), workload)

    with local_at(ddbl, STREAMS) as local:
        charged = played(local.streams.driver, local.table)

    assert charged == played(Driver(execute=memory.execute, meter=Meter()), "streams")
    assert charged.read == 0


def test_a_bound_that_is_missed_is_told():
    case = replace(CASES[0], units=1.01, stored=274)

    assert within(case, Cost(units=1.01, stored=274.4))
    assert not within(case, Cost(units=1.02, stored=274))
    assert not within(case, Cost(units=1, stored=275))


@pytest.mark.proof
@pytest.mark.parametrize(("events", "times"), [(1, 2.0), (10, 1.0)])
def test_frames_take_little_more_cpu_than_the_tips_form_and_less_for_several_events(events, times):
    assert 1 / encoding(events).ratio("pages", "tips") < times
