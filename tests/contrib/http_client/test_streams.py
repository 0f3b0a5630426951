"""Streams over HTTP: the outcomes, errors and values are those of the library."""

from __future__ import annotations

import inspect
import json
import uuid

import pytest

from epochal import (
    ANY,
    NO_STREAM,
    STREAM_EXISTS,
    Appended,
    AtVersion,
    Conflict,
    ConflictError,
    Event,
    Query,
    QueryItem,
    StreamAppend,
    StreamDeleted,
    Streams,
    Unfold,
    metadata,
    new_key,
)
from epochal.contrib.http_client.streams import HttpStreams
from epochal.errors import EventsPruned, InvalidInput, MissingBody, TooLarge, WrongExpectedVersion
from epochal.model.tokens import Token
from epochal.store.bulk import BulkAppend
from tests.contrib.http_client.memory_api import MemoryApi, paths

DOUBLE = Query(items=(QueryItem(tags=("seat:4A",)),))


@pytest.fixture
def memory() -> MemoryApi:
    return MemoryApi()


def of(*types: str) -> list[Event]:
    return [Event.json(kind, {"n": number}) for number, kind in enumerate(types)]


def test_an_append_is_answered_with_the_version_and_a_token_that_the_next_one_takes(
    memory: MemoryApi,
) -> None:
    streams = memory.streams
    first = streams.append("Cart-1", of("Opened", "Paid"), expected=NO_STREAM)
    assert (first.first, first.version, first.replayed) == (0, 2, False)
    assert first.capacity.write > 0
    assert isinstance(first.token, Token)
    second = streams.append("Cart-1", of("Sent"), expected=first.token)
    assert (second.first, second.version) == (2, 3)
    assert json.loads(memory.requests[-1].body)["expected"] == first.token.text()


def test_every_append_carries_a_uuid7_of_its_own_or_the_key_that_is_given(memory: MemoryApi) -> None:
    streams = memory.streams
    for _ in range(2):
        streams.append("Cart-1", of("A"))
    one, other = (uuid.UUID(request.headers["Idempotency-Key"]) for request in memory.requests)
    assert one != other
    assert {one.version, other.version} == {7}
    key = new_key("order-")
    assert not streams.append("Cart-2", of("A"), idempotency_key=key).replayed
    assert streams.append("Cart-2", of("A"), idempotency_key=key).replayed
    assert memory.requests[-1].headers["Idempotency-Key"] == key


def test_a_key_costs_no_capacity(memory: MemoryApi) -> None:
    bare = memory.api.append("Cart-1", "A").json["capacity"]["write"]
    assert memory.streams.append("Cart-2", of("A")).capacity.write == float(bare)


@pytest.mark.parametrize("expected", [NO_STREAM, AtVersion(0), AtVersion(7)])
def test_a_conflict_is_the_librarys_own_with_the_token_to_go_on_from(
    memory: MemoryApi, expected: object
) -> None:
    streams = memory.streams
    token = streams.append("Cart-1", of("Opened")).token
    with pytest.raises(WrongExpectedVersion) as caught:
        streams.append("Cart-1", of("Opened"), expected=expected)
    conflict = caught.value.outcome
    assert isinstance(conflict, Conflict)
    assert (conflict.version, conflict.token, conflict.deleted) == (1, token, False)
    assert streams.try_append("Cart-1", of("Opened"), expected=expected) == conflict
    assert streams.append("Cart-1", of("Paid"), expected=conflict.token).version == 2


def test_an_append_to_a_deleted_stream_is_refused_as_such(memory: MemoryApi) -> None:
    streams = memory.streams
    token = streams.append("Cart-1", of("Opened")).token
    with pytest.raises(ConflictError):
        streams.delete("Cart-1", expected=AtVersion(5))
    assert streams.delete("Cart-1", expected=token).done
    # Under a UUIDv7 of the millisecond of the deletion, nobody could tell whether a repeat had been appended before it.
    with pytest.raises(StreamDeleted):
        streams.append("Cart-1", of("Paid"), idempotency_key="after-the-deletion")
    state = streams.load("Cart-1")
    assert state is not None
    assert state.deleted
    assert [*streams.read("Cart-1")] == []
    assert isinstance(streams.try_delete("Cart-9"), Conflict)
    with pytest.raises(InvalidInput, match="nothing to delete"):
        streams.delete("Cart-1", expected=NO_STREAM)


def test_a_condition_over_tags_refuses_with_the_events_and_the_position_after_them(memory: MemoryApi) -> None:
    streams = memory.streams
    seat = [Event(type="Taken", data=b'{"by":"ann"}', tags=("seat:4A",))]
    streams.append("Booking-1", seat, fail_if=DOUBLE)
    conflict = streams.try_append("Booking-2", seat, fail_if=DOUBLE)
    assert isinstance(conflict, Conflict)
    assert [(event.type, event.data, event.stream) for event in conflict.events] == [
        ("Taken", b'{"by":"ann"}', "Booking-1")
    ]
    with pytest.raises(ConflictError, match="stored events match the condition: Taken"):
        streams.append("Booking-2", seat, fail_if=DOUBLE)
    done = streams.append("Booking-2", seat, fail_if=DOUBLE, after=conflict.position)
    assert set(done.position.seen) == {"seat:4A"}
    with pytest.raises(InvalidInput, match="must not be given without `fail_if`"):
        streams.append("Booking-2", seat, after=conflict.position)


