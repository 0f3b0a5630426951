"""One idempotency key for an append to several streams: it is made once, whatever is lost, and whoever asks again."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from epochal import ANY, NO_STREAM, Appended, AtVersion, Event, StreamAppend, Unfold
from epochal.errors import InvalidInput, StreamDeleted, TooLarge
from epochal.model.expected_version import ExpectedVersion
from epochal.model.outcomes import Conflict
from epochal.plan.failures import Lost
from epochal.plan.ops import Op, Reply, Transact, TransactGet
from epochal.settings import KEY_WINDOW_SECONDS
from epochal.store.encoding import BodyCodec
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams, memory_tables

E = Event(type="Moved", data=b'{"amount": 1}')
A, B = "Account-a", "Account-b"


@pytest.fixture
def streams() -> Streams:
    return memory_streams()


def both(expected: ExpectedVersion = ANY, events: Sequence[Event] = (E,)) -> list[StreamAppend]:
    return [StreamAppend(stream=stream, events=events, expected=expected) for stream in (A, B)]


def counts(streams: Streams) -> list[int]:
    return [sum(event.type == "Moved" for event in streams.read(stream)) for stream in (A, B)]


def meddled(streams: Streams, meddle: Callable[[Op, Reply], Reply]) -> Streams:
    def execute(op: Op) -> Reply:
        return meddle(op, streams.driver.execute(op))

    return streams.on(replace(streams.driver, execute=execute, sleep=lambda _: None))


@pytest.mark.parametrize(
    "again", [ANY, NO_STREAM, AtVersion(version=7)], ids=["any", "no stream", "a version that is not"]
)
def test_a_repeat_is_answered_like_the_first_whatever_it_expects(
    streams: Streams, again: ExpectedVersion
) -> None:
    streams.append(B, [Event(type="Other")])
    first = streams.append_all(both(), idempotency_key="k")

    repeat = streams.append_all(both(again)[::-1], idempotency_key="k")

    assert {name: (each.first, each.version) for name, each in first.streams.items()} == {
        A: (0, 1),
        B: (1, 2),
    }
    assert {name: replace(each, replayed=False) for name, each in repeat.streams.items()} == first.streams
    assert all(each.replayed for each in repeat.streams.values())
    assert not any(each.replayed for each in first.streams.values())
    assert (first.replayed, repeat.replayed) == (False, True)
    assert counts(streams) == [1, 1]
    for name, each in repeat.streams.items():
        assert isinstance(streams.try_append(name, [E], expected=each.token), Appended)


def test_the_key_costs_what_one_write_more_costs_and_no_request(streams: Streams) -> None:
    plain = streams.append_all(both(NO_STREAM)).capacity
    keyed = memory_streams().append_all(both(NO_STREAM), idempotency_key="k").capacity

    assert (keyed.requests, keyed.write) == (plain.requests, plain.write + 2) == (1, 6)


@pytest.mark.parametrize("meanwhile", ["nothing", "appends", "prunes", "unfolds"])
@pytest.mark.parametrize("expected", [ANY, NO_STREAM], ids=["any", "no stream"])
def test_a_lost_answer_is_told_by_the_record_whatever_has_become_of_the_streams(
    streams: Streams, meanwhile: str, expected: ExpectedVersion
) -> None:
    lost = iter([True])

    def lose(op: Op, reply: Reply) -> Reply:
        if isinstance(op, Transact) and next(lost, False):
            for name in (A, B):
                if meanwhile != "nothing":
                    streams.append(name, [Event(type="Other")], unfolds=[Unfold(type="State")])
                if meanwhile == "prunes":
                    streams.prune(name, 2)
            raise Lost("the test's fault")
        return reply

    made = meddled(streams, lose).append_all(both(expected), idempotency_key="k")

    assert [(each.first, each.version, each.replayed) for each in made.streams.values()] == [
        (0, 1, False)
    ] * 2
    assert counts(streams) == ([0, 0] if meanwhile == "prunes" else [1, 1])
    goes_on = streams.try_append(A, [E], expected=made.streams[A].token)
    assert isinstance(goes_on, Appended) == (meanwhile == "nothing")


def test_a_conflict_is_told_once_the_record_is_known_not_to_be_there(streams: Streams) -> None:
    """Another process, with the same key, is faster between the read of the streams and the conflict."""
    streams.append(A, [Event(type="Other")])
    first = iter([True])

    def meddle(op: Op, reply: Reply) -> Reply:
        if not isinstance(op, Transact | TransactGet) and next(first, False):
            streams.append_all(both(), idempotency_key="k")
        return reply

    made = meddled(streams, meddle).try_append_all(both(AtVersion(version=0)), idempotency_key="k")

    assert isinstance(made, Appended)
    refused = streams.try_append_all(both(AtVersion(version=0)), idempotency_key="l")
    assert isinstance(refused, Conflict)
    assert list(refused.streams) == [A, B]
    assert counts(streams) == [1, 1]


def test_a_key_that_was_refused_is_free(streams: Streams) -> None:
    streams.append(A, [Event(type="Other")])
    assert isinstance(streams.try_append_all(both(NO_STREAM), idempotency_key="k"), Conflict)

    assert isinstance(streams.try_append_all(both(), idempotency_key="k"), Appended)


def test_where_any_version_will_do_it_goes_on_where_another_was_faster(streams: Streams) -> None:
    faster = iter([True])

    def meddle(op: Op, reply: Reply) -> Reply:
        if not isinstance(op, Transact) and next(faster, False):
            streams.append(A, [Event(type="Other")])
        return reply

    made = meddled(streams, meddle).append_all(both(), idempotency_key="k")

    assert [each.version for each in made.streams.values()] == [2, 1]
    assert counts(streams) == [1, 1]


@pytest.mark.parametrize(
    "others",
    [
        both(events=[E, E]),
        [StreamAppend(stream=A, events=[E, E]), StreamAppend(stream=B, events=[E])],
        [*both()[:1], replace(both()[1], unfolds=())],
    ],
    ids=["events", "of one stream", "unfolds"],
)
def test_a_key_used_for_other_contents_is_refused(streams: Streams, others: list[StreamAppend]) -> None:
    streams.append_all(both(), idempotency_key="k")

    with pytest.raises(
        InvalidInput, match="idempotency_key: was already used for an append with other contents"
    ):
        streams.append_all(others, idempotency_key="k")
    assert counts(streams) == [1, 1]


def test_a_key_is_of_its_streams_together(streams: Streams) -> None:
    streams.append(A, [E], idempotency_key="k")
    streams.append_all(both(), idempotency_key="k")
    streams.append_all([*both(), StreamAppend(stream="Account-c", events=[E])], idempotency_key="k")
    streams.append_all(both()[:1], idempotency_key="k")

    assert counts(streams) == [3, 2], "one stream alone is an append to it, which had been made"


def test_a_key_is_remembered_for_a_day() -> None:
    clock = [10**18]
    streams = replace(memory_streams(), now=lambda: clock[0])
    streams.append_all(both(), idempotency_key="k")
    clock[0] += (KEY_WINDOW_SECONDS - 1) * 10**9
    streams.append_all(both(), idempotency_key="k")
    assert counts(streams) == [1, 1]
    clock[0] += 2 * 10**9
    streams.append_all(both(), idempotency_key="k")
    assert counts(streams) == [2, 2]


def test_a_page_too_small_is_left_and_the_key_holds(
    streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epochal.pages.writes.is_full", lambda *_, **__: False)
    streams = replace(streams, codec=BodyCodec())
    token = streams.append(A, [Event(type="Kept", data=bytes(range(256)) * 40)]).token
    outside = replace(token, size=100, carried=50, of="")

    large = Event(type="Moved", data=random.Random(1).randbytes(395_000))
    appends = [StreamAppend(stream=A, events=[large], expected=outside), StreamAppend(stream=B, events=[E])]

    for _ in range(2):
        streams.append_all(appends, idempotency_key="k")
    assert counts(streams) == [1, 1]


def test_unfolds_alone_are_written_once(streams: Streams) -> None:
    def state(data: bytes) -> list[StreamAppend]:
        return [StreamAppend(stream=name, unfolds=[Unfold(type="Sum", data=data)]) for name in (A, B)]

    streams.append_all(state(b"1"), idempotency_key="k")
    streams.append_all(state(b"2"))
    streams.append_all(state(b"1"), idempotency_key="k")

    found = streams.load(A)
    assert found is not None
    assert found.unfolds[0].data == b"2"


def test_a_stream_that_was_deleted_refuses_what_was_not_made(streams: Streams) -> None:
    streams.append_all(both(), idempotency_key="k")
    streams.delete(A)

    assert isinstance(streams.try_append_all(both(), idempotency_key="k"), Appended)
    with pytest.raises(StreamDeleted, match=A):
        streams.append_all(both(), idempotency_key="l")


@pytest.mark.parametrize("key", ["", "k" * 4097, 5])
def test_what_is_no_key_is_refused(streams: Streams, key: Any) -> None:
    with pytest.raises(InvalidInput, match="idempotency_key"):
        streams.append_all(both(), idempotency_key=key)
    assert streams.load(A) is None


def test_with_its_record_a_transaction_takes_one_stream_less(streams: Streams) -> None:
    many = [StreamAppend(stream=f"Account-{k}", events=[E]) for k in range(100)]
    with pytest.raises(TooLarge, match="appends: 100 streams, at most 99"):
        streams.append_all(many, idempotency_key="k")

    for _ in range(2):
        made = streams.append_all(many[1:], idempotency_key="k")
        assert len(made.streams) == 99


def test_racers_under_one_key_make_it_once() -> None:
    """Both have read the streams before either writes."""
    tables = memory_tables()
    streams = memory_streams(tables)
    second: list[Appended] = []

    def execute(op: Op) -> Reply:
        if isinstance(op, Transact) and not second:
            second.append(streams.append_all(both(), idempotency_key="k"))
        return tables.execute(op)

    made = streams.on(replace(streams.driver, execute=execute)).append_all(both(), idempotency_key="k")

    assert [each.replayed for each in made.streams.values()] == [True, True]
    assert counts(streams) == [1, 1]
    assert {name: each.token for name, each in made.streams.items()} == {
        name: each.token for name, each in second[0].streams.items()
    }
