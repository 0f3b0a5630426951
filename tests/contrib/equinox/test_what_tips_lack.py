"""What pages have and tips have not: a write of several appends, and tags of events."""

from __future__ import annotations

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.errors import InvalidInput
from epochal.model.events import Event
from epochal.model.expected_version import AtVersion
from epochal.store.bulk import Bulk
from epochal.store.joined import JoinedAppends
from tests.core.store.test_bulk import OTHER, S, firsts, to
from tests.core.store.test_mixed_appends import enrolled, of
from tests.layouts.deciders.test_streams_and_queries import TAKEN, enrol, students


def test_many_appends_in_one_call_are_made_one_after_another() -> None:
    tips = memory_tips()
    assert firsts(Bulk(tips).append([to(S, "1"), to(OTHER), to(S, "2", expected=AtVersion(1))])) == [0, 0, 1]


def test_appends_cannot_be_joined() -> None:
    with pytest.raises(InvalidInput, match="streams: must have a layout that can join appends, not tips"):
        JoinedAppends(memory_tips())


def test_streams_refuse_tags() -> None:
    tips = memory_tips()
    for wrong, field in [
        ({"events": [enrolled("1")]}, "events[0].tags"),
        ({"events": [Event(type="E")], "fail_if": of("t")}, "fail_if"),
    ]:
        with pytest.raises(InvalidInput) as refused:
            tips.append("Student-1", **wrong)  # type: ignore[arg-type]
        assert refused.value.field == field
    with pytest.raises(InvalidInput, match="pages"):
        _ = tips.tagged


def test_decisions_on_queries_are_refused() -> None:
    tips = students(memory_tips())
    with pytest.raises(InvalidInput, match="keeps no tags"):
        tips.handle("Student-1", "dcb")
    with pytest.raises(InvalidInput):
        tips.handle("Student-1", given=TAKEN, decide=enrol)