@pytest.mark.parametrize(
    "body",
    [b"", b'{"total":1.10,"big":12345678901234567890123}', b"null", b'{"a": 1}', b"\xff\x00", b"text", b"-0"],
)
def test_bodies_come_back_as_they_were_sent(memory: MemoryApi, body: bytes) -> None:
    streams = memory.streams
    streams.append("Cart-1", [Event(type="A", data=body, meta=body)], unfolds=[Unfold(type="S", data=body)])
    (stored,) = memory.api.streams.read("Cart-1")
    assert (stored.data, stored.meta) == (body, body)
    shown = body.replace(b" ", b"")  # JSON comes compact
    (event,) = streams.read("Cart-1")
    state = streams.load("Cart-1")
    assert state is not None
    assert (event.data, event.meta, state.unfolds[0].data, state.events) == (shown, shown, shown, (event,))


def test_all_fields_of_an_event_arrive_and_come_back(memory: MemoryApi) -> None:
    event = Event(
        type="Paid",
        data=b"{}",
        timestamp="2013-01-01T05:17:00-05:00",
        correlation_id="c-1",
        causation_id="e-7",
        tags=("b:2", "a:1"),
    )
    with metadata(user="ada"):
        memory.streams.append("Cart-1", [event])
    (read,) = memory.streams.read("Cart-1")
    (stored,) = memory.api.streams.read("Cart-1")
    assert (read.meta, read.timestamp, read.tags) == (
        b'{"user":"ada"}',
        "2013-01-01T10:17:00.0000000+00:00",
        ("a:1", "b:2"),
    )
    assert (read.correlation_id, read.causation_id, read.id) == ("c-1", "e-7", stored.id)


def test_several_streams_get_all_or_nothing(memory: MemoryApi) -> None:
    streams = memory.streams
    both = [
        StreamAppend(stream="Account-a", events=of("Withdrawn"), expected=NO_STREAM),
        StreamAppend(stream="Account-b", events=of("Deposited"), expected=AtVersion(0)),
    ]
    done = streams.append_all(both)
    assert {name: one.version for name, one in done.streams.items()} == {"Account-a": 1, "Account-b": 1}
    with pytest.raises(WrongExpectedVersion) as caught:
        streams.append_all(both)
    assert set(caught.value.outcome.streams) <= {"Account-a", "Account-b"}
    streams.delete("Account-a")
    with pytest.raises(StreamDeleted):
        streams.append_all(
            [
                StreamAppend(stream="Account-a", events=of("X")),
                StreamAppend(stream="Account-c", events=of("X")),
            ]
        )


@pytest.mark.slow
@pytest.mark.parametrize(("count", "keyed"), [(2, True), (99, True), (100, False)])
def test_a_hundred_streams_leave_no_room_for_a_key(memory: MemoryApi, count: int, keyed: bool) -> None:
    appends = [StreamAppend(stream=f"Account-{number}", events=of("A")) for number in range(count)]
    assert len(memory.streams.append_all(appends).streams) == count
    assert ("Idempotency-Key" in memory.requests[0].headers) is keyed


def test_appends_each_for_themselves_have_an_answer_each(memory: MemoryApi) -> None:
    streams = memory.streams
    streams.append("Cart-1", of("Opened"))
    made, refused, malformed = streams.append_each(
        [
            BulkAppend(stream="Cart-2", events=of("Opened"), expected=NO_STREAM),
            BulkAppend(stream="Cart-1", events=of("Opened"), expected=NO_STREAM),
            BulkAppend(stream="Cart-3", events=[Event(type="A", tags=("a:1",), id=str(uuid.uuid4()))]),
        ]
    )
    assert isinstance(made, Appended)
    assert made.version == 1
    assert isinstance(refused, Conflict)
    assert refused.version == 1
    assert isinstance(malformed, InvalidInput)
    keys = [one["idempotencyKey"] for one in json.loads(memory.requests[-1].body)["appends"]]
    assert len({*keys}) == 3
    assert streams.append_each([]) == []
    with pytest.raises(TooLarge, match="at most 500"):
        streams.append_each([BulkAppend(stream="A-1", events=of("A"))] * 501)
    with pytest.raises(InvalidInput, match="takes"):
        streams.append_each([BulkAppend(stream="A-1", events=of("A"), takes=bool)])


