"""Tagged events as pages: what goes out, what it costs, and what a page says of an event (FORMATS §8)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pytest

from epochal.codec.bodies import DIRECT, Encoded
from epochal.contrib.sekiban.items import TaggedEvent
from epochal.errors import ConflictError, CorruptData, InvalidInput, TooLarge
from epochal.layout.tag_streams import TagStreams
from epochal.model.events import Event
from epochal.model.outcomes import Conflict
from epochal.model.position_text import read_position, write_position
from epochal.model.positions import Position, Reached
from epochal.model.tag_answers import REST, parse_down
from epochal.model.tags import Query, QueryItem
from epochal.pages import writes
from epochal.pages.frames import time_of
from epochal.pages.items import STREAMS, is_page, page_key, read_page
from epochal.pages.layout import Pages
from epochal.pages.tags import reading
from epochal.pages.tags.append import TagsPart
from epochal.pages.tags.entries import Label, event_id, read_label, reserved_tags
from epochal.pages.tags.listing import count_since
from epochal.plan.failures import Lost
from epochal.plan.ops import (
    BatchGet,
    Check,
    Delete,
    Items,
    Op,
    Overflow,
    Put,
    Reply,
    Transact,
    TransactGet,
    Update,
)
from epochal.plan.ops import Query as PlanQuery
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.store.tagged_pages import TaggedEvents
from epochal.testing.memory import MemoryTables

TABLE = "streams"
OWN = "00000000-0000-4000-8000-000000000001"


@dataclass(slots=True)
class World:
    """A table, a store over it, and every request."""

    tables: MemoryTables = field(default_factory=lambda: MemoryTables({TABLE: STREAMS}))
    asked: list[Op] = field(default_factory=list)
    fault: Callable[[Op, Callable[[Op], Reply]], Reply] = lambda op, perform: perform(op)

    def store(self, now: int = 10**18, **site: Any) -> TaggedEvents:
        def execute(op: Op) -> Reply:
            self.asked.append(op)
            return self.fault(op, self.tables.execute)

        driver = Driver(execute=execute, meter=Meter(), sleep=lambda _: None)
        named = Streams(driver=driver, table=TABLE, layout=Pages())
        return TaggedEvents(driver=driver, site=TagStreams(table=TABLE, **site), named=named, now=lambda: now)

    def pages(self, tag: str) -> list[Any]:
        items = [item for item in self.tables.items(TABLE) if is_page(item)]
        return [page for item in items if (page := read_page(item)).stream == f"$tag-{tag}"]


def event(*tags: str, kind: str = "T", data: bytes = b"{}", **fields: Any) -> Event:
    return Event(type=kind, data=data, tags=tags, **fields)


def of(*tags: str, types: str = "") -> Query:
    return Query(items=(QueryItem(types=frozenset(types.split()), tags=frozenset(tags)),))


NOISE = random.Random(1).randbytes(3_000)


@pytest.mark.parametrize(("tags", "units"), [(0, 1), (1, 1), (2, 4), (3, 6)])
def test_an_event_takes_a_write_unit_or_two_for_each_of_several_tags(tags: int, units: int) -> None:
    world = World()
    store = world.store()
    names = [f"t:{number}" for number in range(tags)]
    for _ in range(3):
        answer = store.append([event(*names)])
        assert answer.capacity.write == units
    assert isinstance(world.asked[-1], Transact) == (tags > 1)


def test_an_append_after_the_position_of_a_read_is_one_request_and_so_is_the_next_after_its_own() -> None:
    world = World()
    store = world.store()
    store.append([event("a", "b")])
    seen = store.read(of("a"))
    world.asked.clear()
    answer = store.append([event("a")], fail_if=of("a"), after=read_position(write_position(seen.position)))
    store.append([event("a")], fail_if=of("a"), after=answer.position)
    assert [type(op) for op in world.asked] == [Update, Update]
    with pytest.raises(ConflictError):
        store.append([event("a")], fail_if=of("a"), after=seen.position)


def test_a_fence_that_no_write_moves_is_checked_and_one_that_a_write_moves_is_not() -> None:
    world = World()
    store = world.store()
    store.append([event("a")])
    store.append([event("b")])
    both = Query(items=(*of("a").items, *of("b").items))
    store.append([event("a")], fail_if=both, after=store.read(both).position)
    sent = world.asked[-1]
    assert isinstance(sent, Transact)
    assert [(type(write), write.key["p"]["S"]) for write in sent.writes if not isinstance(write, Put)] == [
        (Update, "$tag-a"),
        (Check, "$tag-b"),
    ]


def test_a_full_fence_is_checked_where_the_next_page_would_begin_unless_its_token_came_from_outside() -> None:
    world = World()
    store = world.store()
    while not world.pages("b") or not world.pages("b")[-1].full:
        store.append([event("b", data=NOISE[:400])])
    end = world.pages("b")[-1].version
    seen = store.read(of("b"))
    store.append([event("a")], fail_if=of("b"), after=seen.position)
    sent = world.asked[-1]
    assert isinstance(sent, Transact)
    assert sent.writes[-1].key == {"p": {"S": "$tag-b"}, "i": {"N": str(end)}}  # type: ignore[union-attr]

    token = seen.position.seen["b"].token
    assert token is not None
    forged = Reached(end - 1, seen.position.seen["b"].last, replace(token, version=end - 1, of=""))
    with pytest.raises(InvalidInput, match="does not match the events of 'b'"):
        store.append([event("a")], fail_if=of("b"), after=Position(seen={"b": forged}))


def test_an_append_has_one_stamp_under_all_of_its_tags_above_the_last_of_each_whatever_the_clock_says() -> (
    None
):
    world = World()
    world.store(now=2 * 10**18).append([event("a")])
    world.store(now=10**18).append([event("b")])
    (made,) = world.store(now=10**18).append([event("a", "b")]).events
    (a,), (b,) = world.pages("a"), world.pages("b")
    assert a.frames[-1].stamp == b.frames[-1].stamp
    assert a.frames[-1].stamp > max(a.frames[0].stamp, b.frames[0].stamp)
    assert world.store().read(of("b")).events[-1] == made


def test_large_bodies_are_on_the_page_of_the_first_tag_alone_and_come_back_from_every_tag() -> None:
    world = World()
    store = world.store()
    store.append([event("b", data=NOISE[:100])])
    made = store.append([event("a", "b", data=NOISE, meta=NOISE[:99]), event("b", "c", data=NOISE[::-1])])
    assert [world.pages(tag)[-1].size > 2_900 for tag in "abc"] == [True, True, False]
    assert store.read(of("b")).events[1:] == made.events
    assert store.read(of("c")).events == made.events[1:]
    assert store.read(of("b"), direction="backward", limit=2).events == made.events[::-1]


def test_a_body_that_does_not_show_yet_is_asked_for_again_and_one_that_is_gone_is_corrupt() -> None:
    def late(op: Op, perform: Callable[[Op], Reply]) -> Reply:
        return Items(items=()) if isinstance(op, BatchGet) else perform(op)

    world = World()
    store = world.store()
    made = store.append([event("a", "b", data=NOISE)])
    world.fault = late
    assert store.read(of("b")).events == made.events

    left = [item for item in world.tables.items(TABLE) if item["p"]["S"] == "$tag-b"]
    world.tables = MemoryTables({TABLE: STREAMS})
    for item in left:
        world.tables.execute(Put(table=TABLE, item=item))
    with pytest.raises(CorruptData, match="no body of event 0"):
        store.read(of("b"))


@pytest.mark.parametrize("before", [0, 1])
def test_an_event_whose_id_has_a_record_is_found_though_its_page_does_not_show_it_yet(before: int) -> None:
    """Of a transaction under way, a read may see the record of an id and not the page, which it waits for then."""
    world = World()
    store = world.store()
    for _ in range(before):
        store.append([event("a")])
    earlier = [item for item in world.tables.items(TABLE) if item["p"]["S"] == "$tag-a"]
    (made,) = store.append([event("a", id=OWN)]).events
    waited: list[str] = []

    def late(op: Op, perform: Callable[[Op], Reply]) -> Reply:
        if isinstance(op, TransactGet):
            waited.extend(key["p"]["S"] for _, key in op.keys)
        if isinstance(op, PlanQuery) and "$tag-a" not in waited:
            return Items(items=tuple(earlier))
        return perform(op)

    world.fault = late
    assert store.event(OWN) is not None
    assert [each.id for each in store.events([OWN]).values()] == [made.id]
    assert "$tag-a" in waited


def test_one_stamp_is_agreed_on_at_the_second_try_where_a_page_is_closed_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Closing a page takes a stamp, so the first try has two. The stamp is the least above both."""
    world, tries = World(), Counter[str]()
    world.store().append([event("a")])
    world.store().append([event("b")])

    def share(part: TagsPart, stream: str, written: Any) -> Any:
        tries[stream] += 1
        assert tries[stream] <= 2, "no stamp is agreed on"
        return taken(part, stream, written)

    taken = TagsPart.batch
    monkeypatch.setattr(TagsPart, "batch", share)
    world.store().append([event("a", "b", data=random.Random(2).randbytes(401_400))])

    assert tries == {"$tag-a": 2, "$tag-b": 2}
    closed = next(page for page in world.pages("a") if page.full)
    (stamp,) = {world.pages(tag)[-1].frames[-1].stamp for tag in "ab"}
    assert time_of(stamp) == closed.time + 1


