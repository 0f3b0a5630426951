"""Positions of events, and of other reads: what a condition may count from."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from uuid import UUID

import pytest

from epochal.contrib.sekiban import memory_dcb_events
from epochal.contrib.sekiban.opening import DcbImporter
from epochal.contrib.sekiban.store import DcbEvents
from epochal.errors import InvalidInput
from epochal.model.events import Recorded
from epochal.model.outcomes import Appended, Conflict
from epochal.model.position_text import read_position, write_position
from epochal.model.tags import Query
from epochal.plan.ops import Query as Pages
from epochal.store.listings import listings_of
from epochal.store.tagged import TaggedStore
from epochal.store.tagged_importer import ImportedEvent
from epochal.testing.stores import memory_tagged_events
from tests.contrib.sekiban.world import NOW, World, event, query

BOTH = query(("T", "a:1"), ("", "b:1"))


def fill(world: World) -> list[Recorded]:
    """Nine events, by writers whose clocks differ; those that BOTH asks for, in order."""
    for nth in range(9):
        store = world.store(NOW + (nth % 3) * 10**9)
        kind, tags = ("T", "U")[nth % 2], (("a:1",), ("b:1",), ("a:1", "b:1"))[nth % 3]
        store.append([event(kind, *tags, data=str(nth))])
    return list(world.store().read(BOTH).events)


def refused(store: DcbEvents, asked: Query, after: object) -> list[str]:
    """Ids of what stands in the way of an append."""
    answer = store.try_append([event("X", "z:1")], fail_if=asked, after=after)  # type: ignore[arg-type]
    return [each.id for each in answer.events] if isinstance(answer, Conflict) else []


def test_each_event_of_a_read_tells_a_position_that_has_seen_it_and_what_came_before_it() -> None:
    world = World()
    events = fill(world)
    store = world.store()

    assert len(events) > 5
    for place, each in enumerate(events):
        assert each.position is not None
        later = [other.id for other in events[place + 1 :]]
        assert [other.id for other in store.read(BOTH, after=each.position).events] == later
        assert refused(store, BOTH, each.position) == later
        assert read_position(write_position(each.position)) == each.position


def test_the_last_events_position_is_that_of_the_read_so_that_the_next_append_is_one_request() -> None:
    world = World()
    world.store().append([event("T", "a:1"), event("V", "a:1")])
    seen = world.store().read(query(("T", "a:1")))
    assert seen.events[-1].position == seen.position
    before = world.meter.requests
    world.store().append([event("T", "a:1")], fail_if=query(("T", "a:1")), after=seen.events[-1].position)
    assert world.meter.requests == before + 1


def test_an_event_that_a_slow_clock_puts_before_others_is_new_after_all_of_their_positions() -> None:
    world = World()
    world.store(NOW + 9 * 10**9).append([event("T", "a:1")])
    world.store(NOW).append([event("T", "b:1")])
    events = world.store().read(BOTH).events
    (late,) = world.store(NOW + 10**9).append([event("T", "b:1")]).events

    assert events[0].place < late.place < events[1].place
    for each in events:
        assert late.id in refused(world.store(), BOTH, each.position)


def test_of_two_events_of_one_sortable_id_the_first_ones_position_has_not_seen_the_second() -> None:
    world = World()
    for nth, tag in enumerate(("a:1", "b:1")):
        chosen = str(f"{7:030d}")
        happened = ImportedEvent(
            event=event("T", tag, id_=f"ffffffff-0000-4000-8000-00000000000{nth}"),
            timestamp="2026-01-01T00:00:00Z",
            place=chosen,
        )
        DcbImporter(store=world.store()).run([happened])
    first, second = world.store().read(BOTH).events

    assert first.place == second.place
    assert refused(world.store(), BOTH, first.position) == [second.id]


def test_an_event_that_is_found_by_its_id_tells_no_position() -> None:
    world = World()
    (made,) = world.store().append([event("T", "a:1")]).events
    found = world.store().event(made.id)
    assert found is not None
    assert found.position is None


@pytest.mark.parametrize("opened", [memory_tagged_events, memory_dcb_events])
def test_what_is_appended_or_listed_tells_where_it_is_in_its_tags(opened: Callable[[], TaggedStore]) -> None:
    store = opened()
    store.append([event("T", "a:1"), event("T", "b:1")])
    made = store.append([event("T", "a:1", data="1"), event("T", "a:1", "b:1", data="2"), event("T", "a:1")])
    listed = list(listings_of(store).tagged("a:1"))
    for events in (made.events, listed[1:]):
        for at, each in enumerate(events):
            assert each.position is not None
            assert store.read(query(("T", "a:1")), after=each.position).events == made.events[at + 1 :]
    in_both = made.events[1].position
    assert in_both is not None
    assert store.read(query(("T", "b:1")), after=in_both).events == ()


def test_an_event_of_pages_that_is_found_by_its_id_tells_where_it_is_in_its_first_tag() -> None:
    store, ids = memory_tagged_events(), [str(UUID(int=number)) for number in range(3)]
    store.append([event("T", "a:1", "b:1", id_=each) for each in ids])
    found = store.event(ids[1])
    assert found is not None
    assert found.position is not None
    assert [each.id for each in store.read(query(("T", "a:1")), after=found.position).events] == ids[2:]


@pytest.mark.parametrize(
    "narrow",
    [
        query(("T", "a:1")),
        query(("", "a:1 b:1")),
        query(("T", "0:0 a:1")),
        query(("U", "b:1"), ("T", "a:1 b:1")),
        BOTH,
    ],
    ids=["a type of the tag", "both tags", "a tag not read", "an item each", "the same"],
)
def test_a_position_of_a_broader_read_goes_with_a_narrower_query(narrow: Query) -> None:
    world = World()
    fill(world)
    position = world.store().read(BOTH).position
    store = world.store()

    assert refused(store, narrow, position) == []
    store.append([event("X", "a:1", "b:1")])
    assert refused(store, query(("T", "a:1")), position) == []
    (new,) = store.append([event("T", "a:1", "b:1", "0:0"), event("U", "b:1")]).events[:1]
    assert new.id in refused(store, narrow, position)


def test_a_read_of_everything_has_seen_what_any_query_asks_for() -> None:
    world = World(type_heads=True)
    fill(world)
    everything = world.store().read(Query.all())
    assert len(everything.events) == 9
    store = world.store()
    asked = [query(("T", "a:1")), query(("", "never:1")), query(("U", "")), BOTH, Query.all()]

    for each in asked:
        assert refused(store, each, everything.position) == []
        everything = store.read(Query.all())
    (new,) = store.append([event("U", "a:1", "b:1", "never:1")]).events
    assert refused(store, asked[0], everything.position) == []
    (other,) = store.append([event("T", "a:1")]).events
    found = [refused(store, each, everything.position) for each in asked]
    assert [new.id in each for each in found] == [False, True, True, True, True]
    assert [other.id in each for each in found] == [True, False, False, True, True]


def test_a_read_of_types_has_seen_what_asks_for_these_types_of_some_tag() -> None:
    world = World(type_heads=True)
    fill(world)
    seen = world.store().read(query(("T U", "")))
    store = world.store()

    assert refused(store, query(("T", "a:1")), seen.position) == []
    (new,) = store.append([event("T", "a:1")]).events
    assert refused(store, query(("T", "a:1")), seen.position) == [new.id]
    with pytest.raises(InvalidInput, match="did not include 'a:1'"):
        store.append([event("X")], fail_if=query(("", "a:1")), after=seen.position)


@pytest.mark.parametrize(
    "asked", [query(("T", "c:1")), query(("T", "a:1"), ("", "c:1"))], ids=["all", "one item"]
)
def test_a_position_that_covers_no_head_of_an_item_is_refused(asked: Query) -> None:
    world = World()
    fill(world)
    position = world.store().read(BOTH).position
    with pytest.raises(InvalidInput, match="after: is the position of a read that did not include 'c:1'"):
        world.store().append([event("X")], fail_if=asked, after=position)
    with pytest.raises(InvalidInput, match="after: is the position of a read that did not include 'c:1'"):
        world.store().read(asked, after=position)


def test_a_condition_without_a_position_is_that_there_is_no_such_event_at_all() -> None:
    world = World()
    fill(world)
    assert isinstance(world.store().try_append([event("X")], fail_if=query(("Z", "a:1"))), Appended)
    assert isinstance(world.store().try_append([event("X")], fail_if=query(("T", "a:1"))), Conflict)


@pytest.mark.parametrize("limit", [1, 2, 5, 7, 100])
def test_the_last_events_of_a_query_come_newest_first_and_tell_their_positions(limit: int) -> None:
    world = World()
    events = fill(world)
    whole = world.store().read(BOTH)
    last = world.store().read(BOTH, limit=limit, direction="backward")

    assert last.events == tuple(reversed(events[-limit:]))
    assert (last.position, last.more) == (whole.position, limit < len(events))
    for each in last.events:
        later = [other.id for other in events[events.index(each) + 1 :]]
        assert refused(world.store(), BOTH, each.position) == later
    after = events[2].position
    since = world.store().read(BOTH, after=after, limit=limit, direction="backward")
    assert since.events == tuple(reversed(events[3:][-limit:]))


@pytest.mark.parametrize("limit", [1, 2, 5, 7, 100])
def test_the_first_events_of_a_query_come_with_a_position_that_has_seen_no_more(limit: int) -> None:
    world = World()
    events = fill(world)
    first = world.store().read(BOTH, limit=limit)

    assert first.events == tuple(events[:limit])
    assert first.more == (limit < len(events))
    assert refused(world.store(), BOTH, first.position) == [each.id for each in events[limit:]]


@pytest.mark.slow
def test_the_last_event_among_thousands_takes_few_requests_and_reads_little() -> None:
    world = World()
    for _ in range(40):
        world.store().append([event("T", "a:1") for _ in range(49)])
    before, units = world.meter.requests, world.meter.units
    last = world.store().read(query(("T", "a:1")), limit=1, direction="backward")

    assert len(last.events) == 1
    assert world.meter.requests - before == 3
    assert (world.meter.units - units).read <= 6


@pytest.mark.slow
def test_a_rare_type_among_thousands_is_found_in_a_bounded_number_of_requests_each_of_a_bounded_size() -> (
    None
):
    world = World()
    world.store().append([event("Rare", "a:1")])
    for _ in range(60):
        world.store().append([event("T", "a:1") for _ in range(49)])
    asked: list[int | None] = []
    world.before = lambda op: asked.append(op.limit) if isinstance(op, Pages) else None
    last = world.store().read(query(("Rare", "a:1")), limit=1, direction="backward")

    assert [each.type for each in last.events] == ["Rare"]
    assert len(asked) <= 8
    assert all(limit is not None and limit <= 1_001 for limit in asked)


@pytest.mark.slow
def test_all_events_of_a_query_may_be_read_backward() -> None:
    world = World()
    for _ in range(30):
        world.store().append([event("T", *tags) for tags in (("a:1",), ("b:1",), ("a:1", "b:1")) * 8])
    forward = world.store().read(BOTH)
    backward = world.store().read(BOTH, direction="backward")

    assert len(forward.events) == 720
    assert backward.events == tuple(reversed(forward.events))
    assert (backward.position, backward.more) == (forward.position, False)
    keys = [each.key for each in backward.events]
    assert all(later > earlier for later, earlier in pairwise(keys))


@pytest.mark.parametrize("type_heads", [True, False])
def test_with_type_heads_sortable_ids_increase_over_all_events_and_without_within_a_tag(
    type_heads: bool,
) -> None:
    world = World(type_heads=type_heads)
    made = [
        world.store(NOW - nth * 10**9).append([event("T", f"t:{nth % 3}")]).events[0].place
        for nth in range(9)
    ]

    assert len(set(made)) == len(made)
    assert (made == sorted(made)) == type_heads
    for tag in range(3):
        assert made[tag::3] == sorted(made[tag::3])


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_of_nothing_is_refused(limit: int) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        World().store().read(BOTH, limit=limit)
    with pytest.raises(InvalidInput, match="limit"):
        World().store().read(BOTH, limit=limit, direction="backward")
    with pytest.raises(InvalidInput, match="direction"):
        World().store().read(BOTH, direction="up")  # type: ignore[arg-type]
