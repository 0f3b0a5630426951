"""Writers in each other's way: nobody's decision is lost, and few units are wasted."""

from dataclasses import replace
from typing import get_args

import pytest

from bench.contention import QUICK, SLOW, SUBJECTS, WASTED, Contention, contend, within
from bench.corpus import Kind

STREAM, BY_HAND, PLAIN, *OTHERS = SUBJECTS


@pytest.mark.parametrize("request_seconds", [QUICK, SLOW])
@pytest.mark.parametrize("kind", get_args(Kind))
@pytest.mark.parametrize("subject", [STREAM, BY_HAND], ids=lambda subject: subject.name)
def test_eight_writers_on_one_stream_waste_few_units_and_lose_nothing_however_slow_requests_are(
    subject, kind, request_seconds
):
    took = contend(subject, 1, kind, request_seconds)

    assert within(subject, took)
    assert took.wasted < WASTED / 3, "who is refused twice gives way"
    assert took.longest < 300 * request_seconds, "who has given way decides on what is there"


@pytest.mark.parametrize("request_seconds", [QUICK, SLOW])
def test_programs_that_know_of_no_conflict_give_way_to_each_other(request_seconds):
    took = contend(PLAIN, 1, "json", request_seconds)

    assert within(PLAIN, took)
    assert took.wasted < WASTED * 2 / 3


@pytest.mark.proof
@pytest.mark.parametrize("request_seconds", [QUICK, SLOW])
@pytest.mark.parametrize("subject", OTHERS, ids=lambda subject: subject.name)
def test_eight_writers_on_anything_else_waste_few_units_and_lose_nothing(subject, request_seconds):
    assert within(subject, contend(subject, 1, "json", request_seconds))


def test_a_bound_that_is_missed_is_told():
    good = Contention(stored=160, wasted=WASTED, read=STREAM.read, seconds=1, longest=1)

    assert within(STREAM, good)
    for missed in ({"stored": 159}, {"wasted": WASTED + 1}, {"read": STREAM.read + 1}):
        assert not within(STREAM, replace(good, **missed))
