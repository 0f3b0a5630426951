"""An idempotency key is one append within its stream, whatever a repeat expects; and a token is of one state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from epochal.contrib.equinox.calving import Fixed
from epochal.contrib.equinox.streams import Tips
from epochal.errors import InvalidInput, Unavailable
from epochal.layout.key_records import KeyRecord, RecordContents, load_record, lower_bound, put_record
from epochal.model.bodies import Claim
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import ANY, NO_STREAM, STREAM_EXISTS, AtVersion, ExpectedVersion
from epochal.model.outcomes import Appended, Conflict, Outcome
from epochal.model.stream_append import StreamAppend
from epochal.model.tokens import Token
from epochal.plan.ops import Execute, Op, Put, Reply, Update
from epochal.settings import KEY_WINDOW_SECONDS
from epochal.store.driver import Patience
from epochal.store.encoding import identity_of
from epochal.store.streams import Streams
from epochal.testing.memory import Fault, Faults, MemoryTables
from tests.simulation.index_checks import perform
from tests.simulation.world import driver_on

STREAM = "Account-1"
PAID = Event(type="Paid", data=b"7")
OTHER = Event(type="Opened")

EXPECTATIONS = ("any", "exists", "no stream", "version", "token", "bare token")


def now_as(name: str, streams: Streams) -> ExpectedVersion:
    """An expectation that the stream meets as it is."""
    state = streams.load(STREAM)
    if state is None:
        return ANY if name == "any" else NO_STREAM
    return {
        "any": ANY,
        "exists": STREAM_EXISTS,
        "no stream": NO_STREAM,
        "version": AtVersion(version=state.version),
        "token": state.token,
        "bare token": Token(version=state.version),
    }[name]


def appended(outcome: Outcome) -> Appended:
    assert isinstance(outcome, Appended), outcome
    return outcome


def pay(streams: Streams, expected: ExpectedVersion = ANY) -> Appended:
    return appended(streams.try_append(STREAM, [PAID], expected=expected, idempotency_key="pay-1"))


def unfold(streams: Streams, data: bytes, expected: ExpectedVersion = ANY, key: str | None = None) -> Outcome:
    return streams.try_append(
        STREAM, [], unfolds=[Unfold(type="State", data=data)], expected=expected, idempotency_key=key
    )


def unfolded(streams: Streams) -> bytes:
    state = streams.load(STREAM)
    assert state is not None
    (only,) = state.unfolds
    assert isinstance(only.data, bytes)
    return only.data


def types(streams: Streams) -> list[str]:
    return [event.type for event in streams.read(STREAM)]


# ---------------------------------------------------------------------------------------------------------------- keys


@pytest.mark.slow
@pytest.mark.parametrize(("first", "then"), list(product(EXPECTATIONS, EXPECTATIONS)))
@pytest.mark.parametrize("others", [0, 1, 5])
def test_a_repeat_under_another_expectation_is_answered_like_the_first(
    streams: Streams, first: str, then: str, others: int
) -> None:
    if first != "no stream":
        streams.append(STREAM, [OTHER])
    paid = pay(streams, now_as(first, streams))
    for _ in range(others):
        streams.append(STREAM, [OTHER])

    for expected in (now_as(then, streams), NO_STREAM, AtVersion(version=0), AtVersion(version=99)):
        again = pay(replace(streams, layout=Tips(calving=Fixed(max_events=2, mode="two-step"))), expected)
        assert (again.first, again.version, again.replayed) == (paid.first, paid.version, True)

    assert types(streams).count("Paid") == 1


def test_a_call_whose_answer_is_lost_may_be_repeated_on_what_was_reloaded(
    streams: Streams, tables: MemoryTables
) -> None:
    streams.append(STREAM, [OTHER])
    faults = Faults(tables.execute, {1: Fault.UNANSWERED})
    driver = replace(streams.driver, execute=faults.execute, patience=Patience(seconds=0))
    with pytest.raises(Unavailable):
        pay(replace(streams, driver=driver), now_as("token", streams))

    for name in ("token", "any", "version"):
        assert pay(streams, now_as(name, streams)).replayed
    assert types(streams) == ["Opened", "Paid"]


def test_a_conflict_leaves_the_key_free_for_what_is_decided_next(streams: Streams) -> None:
    streams.append(STREAM, [OTHER])
    refused = streams.try_append(STREAM, [PAID], expected=NO_STREAM, idempotency_key="k")
    second = streams.try_append(STREAM, [OTHER], expected=AtVersion(version=1), idempotency_key="k")

    assert isinstance(refused, Conflict)
    assert appended(second).replayed is False
    with pytest.raises(InvalidInput, match="idempotency_key"):
        streams.append(STREAM, [PAID], idempotency_key="k")


def test_a_try_below_the_bound_lowers_it_first(streams: Streams) -> None:
    """A caller may expect what is not yet; its key is remembered from there."""
    streams.append(STREAM, [OTHER])
    ahead = Token(version=5, etag="0" * 32)
    assert isinstance(streams.try_append(STREAM, [PAID], expected=ahead, idempotency_key="pay-1"), Conflict)

    paid = pay(streams)
    for expected in (ANY, ahead, NO_STREAM, STREAM_EXISTS):
        assert pay(streams, expected).first == paid.first == 1


@pytest.mark.parametrize("ahead", [1, 2, 5])
@pytest.mark.parametrize("stored", [0, 1, 3])
def test_a_repeat_finds_an_append_that_was_made_below_where_its_key_was_first_tried(
    streams: Streams, stored: int, ahead: int
) -> None:
    """Otherwise it searches the stream from there on, finds nothing, and appends again."""
    for _ in range(stored):
        streams.append(STREAM, [OTHER])
    later = Token(version=stored + ahead, etag="0" * 32)
    assert isinstance(streams.try_append(STREAM, [PAID], expected=later, idempotency_key="pay-1"), Conflict)
    assert pay(streams).first == stored
    for expected in (ANY, STREAM_EXISTS, later, ANY):
        again = pay(streams, expected)
        assert (again.first, again.replayed) == (stored, True)
    assert types(streams) == [*["Opened"] * stored, "Paid"]


@pytest.mark.parametrize("bound", range(4))
@pytest.mark.parametrize("version", range(4))
def test_the_bound_of_a_key_is_lowered_to_a_try_below_it_and_never_raised(
    tables: MemoryTables, bound: int, version: int
) -> None:
    record = KeyRecord.of(STREAM, "pay-1", 1_000)
    assert perform(tables, put_record("tips", record, bound)) is None
    seen = perform(tables, load_record("tips", record))
    assert seen == RecordContents(first=bound)
    lowered = RecordContents(first=min(bound, version))
    assert perform(tables, lower_bound("tips", record, version, seen)) == lowered
    assert perform(tables, load_record("tips", record)) == lowered


def test_a_key_is_remembered_to_the_last_second_of_its_window_and_free_from_then_on(
    tables: MemoryTables,
) -> None:
    perform(tables, put_record("tips", KeyRecord.of(STREAM, "pay-1", 1_000), 4))
    last, after = (KeyRecord.of(STREAM, "pay-1", 1_000 + KEY_WINDOW_SECONDS + more) for more in (0, 1))
    assert perform(tables, load_record("tips", last)) == RecordContents(first=4)
    assert perform(tables, load_record("tips", after)) is None
    assert perform(tables, put_record("tips", last, 7)) == RecordContents(first=4)
    assert perform(tables, put_record("tips", after, 7)) is None
    assert perform(tables, load_record("tips", after)) == RecordContents(first=7)


@pytest.mark.parametrize(
    "seen",
    [RecordContents(first=2), RecordContents(first=3), RecordContents(first=9, append_id=b"done", etag="0")],
)
def test_a_key_whose_bound_is_low_enough_or_whose_unfolds_are_written_asks_for_nothing(
    seen: RecordContents,
) -> None:
    with pytest.raises(StopIteration) as ended:
        next(lower_bound("tips", KeyRecord.of(STREAM, "pay-1", 1_000), 3, seen))
    assert ended.value.value == seen


@pytest.mark.parametrize("lowest", [0, 2, 5])
def test_the_bound_of_a_key_that_another_call_lowers_meanwhile_is_not_above_either(
    tables: MemoryTables, lowest: int
) -> None:
    record = KeyRecord.of(STREAM, "pay-1", 1_000)
    perform(tables, put_record("tips", record, 9))
    perform(tables, lower_bound("tips", record, lowest, RecordContents(first=9)))
    left = iter(range(3))

    def execute(op: Op) -> Reply:
        assert next(left, None) is not None, "it is lowered without end"
        return tables.execute(op)

    found = driver_on(execute).run(lower_bound("tips", record, 3, RecordContents(first=9)))
    assert found == perform(tables, load_record("tips", record)) == RecordContents(first=min(lowest, 3))


def test_a_key_that_another_call_uses_for_other_contents_meanwhile_is_refused(streams: Streams) -> None:
    """The other call comes between the read of the stream and the write: with unfolds, which the record tells."""
    for number, expected in enumerate((ANY, STREAM_EXISTS, ANY)):
        key = f"key-{number}"
        streams.append(STREAM, [OTHER])
        before = types(streams)

        def meanwhile(key: str = key) -> None:
            unfold(streams, b"1", key=key)

        store = replace(streams, driver=replace(streams.driver, execute=before_the_write(streams, meanwhile)))
        with pytest.raises(
            InvalidInput, match="idempotency_key: was already used for an append with other contents"
        ):
            store.append(STREAM, [PAID], expected=expected, idempotency_key=key)
        assert types(streams) == before


@pytest.mark.parametrize("expected", ["any", "exists", "version", "token"])
def test_a_key_that_another_call_uses_for_unfolds_while_its_bound_is_lowered_is_refused(
    streams: Streams, expected: str
) -> None:
    """A conflict would have the caller decide again, under a key that is taken."""
    streams.append(STREAM, [OTHER])
    ahead = Token(version=5, etag="0" * 32)
    assert isinstance(streams.try_append(STREAM, [PAID], expected=ahead, idempotency_key="k"), Conflict)
    found, sent = now_as(expected, streams), list[Op]()

    def execute(op: Op) -> Reply:
        if isinstance(op, Put | Update):
            sent.append(op)
            if len(sent) == 2:
                unfold(streams, b"1", key="k")
        return streams.driver.execute(op)

    store = replace(streams, driver=replace(streams.driver, execute=execute))
    with pytest.raises(
        InvalidInput, match="idempotency_key: was already used for an append with other contents"
    ):
        store.append(STREAM, [PAID], expected=found, idempotency_key="k")
    assert [type(op) for op in sent] == [Put, Put], (
        "a record that is there, and its bound; the event is not sent"
    )
    assert types(streams) == ["Opened"]


def before_the_write(streams: Streams, act: Callable[[], object]) -> Execute:
    """An interpreter that lets something happen before the stream itself is written."""
    left = [act]

    def execute(op: Op) -> Reply:
        item = op.item if isinstance(op, Put) else op.key if isinstance(op, Update) else {}
        if STREAM in item.get("p", {}).get("S", "") and left:
            left.pop()()
        return streams.driver.execute(op)

    return execute


def test_a_key_is_of_its_stream_alone(streams: Streams) -> None:
    for stream, expected in product(("A-1", "B-1"), (NO_STREAM, ANY, AtVersion(version=1))):
        answer = streams.append(stream, [PAID], expected=expected, idempotency_key="k")
        assert (answer.first, answer.replayed) == (0, expected is not NO_STREAM)
    for stream, expected in product(("A-1", "B-1"), (ANY, STREAM_EXISTS)):
        state = Unfold(type="State", data=stream.encode())
        answer = streams.append(stream, [], unfolds=[state], expected=expected, idempotency_key="u")
        assert answer.replayed is (expected is STREAM_EXISTS)


@pytest.mark.parametrize(("first", "then"), list(product(EXPECTATIONS, EXPECTATIONS)))
def test_a_repeat_of_unfolds_alone_leaves_newer_ones_as_they_are(
    streams: Streams, first: str, then: str
) -> None:
    if first != "no stream":
        streams.append(STREAM, [OTHER])
    one = appended(unfold(streams, b"1", now_as(first, streams), "u"))
    at_once = appended(unfold(streams, b"1", now_as(then, streams), "u"))
    assert (at_once.first, at_once.token.etag, at_once.replayed) == (one.first, one.token.etag, True)

    unfold(streams, b"2")
    streams.append(STREAM, [OTHER])
    again = appended(unfold(streams, b"1", now_as(then, streams), "u"))

    assert (again.first, again.version, again.replayed) == (one.first, one.version, True)
    assert unfolded(streams) == b"2"


def test_other_contents_under_a_key_are_refused_in_every_order(streams: Streams) -> None:
    state = Unfold(type="State", data=b"1")
    calls: list[dict[str, object]] = [
        {"events": [PAID]},
        {"events": [OTHER]},
        {"events": [PAID], "unfolds": []},
        {"events": [PAID], "unfolds": [state]},
        {"events": [], "unfolds": [state]},
        {"events": [], "unfolds": [replace(state, data=b"2")]},
        {"events": [], "unfolds": []},
    ]
    for number, (one, other) in enumerate(product(calls, calls)):
        key = f"key {number}"
        streams.append(STREAM, **one, idempotency_key=key)  # type: ignore[arg-type]
        before = streams.load(STREAM)
        if one == other:
            assert streams.append(STREAM, **other, idempotency_key=key).replayed  # type: ignore[arg-type]
        else:
            with pytest.raises(
                InvalidInput, match="idempotency_key: was already used for an append with other"
            ):
                streams.append(STREAM, **other, idempotency_key=key)  # type: ignore[arg-type]
        assert streams.load(STREAM) == before


WHEN = "2013-01-01T05:17:00Z"
CLAIMED = Claim(key="mine/1", sha256="a" * 64, size=9)

CONTENTS: dict[str, dict[str, Any]] = {
    "an event": {"events": [PAID]},
    "another type": {"events": [replace(PAID, type="Repaid")]},
    "other data": {"events": [replace(PAID, data=b"8")]},
    "data that is metadata": {"events": [replace(PAID, data=b"", meta=b"7")]},
    "a type that ends in data": {"events": [Event(type="Paid7")]},
    "metadata": {"events": [replace(PAID, meta=b"m")]},
    "a time": {"events": [replace(PAID, timestamp=WHEN)]},
    "a correlation": {"events": [replace(PAID, correlation_id="c")]},
    "a causation": {"events": [replace(PAID, causation_id="c")]},
    "the event twice": {"events": [PAID, PAID]},
    "a claim": {"events": [Event(type="Paid", data=CLAIMED)]},
    "a claim of other content": {"events": [Event(type="Paid", data=replace(CLAIMED, sha256="b" * 64))]},
    "no unfolds": {"events": [PAID], "unfolds": []},
    "an unfold": {"events": [PAID], "unfolds": [Unfold(type="State", data=b"1")]},
    "an unfold of another type": {"events": [PAID], "unfolds": [Unfold(type="Total", data=b"1")]},
    "an unfold of other data": {"events": [PAID], "unfolds": [Unfold(type="State", data=b"2")]},
    "an unfold with metadata": {"events": [PAID], "unfolds": [Unfold(type="State", data=b"1", meta=b"m")]},
    "an unfold with a time": {"events": [PAID], "unfolds": [Unfold(type="State", data=b"1", timestamp=WHEN)]},
}


def test_whatever_differs_in_what_is_appended_is_other_contents() -> None:
    digests = [identity_of([StreamAppend(stream="Cart-1", **each)], "k") for each in CONTENTS.values()]
    assert len(set(digests)) == len(CONTENTS)


def test_the_same_content_claimed_under_another_key_of_the_bucket_is_the_same() -> None:
    claims = (CLAIMED, replace(CLAIMED, key="mine/2"))
    one, other = (
        identity_of([StreamAppend(stream="Cart-1", events=[Event(type="Paid", data=claim)])], "k")
        for claim in claims
    )
    assert one == other


def test_unfolds_alone_under_a_key_find_room_in_a_full_tip(streams: Streams) -> None:
    full = replace(streams, layout=Tips(calving=Fixed(max_bytes=390_000, max_events=1_000, mode="two-step")))
    for _ in range(3):
        full.append(STREAM, [Event(type="Large", data=bytes(range(256)) * 450)])
    large = Unfold(type="State", data=bytes(range(256)) * 480)

    token = full.load(STREAM).token  # type: ignore[union-attr]
    first = full.append(STREAM, [], unfolds=[large], expected=token, idempotency_key="u")
    again = full.append(STREAM, [], unfolds=[large], idempotency_key="u")

    assert (first.replayed, again.replayed, again.token.etag) == (False, True, first.token.etag)
    assert len(types(streams)) == 3


def test_a_key_is_forgotten_after_its_window_of_the_writers_own_clocks(streams: Streams) -> None:
    later = replace(streams, now=lambda: streams.now() + 86_500 * 10**9)
    unfold(streams, b"1", key="u")
    pay(streams)

    assert not pay(later).replayed
    assert not appended(unfold(later, b"1", key="u")).replayed
    assert types(streams) == ["Paid", "Paid"]


# -------------------------------------------------------------------------------------------------------------- tokens


@pytest.mark.parametrize("key", [None, "pay-1"])
@pytest.mark.parametrize("unfolds", [None, [Unfold(type="State", data=b"ours")]])
def test_a_lost_answer_never_brings_the_token_of_what_another_has_unfolded_since(
    streams: Streams, tables: MemoryTables, key: str | None, unfolds: list[Unfold] | None
) -> None:
    streams.append(STREAM, [OTHER])
    token = streams.load(STREAM).token  # type: ignore[union-attr]
    faults = Faults(tables.execute, {0 if key is None else 1: Fault.UNANSWERED})

    def overtaken(op: object) -> object:
        try:
            return faults.execute(op)  # type: ignore[arg-type]
        finally:
            if faults.requests == (1 if key is None else 2):
                unfold(streams, b"unseen")

    ours = replace(streams, driver=replace(streams.driver, execute=overtaken))  # type: ignore[arg-type]
    answer = ours.append(STREAM, [PAID], unfolds=unfolds, expected=token, idempotency_key=key)
    assert (answer.first, answer.version) == (1, 2)

    for held in (answer.token, Token(version=2, etag=answer.token.etag)):
        onward = streams.try_append(STREAM, [OTHER], unfolds=[Unfold(type="State")], expected=held)
        assert isinstance(onward, Conflict)
    assert unfolded(streams) == b"unseen"


def test_a_replayed_answer_has_the_token_that_the_first_one_had(streams: Streams) -> None:
    paid = pay(streams)
    assert pay(streams).token == paid.token

    unfold(streams, b"unseen")
    again = pay(streams)

    assert (again.token.version, again.token.etag) == (paid.token.version, paid.token.etag)
    assert isinstance(unfold(streams, b"blind", again.token), Conflict)
    assert unfolded(streams) == b"unseen"
