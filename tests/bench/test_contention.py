from dataclasses import replace
from typing import get_args

import pytest

from bench.contention import QUICK, READ, SLOW, WASTED, Contention, contend, within
from bench.corpus import Kind


@pytest.mark.parametrize("request_seconds", [QUICK, SLOW])
@pytest.mark.parametrize("kind", get_args(Kind))
def test_eight_writers_on_one_stream_waste_few_units_and_lose_nothing_however_slow_requests_are(
    kind, request_seconds
):
    took = contend(1, kind, request_seconds)

    assert within(took)
    assert took.wasted < WASTED / 3, "who is refused twice gives way"
    assert took.longest < 250 * request_seconds, "who has given way decides on what is there"


def test_a_bound_that_is_missed_is_told():
    kept = Contention(kept=160, wasted=WASTED, read=READ, seconds=1, longest=1)

    assert within(kept)
    for missed in ({"kept": 159}, {"wasted": WASTED + 1}, {"read": READ + 1}):
        assert not within(replace(kept, **missed))
