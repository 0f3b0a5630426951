from itertools import chain, combinations

import pytest

from bench.calving import Script, batches, best_course, run
from bench.corpus import Workload
from bench.optimum import optimum

SHORT = [
    Workload(size=100, length=7),
    Workload(size=700, jitter=0.6, length=6, unfold=1024),
    *(
        pytest.param(each, marks=pytest.mark.proof)
        for each in (
            Workload(size=400, jitter=0.9, length=8, seed=3),
            Workload(size=700, jitter=0.6, length=8, unfold=1024),
            Workload(size=300, jitter=0.5, length=8, unfold=300, kind="json"),
        )
    ),
    Workload(size=4000, jitter=0.3, length=6),
]


def courses(length: int) -> list[tuple[int, ...]]:
    """Every choice of the appends that calve first."""
    versions = range(1, length)
    return list(chain.from_iterable(combinations(versions, count) for count in range(length)))


@pytest.mark.parametrize("transactional", [False, True], ids=["two steps", "one transaction"])
@pytest.mark.parametrize("workload", SHORT, ids=str)
def test_the_optimum_is_the_cheapest_of_all_courses_as_the_library_charges_them(workload, transactional):
    mode = "transactional" if transactional else "two-step"
    charged = [run(workload, Script(at=course, mode=mode)).write for course in courses(workload.length)]

    found = best_course(workload, transactional=transactional)

    assert found.units == min(charged)
    assert run(workload, Script(at=found.calves, mode=mode)).write == found.units
    assert min(charged) < max(charged)


def test_the_best_course_of_a_long_stream_costs_what_it_was_priced():
    workload = Workload(size=350, jitter=0.5, unfold=200, length=300)
    found = best_course(workload)

    assert len(found.calves) > 50
    assert run(workload, Script(at=found.calves)).write == found.units


def test_a_stream_of_one_append_never_calves():
    (only,) = batches(Workload(size=300, length=1))

    assert optimum([only]).calves == ()
