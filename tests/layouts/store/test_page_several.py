"""Appends to several streams of pages at once: what they cost, what stands in their way, what a lost answer leaves."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from epochal import (
    NO_STREAM,
    STREAM_EXISTS,
    Appended,
    AtVersion,
    Conflict,
    Event,
    OutcomeUndetermined,
    StreamAppend,
    StreamDeleted,
    Unfold,
)
from epochal.contrib.equinox import memory_tips
from epochal.errors import InvalidInput, TooLarge, WrongExpectedVersion
from epochal.layout.outcomes import conflict_at
from epochal.model.capacity import Capacity
from epochal.model.outcomes import Undetermined
from epochal.model.tokens import Token, parse_token
from epochal.pages import attempts, writes
from epochal.pages.batch import packed
from epochal.pages.commit import moved_heads
from epochal.pages.items import read_page, state_of
from epochal.pages.layout import Pages
from epochal.pages.reading import load_head
from epochal.pages.several import append_all_on
from epochal.plan.failures import Lost
from epochal.plan.ops import Op, Put, Reply, Transact, TransactGet, Update
from epochal.store.encoding import BodyCodec
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_streams

E = Event(type="Moved", data=b'{"amount": 1}')
A, B, C = "Account-a", "Account-b", "Account-c"


@pytest.fixture
def tables() -> MemoryTables:
    return tables_of(memory_streams())


@pytest.fixture
def streams(tables: MemoryTables) -> Streams:
    return memory_streams(tables)


def tables_of(streams: Streams) -> MemoryTables:
    tables: MemoryTables = streams.driver.execute.__self__  # type: ignore[attr-defined]
    return tables


def watched(streams: Streams) -> tuple[Streams, list[Op]]:
    """The same store, and the requests that it makes."""
    sent: list[Op] = []

    def execute(op: Op) -> Reply:
        sent.append(op)
        return streams.driver.execute(op)

    return streams.on(replace(streams.driver, execute=execute)), sent


def losing(streams: Streams, meanwhile: Callable[[], object], *, arrives: bool = True) -> Streams:
    """The same store, whose first transaction is applied, or never arrives; others act before it is sent again."""
    lost = iter([True])

    def execute(op: Op) -> Reply:
        if not isinstance(op, Transact) or not next(lost, False):
            return streams.driver.execute(op)
        if arrives:
            streams.driver.execute(op)
        meanwhile()
        raise Lost("the test's fault")

    return streams.on(replace(streams.driver, execute=execute, sleep=lambda _: None))


def types(streams: Streams, stream: str) -> list[str]:
    return [event.type for event in streams.read(stream)]


def both(*events: Event, **fields: object) -> list[StreamAppend]:
    return [StreamAppend(stream=stream, events=events or (E,), **fields) for stream in (A, B)]  # type: ignore[arg-type]


def filled(streams: Streams, stream: str) -> Token:
    """A token of a page that is full."""
    large = Event(type="Large", data=bytes(range(256)) * 4)
    token = streams.append(stream, [large]).token
    while not (state := state_of(token.etag or "")) or not state.full:
        token = streams.append(stream, [large], expected=token).token
    return token


def test_each_stream_gets_its_own_and_a_token_to_go_on(streams: Streams) -> None:
    streams.append(B, [E])

    made = streams.append_all(
        [
            StreamAppend(
                stream=A, events=[E, E], unfolds=[Unfold(type="Sum", data=b"2")], expected=NO_STREAM
            ),
            StreamAppend(stream=B, events=[E], expected=AtVersion(version=1)),
            StreamAppend(stream=C, unfolds=[Unfold(type="Sum", data=b"0")]),
        ]
    )

    assert {name: (each.first, each.version) for name, each in made.streams.items()} == {
        A: (0, 2),
        B: (1, 2),
        C: (0, 0),
    }
    for name, each in made.streams.items():
        state = streams.load(name)
        assert state is not None
        assert state.token == each.token
    again = streams.append_all(
        [StreamAppend(stream=name, events=[E], expected=each.token) for name, each in made.streams.items()]
    )
    assert [each.version for each in again.streams.values()] == [3, 3, 1]


def test_on_tokens_it_is_one_request_whether_pages_are_full_or_not(streams: Streams) -> None:
    tokens = {A: filled(streams, A), B: streams.append(B, [E]).token}
    store, sent = watched(streams)

    store.append_all([StreamAppend(stream=name, events=[E], expected=tokens[name]) for name in (A, B)])

    (transaction,) = sent
    assert isinstance(transaction, Transact)
    assert [type(write) for write in transaction.writes] == [Put, Update]


def test_one_stream_alone_is_no_transaction(streams: Streams) -> None:
    store, sent = watched(streams)

    made = store.append_all([StreamAppend(stream=A, events=[E], expected=NO_STREAM)])

    assert [type(op) for op in sent] == [Put]
    assert made.streams[A].version == 1
    refused = store.try_append_all([StreamAppend(stream=A, events=[E], expected=NO_STREAM)])
    assert refused == Conflict(streams={A: Conflict(version=1, token=made.streams[A].token)})


def test_stamps_share_what_tells_appends_apart_and_increase_along_every_stream(
    streams: Streams, tables: MemoryTables
) -> None:
    late, early = (
        replace(streams, now=lambda: 2_000_000_000_000_000_000),
        replace(streams, now=lambda: 10**18),
    )
    late.append(A, [E])

    early.append_all(both())

    pages = {page.stream: page for page in map(read_page, tables.items("streams"))}
    first, second = pages[A].frames
    assert first.stamp[:8] < second.stamp[:8]
    assert second.stamp[8:] == pages[B].frames[-1].stamp[8:]
    assert pages[B].frames[-1].stamp[:8] < first.stamp[:8], (
        "no clock that is fast is passed on to other streams"
    )


def test_a_conflict_names_the_streams_in_the_way_and_writes_nothing(streams: Streams) -> None:
    stale = {name: streams.append(name, [E]).token for name in (A, B, C)}
    now = {name: streams.append(name, [E]).token for name in (A, C)}

    def move(expected: dict[str, Token]) -> list[StreamAppend]:
        return [StreamAppend(stream=name, events=[E], expected=token) for name, token in expected.items()]

    outcome = streams.try_append_all(move(stale))

    there = {name: Conflict(version=2, token=token) for name, token in now.items()}
    assert outcome == Conflict(streams=there)
    assert [len(types(streams, name)) for name in (A, B, C)] == [2, 1, 2]
    with pytest.raises(WrongExpectedVersion, match=rf"{A}: expected version 1") as raised:
        streams.append_all(move(stale))
    assert raised.value.outcome == outcome
    assert raised.value.capacity == raised.value.outcome.capacity != Capacity()
    assert isinstance(streams.try_append_all(move(stale | now)), Appended)


@pytest.mark.parametrize("expected", [NO_STREAM, AtVersion(version=3)])
def test_what_is_read_first_and_is_not_as_expected_is_told_without_a_write(
    streams: Streams, expected: AtVersion
) -> None:
    streams.append(A, [E])
    store, sent = watched(streams)

    outcome = store.try_append_all(
        [StreamAppend(stream=A, events=[E], expected=expected), StreamAppend(stream=B, events=[E])]
    )

    assert isinstance(outcome, Conflict)
    assert list(outcome.streams) == [A]
    assert streams.load(B) is None
    assert any(isinstance(op, Transact) for op in sent) == (expected is NO_STREAM)


def test_a_stream_that_was_deleted_refuses_all_of_it(streams: Streams) -> None:
    streams.append(A, [E])
    streams.delete(A)

    with pytest.raises(StreamDeleted, match=A):
        streams.append_all(both())
    assert streams.load(B) is None


def test_any_version_goes_on_where_another_was_faster(streams: Streams) -> None:
    streams.append(A, [E])
    other = iter([True])

    def execute(op: Op) -> Reply:
        if isinstance(op, Transact) and next(other, False):
            streams.append(A, [Event(type="Other")])
        return streams.driver.execute(op)

    made = streams.on(replace(streams.driver, execute=execute)).append_all(
        [StreamAppend(stream=A, events=[E], expected=STREAM_EXISTS), StreamAppend(stream=B, events=[E])]
    )

    assert [each.version for each in made.streams.values()] == [3, 1]
    assert types(streams, A) == ["Moved", "Other", "Moved"]


def test_a_batch_that_a_page_does_not_take_closes_it_first(streams: Streams, tables: MemoryTables) -> None:
    streams = replace(streams, codec=BodyCodec(), layout=Pages())
    tokens = {name: streams.append(name, [E]).token for name in (A, B)}
    store, sent = watched(streams)

    made = store.append_all(
        [
            StreamAppend(stream=A, events=[Event(type="Large", data=_noise(401_330))], expected=tokens[A]),
            StreamAppend(stream=B, events=[E], expected=tokens[B]),
        ]
    )

    assert [type(op) for op in sent] == [Update, Transact]
    assert [each.version for each in made.streams.values()] == [2, 2]
    pages = [(page.stream, page.index) for page in map(read_page, tables.items("streams"))]
    assert sorted(pages) == [(A, 0), (A, 1), (B, 0)]
    assert types(streams, A) == ["Moved", "Large"]


def test_a_token_that_makes_its_page_small_is_found_out_by_the_page(
    streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "is_full", lambda *_, **__: False)
    streams = replace(streams, codec=BodyCodec())
    token = streams.append(A, [Event(type="Kept", data=_noise(9_000))]).token
    outside = replace(token, size=100, carried=50, of="")

    streams.append_all(
        [
            StreamAppend(stream=A, events=[Event(type="Large", data=_noise(401_000))], expected=outside),
            StreamAppend(stream=B, events=[E]),
        ]
    )

    assert types(streams, A) == ["Kept", "Large"]
    assert types(streams, B) == ["Moved"]


def test_a_page_without_events_is_not_left_for_what_it_does_not_take(streams: Streams) -> None:
    """The next page would be begun at the same place."""
    streams = replace(streams, codec=BodyCodec())
    streams.append(A, [], unfolds=[Unfold(type="Sum", data=_noise(200_000))])
    large = StreamAppend(stream=A, events=[Event(type="Large", data=_noise(250_000))])

    with pytest.raises(TooLarge):
        streams.append_all([large, StreamAppend(stream=B, events=[E])])
    assert streams.append(A, [E]).version == 1


def test_a_token_from_outside_confirms_no_place_where_no_page_ends(streams: Streams) -> None:
    token = filled(streams, A)
    outside = parse_token(token.text())
    assert streams.driver.run(moved_heads(streams.table, {A: token, B: None})) == {}
    assert streams.driver.run(moved_heads(streams.table, {A: outside, B: None})) == {}
    refused = streams.driver.run(moved_heads(streams.table, {A: replace(outside, version=99), B: None}))
    assert refused.keys() == {A}


def test_a_stream_that_is_deleted_is_never_as_it_was_read(streams: Streams) -> None:
    """Also where nobody has written to it since: nothing is decided on a tombstone."""
    streams.append(A, [E])
    streams.delete(A)
    tombstone = streams.driver.run(load_head(streams.table, A))
    assert tombstone is not None

    assert streams.driver.run(moved_heads(streams.table, {A: tombstone, B: None})) == {A: tombstone}
    batch = packed(streams.batch(B, [E]))
    outcome = streams.driver.run(append_all_on(streams.table, [(batch, None)], [(A, tombstone)]))

    assert outcome == Conflict(streams={A: conflict_at(tombstone)})
    assert streams.load(B) is None


def test_streams_are_asked_for_only_while_all_are_as_far_as_is_known_as_they_were_read(
    streams: Streams,
) -> None:
    """A decision is made again once one of them has moved; and of no streams there is nothing to ask."""
    streams.append(A, [E])
    streams.delete(A)
    tombstone = streams.driver.run(load_head(streams.table, A))
    store, sent = watched(streams)
    assert store.driver.run(moved_heads(streams.table, {})) == {}
    assert store.driver.run(moved_heads(streams.table, {B: None, A: tombstone, C: None})) == {A: tombstone}
    assert not sent


def test_unfolds_that_are_kept_move_with_the_stream(streams: Streams) -> None:
    streams.append(A, [E], unfolds=[Unfold(type="Sum", data=b"1")])
    streams.append_all([StreamAppend(stream=A, events=[E], expected=filled(streams, A)), *both()[1:]])

    state = streams.load(A)

    assert state is not None
    assert [unfold.data for unfold in state.unfolds] == [b"1"]


def _noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


@pytest.mark.parametrize("meanwhile", ["nothing", "an append", "a prune of one stream", "both"])
def test_a_lost_answer_is_settled_by_what_any_page_tells(streams: Streams, meanwhile: str) -> None:
    def others() -> None:
        if meanwhile in ("an append", "both"):
            streams.append(A, [Event(type="Other")])
        if meanwhile in ("a prune of one stream", "both"):
            streams.append(B, [Event(type="Other")])
            streams.prune(B, 2)

    made = losing(streams, others).append_all(both())

    assert made.streams[A].first == made.streams[B].first == 0
    assert types(streams, A).count("Moved") == 1
    token = made.streams[A].token
    untouched = meanwhile in ("nothing", "a prune of one stream")
    assert isinstance(streams.try_append(A, [E], expected=token), Appended if untouched else Conflict)


def test_an_answer_that_no_stream_can_tell_any_more_is_undetermined(streams: Streams) -> None:
    def others() -> None:
        for name in (A, B):
            streams.append(name, [Event(type="Other")])
            streams.prune(name, 2)

    with pytest.raises(OutcomeUndetermined, match=A):
        losing(streams, others).append_all(both())
    for name in (A, B):
        assert types(streams, name) == []


def test_unfolds_alone_that_were_replaced_since_are_undetermined(streams: Streams) -> None:
    def others() -> None:
        for name in (A, B):
            streams.append(name, [], unfolds=[Unfold(type="Sum", data=b"9")])

    appends = [StreamAppend(stream=name, unfolds=[Unfold(type="Sum", data=b"1")]) for name in (A, B)]
    outcome = losing(streams, others).try_append_all(appends)

    assert isinstance(outcome, Undetermined)
    assert list(outcome.streams) == [A, B]


def test_a_page_whose_events_from_then_on_are_all_there_tells_that_ours_are_not(streams: Streams) -> None:
    def others() -> None:
        streams.append(A, [Event(type="Other")])
        streams.append(B, [Event(type="Other")])
        streams.prune(B, 1)

    losing(streams, others, arrives=False).append_all(both())

    assert types(streams, A) == ["Other", "Moved"]
    assert types(streams, B) == ["Moved"]


def test_a_page_older_than_our_stamp_tells_that_our_unfolds_were_never_there(streams: Streams) -> None:
    for name in (A, B):
        streams.append(name, [E])
    appends = [StreamAppend(stream=name, unfolds=[Unfold(type="Sum", data=b"1")]) for name in (A, B)]
    losing(streams, lambda: streams.append(B, [E]), arrives=False).append_all(appends)

    for name, version in ((A, 1), (B, 2)):
        state = streams.load(name)
        assert state is not None
        assert (state.version, [each.data for each in state.unfolds]) == (version, [b"1"])


def test_who_is_told_that_it_was_made_has_waited_for_it_in_every_stream(streams: Streams) -> None:
    store, sent = watched(losing(streams, lambda: None))
    store.append_all(both())

    assert isinstance(sent[-1], TransactGet)
    assert [key["p"]["S"] for _, key in sent[-1].keys] == [A, B]


def test_a_refusal_that_leaves_pages_out_has_them_asked_for(streams: Streams) -> None:
    """DynamoDB does not say what stands in the way of a write to an item that another transaction is at."""

    def others() -> None:
        streams.append(B, [Event(type="Other")])
        streams.prune(B, 2)

    store = losing(streams, others)

    def execute(op: Op) -> Reply:
        reply = store.driver.execute(op)
        if isinstance(op, Transact) and hasattr(reply, "failed"):
            return replace(reply, failed=(False, True), items=(None, reply.items[1]))
        return reply

    made = store.on(replace(store.driver, execute=execute)).append_all(both())

    assert made.streams[A].version == 1
    assert types(streams, A) == ["Moved"]


@pytest.mark.parametrize(
    ("appends", "said"),
    [
        ([], "appends: must not be empty"),
        ("Account-a", "appends: must be a list of StreamAppend, not str"),
        ([A], r"appends\[0\]: must be StreamAppend, not str"),
        ([*both(), StreamAppend(stream=A, events=[E])], "appends: must not name a stream twice: Account-a"),
        ([StreamAppend(stream=A)], r"^appends\[0\]\.events: must not be empty"),
        ([StreamAppend(stream=B, events=[E]), StreamAppend(stream=A)], r"^appends\[1\]\.events: must not be"),
        ([*both(), StreamAppend(stream="no dash", events=[E])], r"^appends\[2\]\.stream: may hold only"),
        (
            [StreamAppend(stream=B, events=[E]), StreamAppend(stream=A, events=[E], expected=3)],  # type: ignore[arg-type]
            r"^appends\[1\]\.expected: must be ANY",
        ),
    ],
)
def test_what_cannot_be_one_append_is_refused_before_anything_is_written(
    streams: Streams, appends: list[StreamAppend], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        streams.append_all(appends)
    assert streams.load(A) is streams.load(B) is None


def test_more_than_a_transaction_takes_is_refused_with_its_size(streams: Streams) -> None:
    many = [StreamAppend(stream=f"Account-{k}", events=[E]) for k in range(101)]
    with pytest.raises(TooLarge, match="appends: 101 streams, at most 100"):
        streams.append_all(many)
    assert len(streams.append_all(many[1:]).streams) == 100

    streams = replace(streams, codec=BodyCodec())
    bodies = [
        StreamAppend(stream=f"Large-{k}", events=[Event(type="E", data=_noise(380_000))]) for k in range(12)
    ]
    with pytest.raises(TooLarge, match="transaction"):
        streams.append_all(bodies)
    assert streams.load("Large-0") is None


def test_streams_stored_as_tips_are_refused_by_what_their_layout_can_do() -> None:
    with pytest.raises(InvalidInput, match="cannot be appended in one transaction with the layout tips"):
        memory_tips().append_all(both())


def test_a_stream_is_held_to_its_own_limit(streams: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "MAX_VERSION", 2)
    streams.append(A, [E, E])
    with pytest.raises(InvalidInput, match="a stream holds at most 2"):
        streams.append_all(both())
    assert streams.load(B) is None
