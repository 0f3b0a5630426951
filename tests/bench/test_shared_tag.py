"""Writers under one tag: no event is lost, few units are wasted, and they are no slower than one writer alone."""

from dataclasses import replace

import pytest

from bench.shared_tag import EACH, SUBJECTS, Bound, Subject, holds, share

OWN_STREAMS, NO_STREAM, DECISIONS, SEKIBAN = SUBJECTS
CASES = [
    pytest.param(
        subject,
        writers,
        between,
        id=f"{subject.name}, {writers} {'processes' if between else 'writers'}",
        marks=[] if writers == 8 else [pytest.mark.proof],
    )
    for subject in SUBJECTS
    for between in (False, True)
    for writers in (subject.between if between else subject.within)
]


@pytest.mark.parametrize(("subject", "writers", "between"), CASES)
def test_writers_under_one_tag_waste_few_units_and_are_not_slower_than_one(
    subject: Subject, writers: int, between: bool
) -> None:
    bound = (subject.between if between else subject.within)[writers]

    alone = share(subject, 1, appends=writers * EACH)
    assert holds(bound, share(subject, writers, between=between), alone)


def test_one_writer_alone_wastes_nothing() -> None:
    alone = share(OWN_STREAMS, 1, between=False)

    assert (alone.wasted, alone.written, alone.requests) == (0, 4, 2)


def test_a_bound_that_is_missed_is_told() -> None:
    alone = share(NO_STREAM, 1, between=False)
    bound = Bound(wasted=0, rate=1)

    assert holds(bound, alone, alone)
    for missed in ({"stored": 19}, {"wasted": 0.1}, {"rate": alone.rate * 0.9}):
        assert not holds(bound, replace(alone, **missed), alone)
