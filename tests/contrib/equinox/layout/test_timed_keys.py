"""A key that is a UUIDv7 tells a moment: its append is made once, of pages, and nothing is put on record for it."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product
from uuid import RFC_4122, UUID

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.errors import InvalidInput, KeyAhead, OutcomeUndetermined, Unavailable
from epochal.http.problems import problem_of
from epochal.layout.key_moments import moment_of_key
from epochal.layout.streams import NEVER
from epochal.model.capacity import Capacity
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import ANY, NO_STREAM, AtVersion
from epochal.model.moments import from_unix_nanoseconds
from epochal.model.outcomes import Appended, Outcome
from epochal.model.tags import Query, QueryItem
from epochal.model.tokens import Token, parse_token
from epochal.pages import writes
from epochal.pages.layout import Pages
from epochal.store.bulk import Bulk, BulkAppend
from epochal.store.context import new_key
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_streams, memory_tables
from tests.contrib.equinox.layout.test_keys import EXPECTATIONS, now_as
from tests.layouts.deciders.tally import STRATEGIES, Store, add
from tests.simulation.world import NOON, SECOND, key_of

STREAM = "Account-1"
PAID, OTHER = Event(type="Paid", data=b"7"), Event(type="Opened")
MINUTE, DAY = 60 * SECOND, 86_400 * SECOND

KEY = key_of("k", NOON)


class Clock:
    """Says what it is set to."""

    def __init__(self) -> None:
        self.now = NOON - MINUTE

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tables() -> MemoryTables:
    return memory_tables()


@pytest.fixture
def streams(tables: MemoryTables, clock: Clock) -> Streams:
    return replace(memory_streams(tables), now=clock)


def pay(streams: Streams, expected: object = ANY, key: str = KEY) -> Appended:
    outcome: Outcome = streams.try_append(STREAM, [PAID], expected=expected, idempotency_key=key)  # type: ignore[arg-type]
    assert isinstance(outcome, Appended), outcome
    return outcome


def types(streams: Streams) -> list[str]:
    return [event.type for event in streams.read(STREAM)]


@pytest.mark.slow
@pytest.mark.parametrize("at", [-MINUTE, 0, MINUTE, 2 * DAY], ids=["ahead", "at once", "later", "days later"])
@pytest.mark.parametrize(("first", "then"), list(product(EXPECTATIONS, EXPECTATIONS)))
def test_a_repeat_under_another_expectation_is_answered_like_the_first(
    streams: Streams, clock: Clock, first: str, then: str, at: int
) -> None:
    if first != "no stream":
        streams.append(STREAM, [OTHER])
    clock.now = NOON + at
    paid = pay(streams, now_as(first, streams))
    streams.append(STREAM, [OTHER] * 40)
    clock.now += 2 * DAY
    streams.append(STREAM, [OTHER] * 40)

    for expected in (now_as(then, streams), NO_STREAM, AtVersion(version=0), AtVersion(version=99)):
        again = pay(streams, expected)
        assert (again.first, again.version, again.replayed) == (paid.first, paid.version, True)
    assert types(streams).count("Paid") == 1


@pytest.mark.parametrize("how", ["own token", "ETag", "no stream", "any", "version"])
def test_it_costs_what_an_append_without_a_key_costs(
    streams: Streams, tables: MemoryTables, clock: Clock, how: str
) -> None:
    costs = list[Capacity]()
    for name, key in (("A-1", None), ("B-1", KEY)):
        clock.now = NOON - MINUTE
        told = None if how == "no stream" else streams.append(name, [OTHER]).token
        clock.now = NOON + SECOND
        expected = {
            "own token": told,
            "ETag": told and parse_token(told.text()),
            "no stream": NO_STREAM,
            "any": ANY,
            "version": AtVersion(version=1),
        }[how]
        costs.append(
            streams.append(name, [PAID], expected=expected or NO_STREAM, idempotency_key=key).capacity
        )
    plain, keyed = costs
    assert keyed == plain
    assert plain.write == 1
    assert plain.read == (1 if how in ("any", "version") else 0)
    assert {item["p"]["S"] for item in tables.items("streams")} == {"A-1", "B-1"}


def test_other_contents_under_it_are_refused_in_every_order(streams: Streams, clock: Clock) -> None:
    state = Unfold(type="State", data=b"1")
    calls: list[dict[str, object]] = [
        {"events": [PAID]},
        {"events": [OTHER]},
        {"events": [PAID], "unfolds": [state]},
        {"events": [], "unfolds": [state]},
        {"events": [], "unfolds": []},
    ]
    for number, (one, other) in enumerate(product(calls, calls)):
        clock.now = NOON + number * MINUTE
        key = key_of("k", clock.now)
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


@pytest.mark.parametrize("ahead", [301 * SECOND, 340 * SECOND, 60 * MINUTE])
def test_a_key_of_a_clock_that_is_ahead_is_refused_for_now(
    streams: Streams, tables: MemoryTables, clock: Clock, ahead: int
) -> None:
    clock.now = NOON - ahead
    with pytest.raises(
        Unavailable, match="idempotency_key contains a time more than five minutes"
    ) as refused:
        pay(streams)
    assert not refused.value.maybe_applied
    assert not list(tables.items("streams"))
    clock.now = NOON - 5 * MINUTE
    assert not pay(streams).replayed


def test_a_repeat_by_a_writer_whose_clock_is_behind_is_known_again_later(
    streams: Streams, clock: Clock
) -> None:
    clock.now = NOON - 280 * SECOND
    pay(streams)
    clock.now -= MINUTE
    with pytest.raises(Unavailable):
        pay(streams)
    clock.now += MINUTE
    assert pay(streams).replayed


def test_over_http_it_is_a_refusal_for_now_that_says_why() -> None:
    problem = problem_of(KeyAhead(340))
    assert problem.kind.status == 503
    assert problem.headers["Retry-After"]
    assert "more than five minutes in the future, 340 seconds" in str(problem)


def test_a_moment_of_more_than_an_hour_ahead_is_of_no_clock(
    streams: Streams, tables: MemoryTables, clock: Clock
) -> None:
    clock.now = NOON - 60 * MINUTE - SECOND
    with pytest.raises(
        InvalidInput, match="idempotency_key: must not contain a time more than an hour in the future"
    ):
        pay(streams)
    assert not list(tables.items("streams"))


def test_what_is_appended_under_a_moment_ahead_has_the_time_of_the_clock(
    streams: Streams, clock: Clock
) -> None:
    pay(streams)
    clock.now += SECOND
    streams.append(STREAM, [OTHER])
    assert [event.timestamp[:19] for event in streams.read(STREAM)] == [
        "2027-01-15T07:59:00",
        "2027-01-15T07:59:01",
    ]


def test_a_search_ends_at_the_moment(streams: Streams, clock: Clock) -> None:
    for _ in range(300):
        streams.append(STREAM, [Event(type="Opened", data=b"%d" % clock.now)])
    clock.now = NOON + SECOND
    token = streams.append(STREAM, [OTHER]).token
    for expected in (token, ANY):
        made = pay(streams, expected, key=key_of(str(expected)[0].lower(), NOON))
        assert made.capacity.write == 1
        assert made.capacity.requests <= 4
        assert made.capacity.read <= 5


def test_a_key_from_long_ago_takes_few_requests(
    streams: Streams, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "is_full", lambda *_, **__: True)
    for _ in range(300):
        streams.append(STREAM, [OTHER])
    assert pay(streams, key=key_of("k", NOON - DAY)).capacity.requests <= 7


def test_what_was_pruned_since_the_moment_leaves_it_open_and_what_was_before_does_not(
    streams: Streams, clock: Clock
) -> None:
    streams.append(STREAM, [OTHER] * 3)
    clock.now = NOON + SECOND
    streams.prune(STREAM, 3)
    streams.append(STREAM, [OTHER])
    with pytest.raises(OutcomeUndetermined):
        streams.append(STREAM, [PAID], idempotency_key=key_of("k", NOON - 2 * MINUTE))
    streams.prune(STREAM, 4)
    with pytest.raises(OutcomeUndetermined):
        streams.append(STREAM, [PAID], idempotency_key=KEY)
    assert not pay(streams, key=key_of("l", NOON + 2 * SECOND)).replayed


def test_appends_of_a_bulk_under_such_keys_are_one_write_and_each_is_made_once(
    streams: Streams, tables: MemoryTables, clock: Clock
) -> None:
    streams.append(STREAM, [OTHER])
    clock.now = NOON
    keys = [key_of(letter, NOON - SECOND) for letter in "abcca"]
    many = [
        BulkAppend(stream=STREAM, events=[Event(type="Paid", data=key[-2:].encode())], idempotency_key=key)
        for key in keys
    ]
    for replayed in ([False, False, False, True, True], [True] * 5):
        told = Bulk(streams).append(many)
        assert [each.first for each in told if isinstance(each, Appended)] == [1, 2, 3, 3, 1]
        assert [each.replayed for each in told if isinstance(each, Appended)] == replayed
    assert {item["p"]["S"] for item in tables.items("streams")} == {STREAM}


@pytest.mark.parametrize("order", ["kk", "zkk", "kzk", "kkz", "zkzkzk", "klkl"])
@pytest.mark.parametrize(
    "moment", [NOON - SECOND, NOON - DAY, NOON + MINUTE], ids=["now", "long ago", "ahead"]
)
@pytest.mark.parametrize("expected", [ANY, NO_STREAM, "token"], ids=str)
def test_of_two_appends_of_a_bulk_under_one_such_key_the_second_is_answered_like_the_first(
    streams: Streams, clock: Clock, order: str, moment: int, expected: object
) -> None:
    if expected == "token":
        expected = streams.append(STREAM, [OTHER]).token
    clock.now = NOON
    many = [
        BulkAppend(
            stream=STREAM,
            events=[Event(type="Paid", data=letter.encode())],
            expected=expected if number == 0 else ANY,
            idempotency_key=None if letter == "z" else key_of(letter, moment),
        )
        for number, letter in enumerate(order)
    ]
    answers = Bulk(streams).append(many)
    assert all(isinstance(each, Appended) for each in answers)
    stored = [event.data.decode() for event in streams.read(STREAM) if event.type == "Paid"]
    once = [letter for place, letter in enumerate(order) if letter == "z" or letter not in order[:place]]
    assert stored == once
    replayed = [each.replayed for each in answers if isinstance(each, Appended)]
    assert replayed == [letter != "z" and letter in order[:place] for place, letter in enumerate(order)]


def test_a_decision_under_it_costs_what_one_without_a_key_costs_and_a_repeat_is_answered_alike() -> None:
    costs = list[Capacity]()
    for key in (None, key_of("k", NOON + MINUTE)):
        store = Store(layout=Pages(), kind="streams")
        tallies = store.tallies(STRATEGIES["unoptimized"])
        tallies = replace(tallies, streams=replace(tallies.streams, now=lambda: NOON))
        tallies.handle("Tally-1", decide=add(1))
        made = tallies.handle("Tally-1", decide=add(2), idempotency_key=key)
        costs.append(made.capacity)
        if key is not None:
            again = tallies.handle("Tally-1", decide=add(3), idempotency_key=key)
            assert (again.events, again.version) == (made.events, 2)
    assert costs[0] == costs[1]


def test_streams_of_tips_put_a_record_for_it_too(clock: Clock) -> None:
    tables = memory_tables()
    tips = replace(memory_tips(tables), now=clock)
    clock.now = NOON - 9 * MINUTE
    pay(tips)
    clock.now = NOON + MINUTE
    assert pay(tips, Token(version=7)).replayed


@pytest.mark.parametrize("how", ["any", "token", "no stream"])
def test_with_tags_and_without_them_it_is_one_key(streams: Streams, clock: Clock, how: str) -> None:
    tagged = replace(PAID, tags=("a:1",))
    for number, (one, other) in enumerate(((PAID, tagged), (tagged, PAID))):
        name, key = f"Account-{number}", key_of("k", NOON + number * MINUTE)
        clock.now = NOON + number * MINUTE
        first = streams.append(name, [one], idempotency_key=key)
        expected = {"any": ANY, "token": first.token, "no stream": NO_STREAM}[how]
        with pytest.raises(InvalidInput, match="idempotency_key: was already used"):
            streams.append(name, [other], expected=expected, idempotency_key=key)
        again = streams.append(name, [one], expected=expected, idempotency_key=key)
        assert (again.first, again.replayed) == (0, True)
        assert [event.tags for event in streams.read(name)] == [one.tags]


def test_under_a_condition_it_is_answered_like_the_first_without(streams: Streams, clock: Clock) -> None:
    clock.now = NOON
    query = Query(items=(QueryItem(tags=frozenset({"a:1"})),))
    first = pay(streams)
    again = streams.append(STREAM, [PAID], fail_if=query, expected=AtVersion(version=7), idempotency_key=KEY)
    assert (again.version, again.token.etag, again.replayed) == (1, first.token.etag, True)


@pytest.mark.parametrize("tags", [(), ("a:1",)])
def test_with_tags_or_a_condition_it_is_left_open_too_where_what_tells_is_pruned(
    streams: Streams, clock: Clock, tags: tuple[str, ...]
) -> None:
    query = Query(items=(QueryItem(tags=frozenset({"b:1"})),))
    again, clock.now = replace(PAID, tags=tags), NOON
    streams.append(STREAM, [again], idempotency_key=KEY)
    streams.append(STREAM, [OTHER])
    streams.prune(STREAM, 1)
    clock.now += 2 * DAY
    with pytest.raises(OutcomeUndetermined):
        streams.append(STREAM, [again], fail_if=query, idempotency_key=KEY)
    assert types(streams) == ["Opened"]


@pytest.mark.parametrize("prefix", ["", "shop/"])
def test_a_new_key_is_a_uuid_of_version_7_that_tells_now_and_is_another_each_time(prefix: str) -> None:
    before = time.time_ns() // 1_000_000
    keys = {new_key(prefix) for _ in range(1_000)}
    after = time.time_ns() // 1_000_000
    assert len(keys) == 1_000
    for key in keys:
        made = UUID(key.removeprefix(prefix))
        assert (made.version, made.variant) == (7, RFC_4122)
        assert before <= made.int >> 80 <= after
        assert moment_of_key(key, from_unix_nanoseconds(time.time_ns())) > NEVER