def test_a_batch_that_no_open_page_takes_has_one_stamp_though_one_page_is_closed_for_it() -> None:
    world = World()
    store = world.store()
    store.append([event("a")])
    store.append([event("b")])
    world.asked.clear()
    (made,) = store.append([event("a", "b", data=random.Random(2).randbytes(401_400))]).events
    assert [type(op) for op in world.asked if isinstance(op, Put | Update | Transact)] == [Update, Transact]
    assert len(world.pages("a")) == 2
    assert world.pages("a")[-1].frames[-1].stamp == world.pages("b")[-1].frames[-1].stamp
    assert store.read(of("b")).events[-1] == made


def test_a_page_is_closed_once_for_an_append_though_another_tag_moves_before_its_transaction() -> None:
    world = World()
    store = world.store()
    store.append([event("a")])
    store.append([event("b")])
    others = iter([True])

    def meanwhile(op: Op, perform: Callable[[Op], Reply]) -> Reply:
        if isinstance(op, Transact) and next(others, False):
            World(tables=world.tables).store().append([event("b")])
        return perform(op)

    world.fault = meanwhile
    world.asked.clear()
    (made,) = store.append([event("a", "b", data=random.Random(2).randbytes(401_400))]).events

    written = [type(op) for op in world.asked if isinstance(op, Put | Update | Transact)]
    assert written == [Update, Transact, Transact]
    assert store.read(of("b")).events[-1] == made
    assert world.pages("a")[-1].frames[-1].stamp == world.pages("b")[-1].frames[-1].stamp


