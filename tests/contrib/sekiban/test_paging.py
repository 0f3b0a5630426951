"""Reads in parts: together they are one read; and what came from outside is not trusted."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import pytest

from epochal.contrib.sekiban import memory_dcb_events, reading
from epochal.errors import CorruptData, InvalidInput
from epochal.layout import query_reads
from epochal.model.events import Recorded
from epochal.model.outcomes import Appended, Conflict
from epochal.model.position_text import read_position, write_position
from epochal.model.positions import Position, Reached
from epochal.model.tag_answers import Rest, TaggedPage, Takes, parse_rest
from epochal.model.tags import Query
from epochal.plan.ops import BatchGet, Delete, Items, Op, Reply
from epochal.store.tagged import TaggedStore
from epochal.testing.stores import memory_tagged_events
from tests.contrib.sekiban.world import NOW, World, event, query

EITHER = query(("", "a"), ("", "b"))
SOME = query(("X", "a"), ("", "b"))
BOTH = query(("", "a b"))


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> int:
    """Parts read few entries, so that tags are cut in many places."""
    for each in (reading, query_reads):
        monkeypatch.setattr(each, "ENTRIES", 4)
    return 4


def only(limit: int) -> Takes:
    """Room for so many events."""
    left = itertools.count(limit, -1)
    return lambda _: next(left) > 0


def fill(world: World, count: int, first: int = 0) -> None:
    """Events of two tags and of both, of two types."""
    for number in range(first, first + count):
        tags = [["a"], ["b"], ["a", "b"], ["a", "c"], ["c"]][number % 5]
        store = world.store(NOW + number * 10**9)
        store.append([event("X" if number % 3 else "Y", *tags, data=str(number))])


def pages(
    world: World, asked: Query, limit: int, after: Position | None = None, then: Callable[[], object] = int
) -> tuple[list[Recorded], Position]:
    """All pages of a read, each continuation through its text; `then` happens after each page."""
    found: list[Recorded] = []
    rest: Rest | None = None
    while True:
        page = world.store().page(asked, after=after, rest=rest, takes=only(limit))
        found += page.events
        if page.rest is None:
            assert page.position is not None
            return found, page.position
        assert page.position is None
        rest = parse_rest(page.rest.text())
        then()


@pytest.mark.slow
@pytest.mark.parametrize("asked", [EITHER, SOME, BOTH], ids=["either", "by type", "both"])
@pytest.mark.parametrize("limit", [1, 2, 7, 100])
@pytest.mark.usefixtures("short")
def test_all_pages_are_what_one_read_returns(world: World, asked: Query, limit: int) -> None:
    fill(world, 40)
    whole = world.store().read(asked)
    found, position = pages(world, asked, limit)
    assert found == list(whole.events)
    assert position == whole.position


@pytest.mark.parametrize("limit", [1, 3])
@pytest.mark.usefixtures("short")
def test_pages_after_a_position_are_what_one_read_after_it_returns(world: World, limit: int) -> None:
    fill(world, 20)
    seen = world.store().read(EITHER).position
    fill(world, 20, first=20)
    found, position = pages(world, EITHER, limit, after=seen)
    whole = world.store().read(EITHER, after=seen)
    assert (found, position) == (list(whole.events), whole.position)


@pytest.mark.usefixtures("short")
def test_what_is_appended_between_pages_is_in_none_of_them_and_beyond_their_position(world: World) -> None:
    fill(world, 20)
    whole = world.store().read(EITHER)
    numbers = itertools.count(20)
    found, position = pages(world, EITHER, 3, then=lambda: fill(world, 1, first=next(numbers)))
    assert found == list(whole.events)
    answer = world.store().try_append([event("X", "a")], fail_if=EITHER, after=position)
    assert isinstance(answer, Conflict)
    assert [int(each.data) for each in answer.events] == [
        number for number in range(20, next(numbers)) if number % 5 != 4
    ]


def test_an_event_appended_while_heads_are_read_is_missed_by_no_decision(world: World) -> None:
    """The head of `a` is read before it, that of `b` after: it must be in the read, or in the way of the append."""
    execute = world.tables.execute

    def torn(op: Op) -> Reply:
        if not isinstance(op, BatchGet) or len(op.keys) < 2:
            return execute(op)
        world.tables.execute = execute  # type: ignore[method-assign]
        first = execute(replace(op, keys=op.keys[:1]))
        world.store().append([event("X", "a", "b")])
        second = execute(replace(op, keys=op.keys[1:]))
        assert isinstance(first, Items)
        assert isinstance(second, Items)
        return replace(second, items=(*first.items, *second.items))

    world.store().append([event("X", "a"), event("X", "b")])
    for read in (lambda: world.store().read(EITHER), lambda: page(world, EITHER)):
        world.tables.execute = torn  # type: ignore[method-assign]
        seen = read()
        assert seen.position is not None
        answer = world.store().try_append([event("X", "c")], fail_if=EITHER, after=seen.position)
        in_the_way = answer.events if isinstance(answer, Conflict) else ()
        there = {each.id for each in world.store().read(EITHER).events}
        assert {each.id for each in (*seen.events, *in_the_way)} == there


def page(world: World, asked: Query) -> TaggedPage:
    return world.store().page(asked, takes=lambda _: True)


def test_a_page_reads_no_more_events_than_it_may_look_at(world: World, short: int) -> None:
    fill(world, 40)
    looked: list[int] = []
    world.before = lambda op: looked.append(
        sum(key["pk"]["S"].startswith("EVENT#") for key in op.keys) if isinstance(op, BatchGet) else 0
    )
    page(world, EITHER)
    assert 0 < sum(looked) <= short


def test_a_page_ends_after_so_many_bytes_whether_they_matched_or_not(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BATCH_KEYS", 2)
    monkeypatch.setattr(reading, "PART_BYTES", 10)
    for _ in range(6):
        world.store().append([event("X", "a", data='"123456"')])
    found = page(world, query(("", "a b")))
    assert (found.events, found.position) == ((), None)
    assert found.rest is not None
    assert found.rest.at["a"].count == 2
    assert len(pages(world, query(("", "a")), 100)[0]) == 6


class Restless(Exception):
    """So many requests that nothing would end them."""


@pytest.mark.parametrize("opened", [memory_tagged_events, memory_dcb_events])
@pytest.mark.parametrize("from_the_beginning", [False, True])
def test_a_conflict_brings_an_event_even_where_none_is_wanted(
    opened: Callable[[], TaggedStore], *, from_the_beginning: bool
) -> None:
    store = ending(opened())
    after = None if from_the_beginning else store.read(EITHER).position
    first = store.append([event("X", "a")]).events
    store.append([event("X", "b")])
    answer = store.try_append([event("Y", "a")], fail_if=EITHER, after=after, takes=only(0))
    assert isinstance(answer, Conflict)
    assert ([each.id for each in answer.events], answer.more) == ([first[0].id], True)
    assert len(store.read(EITHER).events) == 2


@pytest.mark.parametrize("opened", [memory_tagged_events, memory_dcb_events])
@pytest.mark.parametrize("name", ["page", "page_back"])
def test_pages_come_to_an_end_where_no_event_has_room(
    opened: Callable[[], TaggedStore], name: Literal["page", "page_back"]
) -> None:
    store = ending(opened())
    for _ in range(3):
        store.append([event("X", "a")])
    sizes, rest = [], None
    while len(sizes) < 10:
        page: Any = getattr(store, name)(EITHER, rest=rest, takes=only(0))
        sizes.append(len(page.events))
        if (rest := page.rest) is None:
            break
    assert sizes == [1, 1, 1]


def ending(store: TaggedStore) -> TaggedStore:
    """The store, with so many requests at most."""
    left, execute = itertools.count(200, -1), store.driver.execute

    def counted(op: Op) -> Reply:
        if not next(left):
            raise Restless
        return execute(op)

    return replace(store, driver=replace(store.driver, execute=counted))


@pytest.mark.usefixtures("short")
def test_a_conflict_brings_as_many_events_as_are_wanted_and_a_position_past_them(world: World) -> None:
    fill(world, 20)
    whole = world.store().read(EITHER).events
    for after in (None, Position(seen={"a": Reached(), "b": Reached()})):
        answer = world.store().try_append([event("X", "a")], fail_if=EITHER, after=after, takes=only(3))
        assert isinstance(answer, Conflict)
        assert (answer.events, answer.more) == (whole[:3], True)
        assert world.store().read(EITHER, after=answer.position).events == whole[3:]


def test_a_bounded_append_looks_past_what_does_not_match(world: World, short: int) -> None:
    for _ in range(3 * short):
        world.store().append([event("X", "a")])
    answer = world.store().try_append([event("X", "a", "b")], fail_if=BOTH, takes=only(1))
    assert isinstance(answer, Appended)
    again = world.store().try_append([event("X", "a", "b")], fail_if=BOTH, takes=only(1))
    assert isinstance(again, Conflict)
    assert (again.events, again.more) == (answer.events, False)


@pytest.mark.parametrize("moved", [False, True])
def test_a_repeated_bounded_append_finds_its_own_events(world: World, *, moved: bool) -> None:
    own = [event("X", "a", id_="00000000-0000-4000-8000-000000000001")]
    seen = world.store().read(EITHER).position
    for after in (None, seen):
        answer = world.store().try_append(own, fail_if=EITHER, after=after, takes=only(1))
        assert isinstance(answer, Appended)
        assert answer.replayed == (after is not None)
        if moved:
            world.store().append([event("X", "a")])


FORGED = {
    "ahead of the store": Reached(99, "9" * 30),
    "an end that is no entry": Reached(2, "0" * 30),
    "an end beyond the last entry": Reached(2, "9" * 30),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_position_that_does_not_fit_what_is_stored_is_refused_as_input(world: World, name: str) -> None:
    fill(world, 20)
    asked = query(("", "a"))
    forged = Position(seen={"a": FORGED[name]})
    with pytest.raises(InvalidInput, match=r"^after: does not match"):
        world.store().read(asked, after=forged)
    with pytest.raises(InvalidInput, match=r"^after: does not match"):
        world.store().page(asked, after=forged, takes=only(5))
    with pytest.raises(InvalidInput, match=r"^after: does not match"):
        world.store().append([event("X", "a")], fail_if=asked, after=forged)
    honest = world.store().read(asked).position
    for rest in (Rest(at=forged.seen, position=honest), Rest(at={"a": Reached()}, position=forged)):
        with pytest.raises(InvalidInput, match=r"^from: does not match"):
            world.store().page(asked, rest=rest, takes=only(5))


def test_a_continuation_of_another_query_is_refused(world: World) -> None:
    fill(world, 20)
    rest = world.store().page(EITHER, takes=only(1)).rest
    with pytest.raises(InvalidInput, match=r"^from: is the position of a read that did not include 'c'"):
        world.store().page(query(("", "c")), rest=rest, takes=only(1))


def test_entries_that_are_gone_are_corruption(world: World) -> None:
    fill(world, 20)
    entry = next(
        item for item in world.tables.items("tags") if item["pk"]["S"] == "TAG#a" and "tagIndex" in item
    )
    world.tables.execute(Delete(table="tags", key={"pk": entry["pk"], "sk": entry["sk"]}))
    with pytest.raises(CorruptData):
        page(world, EITHER)


@pytest.mark.parametrize(
    "text", ["", ".", "e30", "x.y", "eyJzIjp7fSwiaCI6e319", "eyJzIjp7fSwiaCI6e319.", "é.é"]
)
def test_text_that_is_no_continuation_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^from: "):
        parse_rest(text)


BODIES = {
    "lone surrogates": b'{"s":{},"h":{"\\ud800":[0,""]}}',
    "counts that are true": b'{"s":{"a":[true,"000000000000000000000000000001"]},"h":{}}',
    "nesting without end": b'{"s":' + b"[" * 100_000,
    "spaces": b'{"s": {}, "h": {}}',
    "a name twice": b'{"s":{},"h":{},"h":{}}',
}


@pytest.mark.parametrize("name", BODIES)
def test_a_position_is_only_what_was_written(name: str) -> None:

    with pytest.raises(InvalidInput, match=r"^after: must be a position"):
        read_position(base64.urlsafe_b64encode(BODIES[name]).decode().rstrip("="))
    assert read_position(write_position(Position(seen={"ä": Reached()}))).seen == {"ä": Reached()}
