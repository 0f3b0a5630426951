"""Writers on one stream: those of one process do not refuse each other, those of several waste few units."""

from dataclasses import replace

import pytest

from bench.hot_stream import APPENDS, SUBJECTS, WRITERS, Bound, Taken, bound_of, contend, is_within


@pytest.mark.slow
@pytest.mark.parametrize("processes", [False, True], ids=["in one process", "between processes"])
@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
@pytest.mark.parametrize("writers", WRITERS)
def test_writers_keep_their_bounds(subject, writers, processes):
    assert is_within(
        contend(subject, writers, processes=processes), bound_of(subject, writers, processes=processes)
    )


def test_a_bound_that_is_missed_is_told():
    bound = Bound(wasted=1, requests=2, given_up=0.1)
    taken = Taken(stored=APPENDS * 9 // 10, wasted=1, write=2, read=1, requests=2, rate=1, longest=1)

    assert is_within(taken, bound)
    for missed in (
        {"stored": APPENDS * 9 // 10 - 1},
        {"stored": APPENDS + 1},
        {"wasted": 1.1},
        {"requests": 2.1},
    ):
        assert not is_within(replace(taken, **missed), bound)