@pytest.mark.parametrize("tags", [("a",), ("a", "b")])
def test_an_append_whose_answer_is_lost_is_made_once_and_told_so(tags: tuple[str, ...]) -> None:
    lost: list[Op] = []

    def lose(op: Op, perform: Callable[[Op], Reply]) -> Reply:
        reply = perform(op)
        if isinstance(op, Put | Update | Transact) and not lost:
            lost.append(op)
            raise Lost("no answer")
        return reply

    world = World()
    store = world.store()
    store.append([event(*tags)])
    world.fault = lose
    (made,) = store.append([event(*tags)]).events
    assert lost
    assert any(isinstance(op, TransactGet) for op in world.asked) == (len(tags) > 1), "one page shows at once"
    assert store.read(of("a")).events[-1] == made
    assert len(store.read(of("a")).events) == 2


def test_who_is_told_that_it_was_made_has_waited_for_it_under_every_tag() -> None:
    lost = iter([True])

    def lose(op: Op, perform: Callable[[Op], Reply]) -> Reply:
        reply = perform(op)
        if isinstance(op, Transact) and next(lost, False):
            raise Lost("no answer")
        return reply

    world = World(fault=lose)
    world.store().append([event("a", "b")])
    assert isinstance(world.asked[-1], TransactGet)
    assert [key["p"]["S"] for _, key in world.asked[-1].keys] == ["$tag-a", "$tag-b"]


def test_a_repeat_with_ids_is_no_conflict_with_itself() -> None:
    store = World().store()
    once = [event("a", id=OWN)]
    first = store.append(once, fail_if=of("a"))
    again = store.append(once, fail_if=of("a"))
    assert (first.replayed, again.replayed) == (False, True)
    assert again.events == first.events


