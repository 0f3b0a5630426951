"""The state of an instance is sealed for every person in its inputs, or not stored."""

from __future__ import annotations

import json
from itertools import combinations

import pytest

from epochal.contrib.processes.sealed_state import MOST_SUBJECTS, seal, unseal
from epochal.contrib.subjects.sealing import Subjects, sealed_codec
from epochal.contrib.subjects.testing import memory_subjects
from epochal.deciders.codecs import Sealing, json_codec

PERSONS = ("ada", "ben", "cleo", "dora")
STATE = {"names": ["Ada, of two", "Ben"], "count": 2}


@pytest.fixture
def subjects() -> Subjects:
    return memory_subjects()


@pytest.fixture
def sealing(subjects: Subjects) -> Sealing:
    codec = sealed_codec(json_codec(), subjects, subject_of=lambda _: None, shredded=lambda *_: None)
    assert codec.sealing is not None
    return codec.sealing


@pytest.mark.parametrize(
    ("count", "place"), [(count, place) for count in range(1, MOST_SUBJECTS + 1) for place in range(count)]
)
def test_a_state_can_be_read_until_any_of_its_persons_is_forgotten(
    subjects: Subjects, sealing: Sealing, count: int, place: int
) -> None:
    sealed = seal(sealing, PERSONS[:count], STATE)
    assert "names" not in sealed
    assert "Ada, of two" not in json.dumps(sealed)
    assert unseal(sealing, sealed) == STATE
    subjects.forget(PERSONS[place])
    assert unseal(sealing, sealed) is None


def test_a_state_of_nobody_is_stored_as_it_is(sealing: Sealing) -> None:
    assert seal(sealing, (), STATE) == unseal(sealing, STATE) == STATE


def test_no_state_is_stored_for_more_persons_than_one_is_sealed_for(sealing: Sealing) -> None:
    assert len(PERSONS) == MOST_SUBJECTS + 1
    assert seal(sealing, PERSONS, STATE) is None


@pytest.mark.parametrize("gone", ["forgotten", "without a key"])
@pytest.mark.parametrize("place", range(MOST_SUBJECTS))
def test_no_state_is_stored_where_it_cannot_be_sealed_for_one_of_its_persons(
    subjects: Subjects, sealing: Sealing, gone: str, place: int
) -> None:
    """Sealed for the others alone, it would keep what it has of that person for as long as they have keys."""
    persons = list(PERSONS[:MOST_SUBJECTS])
    if gone == "forgotten":
        subjects.forget(persons[place])
    else:
        persons[place] = "x" * 2_000
    for count in range(1, MOST_SUBJECTS + 1):
        for some in combinations(persons, count):
            assert (seal(sealing, some, STATE) is None) == (persons[place] in some)