@pytest.mark.slow
def test_a_read_follows_all_pages_either_way_and_stops_at_its_limit() -> None:
    memory = MemoryApi(held=False)
    streams = memory.streams
    for start in range(0, 2_500, 500):
        streams.append("Log-1", [Event(type=f"T{number % 2}") for number in range(start, start + 500)])
    assert [event.index for event in streams.read("Log-1")] == [*range(2_500)]
    assert [event.index for event in streams.read("Log-1", direction="backward", limit=3)] == [
        2_499,
        2_498,
        2_497,
    ]
    assert [event.index for event in streams.read("Log-1", start=1_000, limit=1_200)] == [
        *range(1_000, 2_200)
    ]
    assert [event.index for event in streams.read("Log-1", types=["T1"], limit=2)] == [1, 3]
    memory.requests.clear()
    state = streams.load("Log-1", start=0)
    assert state is not None
    assert [event.index for event in state.events] == [*range(2_500)]
    assert paths(memory)[0] == "GET /streams/Log-1?events=true"
    assert streams.load("Log-0", start=0) is None
    page = streams.page("Log-1", limit=2)
    assert (page.next, page.version, page.exists) == (2, 2_500, True)
    assert not streams.page("Log-0").exists


def test_pruned_events_are_an_error_where_they_are_needed(memory: MemoryApi) -> None:
    streams = memory.streams
    streams.append("Log-1", of(*"ABCDEF"))
    pruned = streams.prune("Log-1", 4)
    assert pruned is not None
    assert (pruned.low_water, pruned.done) == (4, True)
    assert streams.prune("Log-0", 4) is None
    assert [event.index for event in streams.read("Log-1")] == [4, 5]
    assert [event.index for event in streams.read("Log-1", direction="backward")] == [5, 4]
    for needing in (lambda: [*streams.read("Log-1", start=3)], lambda: streams.load("Log-1", start=0)):
        with pytest.raises(EventsPruned) as caught:
            needing()
        assert caught.value.low_water == 4
    state = streams.load("Log-1", start=4)
    assert state is not None
    assert [event.type for event in state.events] == ["E", "F"]
    with pytest.raises(InvalidInput, match="beyond the end"):
        streams.load("Log-1", start=7)


def test_a_request_that_breaks_a_rule_names_the_field_and_the_rule(memory: MemoryApi) -> None:
    with pytest.raises(InvalidInput) as caught:
        memory.streams.append("Cart-1", [Event(type="A", timestamp="yesterday")])
    assert caught.value.field == "events[0].timestamp"
    with pytest.raises(TooLarge) as large:
        memory.streams.append("Cart-1", of(*["A"] * 1_001))
    assert (large.value.size, large.value.limit) == (1_001, 1_000)
    with pytest.raises(InvalidInput, match="may hold only"):
        memory.streams.append("Cart 1", of("A"))
    key = new_key()
    memory.streams.append("Cart-1", of("A"), idempotency_key=key)
    with pytest.raises(InvalidInput) as reused:
        memory.streams.append("Cart-1", of("B"), idempotency_key=key)
    assert reused.value.field == "idempotency_key"
    with pytest.raises(InvalidInput, match="visible ASCII"):
        memory.streams.append("Cart-1", of("A"), idempotency_key="a key")


@pytest.mark.slow
def test_bodies_that_no_request_holds_go_to_the_bucket_and_come_back_whole() -> None:
    memory = MemoryApi(held=False)
    streams, small = memory.streams, b'{"n":1}'
    large, larger = bytes(range(256)) * 8_000, b"\xfe" * 2_500_000
    events = [Event(type="A", data=body) for body in (small, large, larger)]
    streams.append("Blob-1", events)
    assert [path.partition("?")[0] for path in paths(memory)][:2] == [
        "POST /bodies",
        f"PUT {memory.requests[1].url.partition('?')[0]}",
    ]
    assert len(memory.requests) == 3, "the largest body went, and the rest fits"
    assert [event.data for event in streams.read("Blob-1")] == [small, large, larger]
    memory.api.bodies.objects.clear()
    with pytest.raises(MissingBody):
        [*streams.read("Blob-1")]


@pytest.mark.parametrize(
    "method", ["append", "try_append", "append_all", "load", "read", "page", "prune", "delete"]
)
def test_a_method_of_the_same_name_takes_the_same_arguments(method: str) -> None:
    """Whoever changes from one store to the other changes no call, unless the API lacks what it asks for."""
    ours = inspect.signature(getattr(HttpStreams, method)).parameters
    theirs = inspect.signature(getattr(Streams, method)).parameters
    own = {"load": {"events"}, "read": {"page_size"}}.get(method, set())
    assert {*ours} - own <= {*theirs}
    for name in {*ours} - own:
        assert (ours[name].default, ours[name].kind) == (theirs[name].default, theirs[name].kind), name


def test_an_expectation_that_is_any_is_not_sent(memory: MemoryApi) -> None:
    memory.streams.append("Cart-1", of("A"), expected=ANY)
    assert "expected" not in json.loads(memory.requests[0].body)
    memory.streams.append("Cart-1", of("A"), expected=STREAM_EXISTS)
    assert json.loads(memory.requests[1].body)["expected"] == "stream_exists"