def test_a_position_whose_token_is_newer_than_what_it_has_seen_hides_no_match() -> None:
    store = World().store()
    store.append([event("a")])
    old = store.read(of("a")).position.seen["a"]
    store.append([event("a")])
    new = store.read(of("a")).position.seen["a"]
    mixed = Position(seen={"a": replace(old, token=new.token)})
    with pytest.raises(ConflictError):
        store.append([event("a")], fail_if=of("a"), after=mixed)


def test_a_position_without_a_token_has_the_page_read_before_anything_is_written() -> None:
    world = World()
    store = world.store()
    store.append([event("a")])
    seen = store.read(of("a")).position.seen["a"]
    world.asked.clear()
    store.append([event("a")], fail_if=of("a"), after=Position(seen={"a": replace(seen, token=None)}))
    assert [type(op) for op in world.asked] == [PlanQuery, Update]


def test_a_position_keeps_no_heads_but_those_of_its_append() -> None:
    store = World().store()
    position = store.append([event("a", "t:0")], fail_if=of("b"), after=store.read(of("b")).position).position
    assert set(position.heads) == {"a", "t:0"}
    store.append([event("b")])
    conflict = store.try_append([event("a", "t:1")], fail_if=of("b"), after=position)
    assert isinstance(conflict, Conflict)
    assert set(conflict.position.heads) == {"a"}


def test_a_token_that_makes_a_tags_page_small_is_found_out_by_the_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writes, "is_full", lambda *_, **__: False)
    world = World()
    store = world.store()
    store.append([event("a", data=random.Random(2).randbytes(9_000))])
    seen = store.read(of("a")).position.seen["a"]
    assert seen.token is not None
    small = replace(seen, token=replace(seen.token, size=100, carried=50))
    large = event("a", data=random.Random(3).randbytes(401_000))
    store.append([large], fail_if=of("a"), after=Position(seen={"a": small}))
    assert [page.index for page in world.pages("a")] == [0, 1]


def test_a_page_that_was_too_small_is_no_reason_to_leave_the_one_that_another_has_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writes, "is_full", lambda *_, **__: False)
    luck, world, others = random.Random(2), World(), iter([True])
    world.store().append([event("a", data=luck.randbytes(385_000))])
    seen = world.store().read(of("a")).position.seen["a"]
    assert seen.token is not None
    small = replace(seen, token=replace(seen.token, size=100, carried=50))

    def close_first(op: Op, perform: Callable[[Op], Reply]) -> Reply:
        reply = perform(op)
        if isinstance(reply, Overflow) and next(others, False):
            World(tables=world.tables).store().append([event("a", kind="Other", data=luck.randbytes(20_000))])
        return reply

    world.fault = close_first
    large = event("a", data=luck.randbytes(250_000))
    world.store().append([large], fail_if=of("a", types="T"), after=Position(seen={"a": small}))
    assert [(page.index, page.version) for page in world.pages("a")] == [(0, 1), (1, 3)]


def test_what_comes_after_any_event_of_a_tag_is_counted() -> None:
    world = World()
    store = world.store()
    while len(world.pages("a")) < 16:
        store.append([event("a", data=NOISE[:300])])
    events = store.read(of("a")).events
    left = [
        store.driver.run(count_since(store.site, "a", each.place))  # also the first of a page
        for each in events
    ]
    assert left == list(range(len(events)))[::-1]


def test_a_record_of_an_id_that_names_another_event_is_corrupt() -> None:
    world = World()
    store = world.store()
    store.append([event("a"), event("a", id=OWN)])
    record = next(item for item in world.tables.items(TABLE) if item["p"]["S"] == f"$event-{OWN}")
    world.tables.execute(Put(table=TABLE, item={**record, "n": {"N": "0"}}))
    with pytest.raises(CorruptData, match=f"{OWN} is not where its record says"):
        store.event(OWN)


def test_of_an_append_of_several_events_those_between_two_places_are_read() -> None:
    store = World().store()
    made = store.append([event("a", data=b"%d" % number) for number in range(4)]).events
    assert list(store.between("a", 1, 3)) == list(made[1:3])


