"""Reads in parts on AWS's own DynamoDB and in memory: one read, bounded conflicts, and positions that were altered."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from epochal.contrib.sekiban import reading
from epochal.errors import InvalidInput
from epochal.layout import query_reads
from epochal.model.events import Recorded
from epochal.model.outcomes import Conflict
from epochal.model.positions import Position, Reached
from epochal.model.tag_answers import Rest, Takes, parse_rest
from epochal.model.tags import Query
from epochal.pages.tags import reading as pages_paging
from epochal.store.tagged import TaggedStore
from tests.contract.tagged import asks, event, opens
from tests.support.tables import Tables

EITHER = Query(items=(asks("", "a:1"), asks("Renamed", "b:1")))


def only(limit: int) -> Takes:
    """Room for so many events."""
    left = itertools.count(limit, -1)
    return lambda _: next(left) > 0


@pytest.fixture(scope="module", params=["memory", pytest.param("ddbl", marks=pytest.mark.ddbl)])
def tables(request: pytest.FixtureRequest) -> Iterator[Tables | None]:
    if request.param == "memory":
        yield None
    else:
        with Tables(request.getfixturevalue("ddbl")) as found:
            yield found


@pytest.fixture(scope="module", params=["dcb", "pages"])
def filled(request: pytest.FixtureRequest, tables: Tables | None) -> TaggedStore:
    """Thirty events of two tags, of both, and of neither; no test adds any."""
    store = opens(request.param, tables)()
    for number in range(30):
        tags = (["a:1"], ["b:1"], ["a:1", "b:1"], ["c:1"], [])[number % 5]
        store.append([event("Renamed" if number % 2 else "Opened", *tags, data=str(number))])
    return store


@pytest.mark.parametrize("limit", [1, 4, 100])
def test_all_pages_are_what_one_read_returns(
    filled: TaggedStore, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in (reading, pages_paging, query_reads):
        monkeypatch.setattr(each, "ENTRIES", 5)
    whole = filled.read(EITHER)
    found: list[Recorded] = []
    rest: Rest | None = None
    while True:
        page = filled.page(EITHER, rest=rest, takes=only(limit))
        found += page.events
        if page.rest is None:
            break
        rest = parse_rest(page.rest.text())
    assert (tuple(found), page.position) == (whole.events, whole.position)


def test_a_conflict_brings_as_many_events_as_are_wanted_and_a_position_past_them(
    filled: TaggedStore,
) -> None:
    whole = filled.read(EITHER).events
    answer = filled.try_append([event("Opened", "a:1")], fail_if=EITHER, takes=only(2))
    assert isinstance(answer, Conflict)
    assert (answer.events, answer.more) == (whole[:2], True)
    assert filled.read(EITHER, after=answer.position).events == whole[2:]


@pytest.mark.parametrize(
    "altered", [Reached(99, "9" * 30), Reached(2, "0" * 30), Reached(2, "9" * 30), Reached(1, "5" * 30)]
)
def test_a_position_that_was_altered_is_refused_as_input(filled: TaggedStore, altered: Reached) -> None:
    asked = Query(items=(asks("", "a:1"),))
    forged = Position(seen={"a:1": altered})
    honest = filled.read(asked).position
    for attempt in (
        lambda: filled.read(asked, after=forged),
        lambda: filled.page(asked, after=forged, takes=only(5)),
        lambda: filled.try_append([event("Opened", "a:1")], fail_if=asked, after=forged),
        lambda: filled.try_append([event("Opened", "a:1")], fail_if=asked, after=forged, takes=only(1)),
        lambda: filled.page(asked, rest=Rest(at=forged.seen, position=honest), takes=only(5)),
        lambda: filled.page(asked, rest=Rest(at={"a:1": Reached()}, position=forged), takes=only(50)),
    ):
        with pytest.raises(InvalidInput, match="does not match the events of 'a:1'"):
            attempt()
    assert filled.read(asked).position == honest
