"""Appends to named streams that concern tags: what is there afterwards, and what is told of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from epochal import NO_STREAM, ConflictError, Event, Query, QueryItem, StreamAppend, Unfold, metadata
from epochal.errors import InvalidInput, StreamDeleted, TooLarge, Unavailable, WrongExpectedVersion
from epochal.layout.tables import archives, store_tables
from epochal.plan.failures import Lost
from epochal.plan.ops import Op, Reply, Transact, TransactGet
from epochal.store.also import put
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_deployment, memory_streams, memory_tables

COURSE, TERM = "course:dcb", "term:1"


def enrolled(student: str, *tags: str, data: bytes | None = None) -> Event:
    return Event(type="Enrolled", data=data or student.encode(), meta=b"m", tags=tags or (COURSE,))


def of(*tags: str) -> Query:
    return Query(items=(QueryItem(tags=frozenset(tags)),))


def test_a_query_brings_events_of_streams_that_carry_the_tag_in_one_order_with_their_stream_and_index() -> (
    None
):
    streams = memory_streams()
    streams.append("Student-1", [Event(type="Registered"), enrolled("1")])
    streams.append("Student-2", [enrolled("2", COURSE, TERM)])
    streams.append("Student-1", [enrolled("1 again", TERM)])

    found = streams.tagged.read(of(COURSE)).events
    assert [(each.stream, each.index, each.data, each.tags) for each in found] == [
        ("Student-1", 1, b"1", (COURSE,)),
        ("Student-2", 0, b"2", (COURSE, TERM)),
    ]
    term = streams.tagged.read(of(TERM)).events
    assert [(each.stream, each.index) for each in term] == [("Student-2", 0), ("Student-1", 2)]
    assert [each.key for each in (*found, term[1])] == sorted(each.key for each in (*found, term[1]))


def test_a_stream_brings_its_events_with_their_tags_and_the_ids_that_queries_show() -> None:
    streams = memory_streams()
    told = streams.append("Student-1", [Event(type="Registered"), enrolled("1", TERM, COURSE, TERM)])

    registered, event = streams.read("Student-1")
    (found,) = streams.tagged.read(of(COURSE)).events
    assert (registered.tags, registered.id) == ((), "")
    assert (event.tags, event.id, event.key) == ((COURSE, TERM), found.id, found.key)
    assert (event.data, event.meta, event.timestamp) == (found.data, found.meta, found.timestamp)
    assert (told.first, told.version, told.versions) == (0, 2, {COURSE: 1, TERM: 1})
    assert [(each.stream, each.index, each.id) for each in told.events] == [("Student-1", 1, found.id)]
    state = streams.load("Student-1")
    assert state is not None
    assert [each.tags for each in state.events] == [(), (COURSE, TERM)]


def test_an_append_is_refused_where_the_stream_is_not_as_expected_or_an_event_matches() -> None:
    streams = memory_streams()
    seen = streams.tagged.read(of(COURSE))
    streams.append("Student-1", [enrolled("1")], expected=NO_STREAM, fail_if=of(COURSE), after=seen.position)

    with pytest.raises(WrongExpectedVersion):
        streams.append("Student-1", [enrolled("1")], expected=NO_STREAM)
    with pytest.raises(ConflictError, match="Enrolled") as refused:
        streams.append("Student-2", [enrolled("2")], fail_if=of(COURSE), after=seen.position)
    outcome = refused.value.outcome
    assert [(each.stream, each.index) for each in outcome.events] == [("Student-1", 0)]
    told = streams.append("Student-2", [enrolled("2")], fail_if=of(COURSE), after=outcome.position)
    streams.append("Student-3", [enrolled("3")], fail_if=of(COURSE), after=told.position)
    assert streams.tagged.count(COURSE) == 3
    assert list(streams.read("Student-9")) == []


def test_events_without_tags_can_rest_on_a_query() -> None:
    streams = memory_streams()
    streams.append("Student-1", [enrolled("1")])

    with pytest.raises(ConflictError):
        streams.append("Bill-1", [Event(type="Billed")], fail_if=of(COURSE))
    after = streams.tagged.read(of(COURSE)).position
    assert streams.append("Bill-1", [Event(type="Billed")], fail_if=of(COURSE), after=after).version == 1
    assert streams.tagged.count(COURSE) == 1


def test_one_append_to_several_streams_is_one_append_of_each_tag() -> None:
    streams = memory_streams()
    told = streams.append_all(
        [
            StreamAppend(stream="Student-1", events=[Event(type="Moved"), enrolled("1")], expected=NO_STREAM),
            StreamAppend(stream="Student-2", events=[enrolled("2")]),
        ],
        fail_if=of(COURSE),
    )
    assert {name: (each.first, each.version) for name, each in told.streams.items()} == {
        "Student-1": (0, 2),
        "Student-2": (0, 1),
    }
    assert [[each.index for each in one.events] for one in told.streams.values()] == [[1], [0]]
    assert told.versions == {COURSE: 2}
    found = streams.tagged.read(of(COURSE)).events
    assert [(each.stream, each.index) for each in found] == [("Student-1", 1), ("Student-2", 0)]
    assert [each.id for each in found] == [
        each.id for name in ("Student-1", "Student-2") for each in streams.read(name) if each.tags
    ]
    again = [StreamAppend(stream=name, events=[enrolled(name)]) for name in ("Student-1", "Student-3")]
    with pytest.raises(ConflictError) as refused:
        streams.append_all(again, fail_if=of(COURSE))
    assert [each.stream for each in refused.value.outcome.events] == ["Student-1", "Student-2"]
    streams.append_all(again, fail_if=of(COURSE), after=told.position)


@pytest.mark.parametrize("several", [False, True])
def test_a_repeat_under_a_key_is_told_what_the_first_call_was_whatever_it_expects(several: bool) -> None:
    streams = memory_streams()

    def call(*tags: str, **how: object) -> object:
        first = StreamAppend(stream="Student-1", events=[enrolled("1", *tags)], expected=NO_STREAM)
        if several:
            both = [first, StreamAppend(stream="Student-2", events=[enrolled("2")])]
            told = streams.append_all(both, idempotency_key="k", **how)  # type: ignore[arg-type]
            return {name: (each.first, each.version, each.token.etag) for name, each in told.streams.items()}
        one = streams.append(
            "Student-1",
            first.events,
            expected=NO_STREAM,
            idempotency_key="k",
            **how,  # type: ignore[arg-type]
        )
        return one.first, one.version, one.token.etag

    first = call()
    assert call() == call(fail_if=of(COURSE)) == first
    streams.prune("Student-1", 1)
    assert call() == first
    with pytest.raises(InvalidInput, match="other contents"):
        call(TERM)
    assert streams.tagged.count(COURSE) == 1 + several


def test_a_key_is_one_for_a_stream_with_a_condition_and_without() -> None:
    streams, events = memory_streams(), [Event(type="Billed")]
    first = streams.append("Bill-1", events, fail_if=of(COURSE), idempotency_key="k")
    assert streams.append("Bill-1", events, idempotency_key="k").replayed
    assert streams.append("Bill-2", events, idempotency_key="l").version == 1
    streams.append("Bill-2", events)
    assert streams.append("Bill-2", events, fail_if=of(COURSE), idempotency_key="l").replayed
    assert first.version == 1
    assert [len(list(streams.read(name))) for name in ("Bill-1", "Bill-2")] == [1, 2]
    with pytest.raises(InvalidInput, match="other contents"):
        streams.append("Bill-1", [Event(type="Paid")], fail_if=of(COURSE), idempotency_key="k")


@pytest.mark.parametrize("size", [10, 5_000])
def test_a_tag_keeps_its_events_when_their_stream_is_pruned_or_deleted(size: int) -> None:
    streams = memory_streams()
    data = bytes(range(1, 251)) * (size // 10)
    streams.append("Student-1", [enrolled("1", COURSE, TERM, data=data[:size])])
    streams.append("Student-2", [enrolled("2", COURSE, data=data[:size])])
    before = [streams.tagged.read(of(tag)).events for tag in (COURSE, TERM)]

    streams.prune("Student-1", 1)
    streams.delete("Student-2")
    assert list(streams.read("Student-1")) == list(streams.read("Student-2")) == []
    assert [streams.tagged.read(of(tag)).events for tag in (COURSE, TERM)] == before
    assert before[0][0].data == data[:size]
    with pytest.raises(ConflictError):
        streams.append("Student-3", [enrolled("3")], fail_if=of(COURSE))


def test_tags_of_events_with_a_home_and_without_are_in_one_order_and_store() -> None:
    store = memory_deployment(memory_tables(), tagged_types=("Enrolled",))
    streams, tagged = store.streams, store.tagged
    streams.append("Student-1", [enrolled("1"), Event(type="Enrolled")])

    assert [each.stream for each in tagged.read(of(COURSE)).events] == ["Student-1"]
    by_type = Query(items=(QueryItem(types=frozenset({"Enrolled"})),))
    assert [each.index for each in tagged.read(by_type).events] == [0]
    with pytest.raises(ConflictError):
        tagged.streams.append("Student-2", [enrolled("2")], fail_if=by_type)
    assert tagged.streams.tagged.type_heads == streams.tagged.type_heads == tagged.type_heads


def test_what_cannot_be_is_refused_by_name_and_nothing_is_written() -> None:
    streams = memory_streams()
    cases: list[tuple[dict[str, Any], str]] = [
        ({"events": [enrolled("1", "$all")]}, "events[0].tags"),
        ({"events": [Event(type="E"), Event(type="a\nb", tags=("t",))]}, "events[1].type"),
        ({"events": [enrolled("1")], "after": streams.tagged.read(of(COURSE)).position}, "after"),
        (
            {"events": [Event(type="E", id="0189f0a5-0000-7000-8000-000000000001", tags=("t",))]},
            "events[0].id",
        ),
        ({"events": [enrolled("1")], "fail_if": "all"}, "fail_if"),
        ({"events": [enrolled("1", *(f"t:{n}" for n in range(100)))]}, "events"),
    ]
    for wrong, field in cases:
        with pytest.raises(InvalidInput) as refused:
            streams.append("Student-1", **wrong)
        assert refused.value.field == field
        with pytest.raises(InvalidInput):
            streams.append_all(
                [StreamAppend(stream="Student-1", events=wrong["events"])],
                **{name: value for name, value in wrong.items() if name != "events"},
            )
    assert streams.load("Student-1") is None
    ninety = [enrolled("1", *(f"t:{n}" for n in range(98)))]
    assert streams.append("Student-1", ninety, fail_if=of("u")).version == 1
    with pytest.raises(TooLarge, match="101 items, at most 100"):
        streams.append("Student-1", ninety, fail_if=of("u"), idempotency_key="k")


def units(data: bytes, *tags: str) -> float:
    event = Event(type="Enrolled", data=data, tags=tags)
    return memory_streams().append("Student-1", [event], expected=NO_STREAM).capacity.write


def test_an_append_to_a_stream_and_tags_costs_a_transaction_of_them() -> None:
    small, large = b"x" * 300, random.Random(5).randbytes(2_000)
    assert [units(small), units(small, COURSE), units(small, COURSE, TERM)] == [1, 4, 6]
    # Large bodies are in the stream, and under the first of the tags; others say where that is.
    assert [units(large), units(large, COURSE), units(large, COURSE, TERM)] == [3, 12, 14]


def test_a_deleted_stream_takes_no_events_under_its_tags_either() -> None:
    streams = memory_streams()
    streams.append("Student-1", [enrolled("1")])
    streams.delete("Student-1")

    with pytest.raises(StreamDeleted):
        streams.append("Student-1", [enrolled("1")], fail_if=of(TERM))
    assert streams.tagged.count(COURSE) == 1
    streams.append("Student-2", [enrolled("2")])
    streams.delete("Student-2", leave_open=True)
    assert streams.append("Student-2", [enrolled("2")]).first == 1
    assert [(each.stream, each.index) for each in streams.tagged.read(of(COURSE)).events] == [
        ("Student-1", 0),
        ("Student-2", 0),
        ("Student-2", 1),
    ]


def test_pages_of_streams_and_tags_that_have_no_room_are_left_each_by_itself() -> None:
    streams, luck = memory_streams(), random.Random(7)
    data = [luck.randbytes(luck.choice((20, 3_000, 120_000))) for _ in range(40)]
    for number, each in enumerate(data):
        streams.append(f"Student-{number % 2}", [enrolled("", *(COURSE, TERM)[: 1 + number % 2], data=each)])

    assert [event.data for event in streams.tagged.read(of(COURSE)).events] == data
    assert [event.data for event in streams.tagged.read(of(TERM)).events] == data[1::2]
    for student in (0, 1):
        assert [event.data for event in streams.read(f"Student-{student}")] == data[student::2]


@pytest.mark.parametrize("applied", [False, True])
def test_an_append_whose_answer_is_lost_is_made_once(applied: bool) -> None:
    streams = memory_streams()
    streams.append("Student-1", [enrolled("1")])
    before, lost = streams.driver.execute, list[Op]()

    def losing(op: Op) -> Reply:
        if not isinstance(op, Transact) or lost:
            return before(op)
        lost.append(op)
        if applied:
            before(op)
        raise Lost("no answer")

    seen = streams.tagged.read(of(COURSE)).position
    driver = replace(streams.driver, execute=losing, sleep=lambda _: None)
    told = streams.on(driver).append("Student-1", [enrolled("1")], fail_if=of(COURSE), after=seen)
    assert (told.first, told.version, told.versions, len(lost)) == (1, 2, {COURSE: 2}, 1)
    assert streams.tagged.count(COURSE) == 2


@pytest.mark.parametrize("names", [("Student-1",), ("Student-1", "Student-2")])
def test_what_is_told_under_a_key_after_a_lost_response_is_what_would_have_been_told(
    names: tuple[str, ...],
) -> None:
    def told(lost: list[str]) -> tuple[object, ...]:
        streams = replace(memory_streams(), fresh=bytes, now=lambda: 1_700_000_000_000_000_000)
        before = streams.driver.execute

        def losing(op: Op) -> Reply:
            reply = before(op)
            if lost and isinstance(op, Transact):
                raise Lost(lost.pop())
            return reply

        after = streams.tagged.read(of(COURSE)).position
        losing_some = streams.on(replace(streams.driver, execute=losing, sleep=lambda _: None))
        appends = [StreamAppend(stream=name, events=[enrolled(name)]) for name in names]
        made = losing_some.append_all(appends, fail_if=of(COURSE), after=after, idempotency_key="k")
        streams.append("Student-9", [enrolled("9")], fail_if=of(COURSE), after=made.position)
        return made.streams, made.versions, made.position

    assert told(["no answer"]) == told([])


def test_a_repeat_under_a_key_may_have_other_metadata_around_it() -> None:
    streams, appends = (
        memory_streams(),
        [StreamAppend(stream=name, events=[enrolled("1")]) for name in ("Student-2", "Student-3")],
    )
    for call, replayed in (("first", False), ("second", True)):
        with metadata(correlation_id=call, by=call), pytest.raises(InvalidInput, match="JSON object"):
            streams.append("Student-1", [enrolled("1")], idempotency_key="k")
        with metadata(correlation_id=call):
            one = streams.append("Student-1", [enrolled("1")], idempotency_key="k")
            several = streams.append_all(appends, idempotency_key="k").streams
        assert [each.replayed for each in (one, *several.values())] == [replayed] * 3
    assert {each.correlation_id for each in streams.tagged.read(of(COURSE)).events} == {"first"}


def test_of_tags_nothing_is_asked_where_streams_are_elsewhere_and_it_is_counted_where_it_is() -> None:
    streams = memory_streams()
    appends = [
        StreamAppend(stream=name, events=[enrolled(name)], expected=NO_STREAM)
        for name in ("Student-1", "Student-2")
    ]
    streams.append_all(appends, idempotency_key="k")

    before = streams.driver.meter.requests
    refused = streams.try_append_all(appends)
    again = streams.try_append_all(appends, idempotency_key="k")
    assert refused.capacity.requests + again.capacity.requests == streams.driver.meter.requests - before
    assert refused.capacity.requests == streams.try_append_all(appends[:1]).capacity.requests


def test_a_repeat_whose_tags_are_not_answered_for_may_have_been_applied() -> None:
    streams = memory_streams()
    streams.append("Student-1", [enrolled("1")], idempotency_key="k")
    before = streams.driver.execute

    written: list[Op] = []

    def unanswered(op: Op) -> Reply:
        if written and not isinstance(op, TransactGet):
            raise Lost("no answer")
        written.extend([op] if isinstance(op, Transact) else [])
        return before(op)

    naps = [0.0]
    driver = replace(
        streams.driver, execute=unanswered, sleep=naps.append, clock=lambda: sum(naps)
    )  # the clock of a wall would have it try for as long as it is patient
    with pytest.raises(Unavailable) as raised:
        streams.on(driver).append("Student-1", [enrolled("1")], idempotency_key="k")
    assert raised.value.maybe_applied


def test_what_goes_with_it_counts_among_its_items() -> None:
    streams = memory_streams(memory_tables(own="id"))
    also = [put("own", {"id": str(number)}) for number in range(98)]
    streams.append("Student-1", [enrolled("1")], also=also)
    with pytest.raises(TooLarge, match="events: 101 items, at most 100 allowed: .*`also`") as one:
        streams.append("Student-1", [enrolled("1")], also=also, idempotency_key="k")
    two = [StreamAppend(stream=name, events=[enrolled(name)]) for name in ("Student-1", "Student-2")]
    with pytest.raises(TooLarge) as several:
        streams.append_all(two, also=also)
    assert one.value.field == several.value.field == "events"


@pytest.mark.parametrize("key", ["", "\ud800", 5])
def test_a_key_that_is_none_is_refused_by_its_name(key: Any) -> None:
    streams = memory_streams(memory_tables(own="id"))
    calls: list[Callable[[], object]] = [
        lambda: streams.append("Student-1", [enrolled("1")], idempotency_key=key),
        lambda: streams.append("Bill-1", [Event(type="Billed")], fail_if=of(COURSE), idempotency_key=key),
        lambda: streams.append(
            "Bill-1", [Event(type="Billed")], also=[put("own", {"id": "1"})], idempotency_key=key
        ),
        lambda: streams.append_all(
            [StreamAppend(stream="Student-1", events=[enrolled("1")])], idempotency_key=key
        ),
    ]
    for call in calls:
        with pytest.raises(InvalidInput, match="idempotency_key: must be"):
            call()


def test_unfolds_under_the_key_of_a_conditional_append_are_never_answered_with_a_state_that_was_not() -> None:
    streams, unfolds = memory_streams(), [Unfold(type="Snapshot")]
    for first, then in (({"fail_if": of(COURSE)}, {}), ({}, {"fail_if": of(COURSE)})):
        stream = f"Bill-{len(first)}"
        streams.append(stream, [], unfolds=unfolds, idempotency_key="k", **first)
        with pytest.raises(InvalidInput, match="idempotency_key: was already used for an append with"):
            streams.append(stream, [], unfolds=unfolds, idempotency_key="k", **then)


def test_large_bodies_are_in_the_bucket_once_for_streams_and_tags() -> None:
    streams, body = memory_streams(), random.Random(3).randbytes(600_000)
    streams.append("Student-1", [enrolled("1", COURSE, TERM, data=body)])

    (read,), (found,) = streams.read("Student-1"), streams.tagged.read(of(TERM)).events
    assert read.data == found.data == body


def test_metadata_of_a_block_and_times_of_events_are_the_same_in_streams_and_under_tags() -> None:
    streams = memory_streams()
    happened = Event(type="Enrolled", tags=(COURSE,), timestamp="2020-01-02T03:04:05Z")
    with metadata(correlation_id="c", user="ada"):
        streams.append("Student-1", [happened, happened])

    first, _ = streams.read("Student-1")
    found, _ = streams.tagged.read(of(COURSE)).events
    assert (found.timestamp, found.correlation_id, found.meta) == (first.timestamp, "c", first.meta)
    assert first.timestamp.startswith("2020-01-02T03:04:05")


def test_an_archive_has_the_tags_of_what_it_keeps_and_either_way_into_a_store_reads_it() -> None:
    tables = MemoryTables({spec.kind: spec for spec in (*store_tables(), *archives())})
    store = memory_deployment(tables, streams_archive_table="streams-archive")
    store.streams.append("Student-1", [enrolled("1"), enrolled("1", TERM)])
    before = list(store.streams.read("Student-1"))

    store.streams.archive_and_prune("Student-1", 2)
    for streams in (store.streams, store.tagged.streams, store.streams.tagged.streams):
        assert list(streams.read("Student-1")) == before
    assert [each.tags for each in before] == [(COURSE,), (TERM,)]


@pytest.mark.parametrize("events", [0, 1])
def test_a_key_of_an_append_alone_is_refused_to_one_on_a_query_that_writes_something_else(
    events: int,
) -> None:
    streams = memory_streams()
    streams.append("Bill-1", [Event(type="Billed")], idempotency_key="k")
    unfolds = [Unfold(type="Total", data=b"1")] * (1 - events)
    with pytest.raises(InvalidInput, match="idempotency_key: was already used"):
        streams.append(
            "Bill-1",
            [Event(type="Paid")] * events,
            unfolds=unfolds or None,
            fail_if=of(COURSE),
            idempotency_key="k",
        )
    state = streams.load("Bill-1")
    assert state is not None
    assert ([event.type for event in state.events], state.unfolds) == (["Billed"], ())