def test_types_are_asked_for_alone_only_where_they_were_named() -> None:
    world = World()
    named = world.store(type_heads=reserved_tags(["T"], everything=False))
    everything = world.store(type_heads=reserved_tags([], everything=True))
    (made,) = named.append([event("a")]).events
    named.append([event("a", kind="U")])
    assert named.read(of(types="T")).events == (made,)
    for store, asked in ((named, of(types="U")), (named, Query.all()), (world.store(), of(types="T"))):
        with pytest.raises(InvalidInput, match="opened with its types"):
            store.read(asked)
    assert everything.read(of(types="T")).events == ()
    (second,) = everything.append([event(kind="T")]).events
    assert everything.read(of(types="T")).events == everything.read(Query.all()).events == (second,)


def test_nothing_expires_and_nothing_larger_than_a_page_is_written() -> None:
    world = World()
    store = world.store()
    with pytest.raises(InvalidInput, match=r"events\[0\].expires"):
        store.append([TaggedEvent(type="T", tags=("a",), expires=2_000_000_000)])
    with pytest.raises(TooLarge):
        store.append([event("a", data=random.Random(3).randbytes(420_000))])
    assert not world.pages("a")


def test_an_event_with_an_id_is_found_by_it_and_one_whose_id_the_store_chose_is_not() -> None:
    store = World().store()
    (made,) = store.append([event("a", "b", id=OWN)]).events
    (other,) = store.append([event("a")]).events
    assert store.event(OWN) == made
    assert store.event(other.id) is None
    assert [each.id for each in store.read(of("a")).events] == [OWN, other.id]


def test_a_read_newest_first_goes_on_where_its_text_says_and_refuses_another() -> None:
    store = World().store()
    made = [store.append([event("a", data=b"%d" % number)]).events[0] for number in range(5)]
    left = iter(range(2))
    page = store.page_back(of("a"), takes=lambda _: next(left, None) is not None)
    assert page.events == tuple(reversed(made[3:]))
    assert page.rest is not None
    rest = parse_down(page.rest.text())
    assert store.page_back(of("a"), rest=rest, takes=lambda _: True).events == tuple(reversed(made[:3]))
    wrong = replace(rest, at={"a": Reached(3, made[0].place)})
    with pytest.raises(InvalidInput, match="does not match"):
        store.page_back(of("a"), rest=wrong, takes=lambda _: True)


@pytest.mark.parametrize("tag", ["a", "b"])
def test_a_read_newest_first_that_is_to_go_on_without_a_tag_of_its_query_is_refused(tag: str) -> None:
    store, query = World().store(), Query(items=(*of("a").items, *of("b").items))
    for _ in range(3):
        store.append([event("a")])
        store.append([event("b")])
    left = iter(range(2))
    rest = store.page_back(query, takes=lambda _: next(left, None) is not None).rest
    assert rest is not None
    lacking = replace(rest, at={name: reached for name, reached in rest.at.items() if name != tag})
    with pytest.raises(InvalidInput, match=f"did not include '{tag}'") as refused:
        store.page_back(query, rest=lacking, takes=lambda _: True)
    assert refused.value.field == REST


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("further", [0, 1])
def test_a_read_after_a_position_that_its_tag_never_had_is_refused_also_where_nothing_is_new(
    direction: Literal["forward", "backward"], further: int
) -> None:
    """A tag of two events never had three, and never another second event."""
    store = World().store()
    first, second = store.append([event("a"), event("a")]).events
    forged = Position(seen={"a": Reached(2 + further, second.place if further else first.place)})
    for limit in (None, 1):
        with pytest.raises(InvalidInput, match="does not match the events of 'a'") as refused:
            store.read(of("a"), after=forged, limit=limit, direction=direction)
        assert refused.value.field == "after"


def test_a_read_newest_first_shows_the_event_that_one_part_ends_at_once() -> None:
    """Pages end at matches and between them."""
    store = World().store()
    for number in range(30):
        store.append([event("a", kind="U" if number % 3 else "T", data=NOISE[:300])])
    whole = store.read(of("a", types="T")).events
    for limit in range(1, len(whole) + 1):
        found = store.read(of("a", types="T"), limit=limit, direction="backward").events
        assert found == tuple(reversed(whole))[:limit]


def test_a_page_of_more_events_than_a_part_reads_is_shown_whole_over_several_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "ENTRIES", 3)
    store = World().store()
    made = store.append([event("a", data=b"%d" % number) for number in range(10)]).events
    shown, page = [], store.page(of("a"), takes=lambda _: True)
    shown += page.events
    while page.rest is not None:
        page = store.page(of("a"), rest=page.rest, takes=lambda _: True)
        shown += page.events
    assert tuple(shown) == made


def test_a_read_that_is_to_end_where_its_tag_never_ended_is_refused() -> None:
    store = World().store()
    made = [store.append([event("a")]).events[0] for _ in range(4)]
    left = iter(range(2))
    rest = store.page(of("a"), takes=lambda _: next(left, None) is not None).rest
    assert rest is not None
    wrong = Position(seen={"a": Reached(4, made[2].place)}, items=rest.position.items)
    with pytest.raises(InvalidInput, match="does not match the events of 'a'"):
        store.page(of("a"), rest=replace(rest, position=wrong), takes=lambda _: True)


def test_a_body_that_is_on_a_page_in_hand_is_not_asked_for() -> None:
    world = World()
    store = world.store()
    (made,) = store.append([event("a", "b", data=NOISE)]).events
    world.asked.clear()
    for one, other in (("a", "b"), ("b", "a")):
        assert store.read(Query(items=(*of(one).items, *of(other).items))).events == (made,)
    assert not any(isinstance(op, BatchGet) for op in world.asked)


def test_what_an_event_says_of_itself_has_one_form_and_anything_else_is_corrupt() -> None:
    label = Label(number=3, others=("b", "c"), id=OWN, meta=Encoded(DIRECT, b"m"))
    stored = label.encoded()
    assert stored.data.hex() == "0903020162016300000000000040008000000000000001" + "006d"
    assert read_label(stored) == label
    with_user = bytes.fromhex("1b0302016201630000000000004000800000000000000102" + "6d65" + "006d")
    was = read_label(Encoded(DIRECT, with_user))
    assert was == replace(label, user="me"), "written while labels had a user, and told text from bytes"
    at_home = replace(label, home=("Café-1", 300))
    assert at_home.encoded().data.hex() == "4903020162016300000000000040008000000000000001" + (
        "07436166c3a92d31" + "ac02" + "006d"
    )
    assert read_label(at_home.encoded()) == at_home
    for broken in (b"", b"\x80\0\0", b"\x40\0\0", stored.data[:-8], Label(number=0).encoded().data + b"x"):
        with pytest.raises(CorruptData):
            read_label(Encoded(DIRECT, broken))
    assert event_id(bytes(16), Label(number=0)) == "de47c9b2-7eb8-5300-9bb5-f2c353e632c3"


def test_a_conflict_is_only_what_matches() -> None:
    store = World().store()
    seen = store.read(of("a", types="T"))
    store.append([event("a", kind="U")])
    assert store.append([event("a", kind="U")], fail_if=of("a", types="T"), after=seen.position).events
    store.append([event("a")])
    answer = store.try_append([event("b")], fail_if=of("a", types="T"), after=seen.position)
    assert isinstance(answer, Conflict)
    assert [each.type for each in answer.events] == ["T"]


@pytest.mark.parametrize("limit", [50, None])
def test_a_page_that_is_missing_in_the_middle_of_a_tag_is_corruption_and_no_fault_of_the_position(
    limit: int | None,
) -> None:
    world = World()
    store = world.store()
    while len(world.pages("a")) < 4:
        store.append([event("a", data=NOISE[:400])])
    gone = sorted(page.index for page in world.pages("a"))[1]
    world.tables.execute(Delete(table=TABLE, key=page_key("$tag-a", gone)))
    with pytest.raises(CorruptData):
        store.read(of("a"), limit=limit, direction="backward")


def test_a_position_that_goes_outside_has_seals_for_the_heads_of_all_tags_of_its_query() -> None:
    world = World()
    store = world.store()
    while not world.pages("b") or not world.pages("b")[-1].full:
        store.append([event("a", "b", data=NOISE[:400])])
    for tags in (("a", "b"), ("b", "c")):
        position = store.read(of(*tags)).position
        told = read_position(write_position(store.seal_position(position, writes=True)))
        outside = {**told.seen, **told.heads}["b"].token
        verified = store.verify_seals(told)
        inside = {**verified.seen, **verified.heads}["b"].token
        assert outside is not None
        assert inside is not None
        assert (bool(outside.seal), outside.of, bool(inside.of)) == (True, "", True)
