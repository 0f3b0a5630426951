"""What a caller expects of the stream that is decided on, and states that a stream had before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

import pytest

from epochal import NO_STREAM, STREAM_EXISTS, AtVersion, Event
from epochal.contrib.equinox import memory_tips
from epochal.deciders.cache import Cache
from epochal.deciders.loading import ALLOW_LAG, ASSUME_EMPTY, AllowStale
from epochal.deciders.on_streams import Deciders
from epochal.errors import ConflictError, EventsPruned, InvalidInput, StreamDeleted
from epochal.model.expected_version import ANY, ExpectedVersion
from epochal.model.tokens import Token, parse_token
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams
from tests.layouts.deciders.tally import CODEC, DECIDER, STRATEGIES, Tallies, Tally, TallyEvent, add, clear
from tests.support.async_deciders import async_deciders

DAYS = ["2026-11-01T12:00:00Z", "2026-11-02T12:00:00Z", "2026-11-03T12:00:00Z", "2026-11-04T12:00:00Z"]


def tallies(streams: Streams | None = None, **options: object) -> Tallies:
    return Deciders(streams=streams or memory_streams(), decider=DECIDER, codec=CODEC, **options)  # type: ignore[arg-type]


def test_a_decision_is_made_only_on_what_its_caller_has_seen() -> None:
    deciders = tallies()
    seen = deciders.handle("Tally-1", add(1), expected=NO_STREAM)
    assert seen.token is not None
    deciders.handle("Tally-1", add(2), expected=seen.token)

    asked: list[int] = []

    def decide(state: Tally) -> Sequence[TallyEvent]:
        asked.append(state.total)
        return add(3)(state)

    for expected in (seen.token, NO_STREAM, AtVersion(version=1)):
        with pytest.raises(ConflictError) as refused:
            deciders.handle("Tally-1", decide=decide, expected=expected)
        outcome = refused.value.outcome
        assert (outcome.version, outcome.token.version) == (2, 2)  # type: ignore[union-attr]
    with pytest.raises(ConflictError):
        deciders.handle(
            "Tally-2", decide=lambda state: ("x", decide(state)), expected=STREAM_EXISTS, with_result=True
        )
    assert asked == [], "nothing is decided"
    for expected in (ANY, STREAM_EXISTS, AtVersion(version=4)):
        deciders.handle("Tally-1", decide=decide, expected=expected)
    assert asked == [3, 6, 9]


def test_an_outcome_says_what_a_further_write_expects_also_where_there_is_no_stream() -> None:
    deciders = tallies()
    none = deciders.handle("Tally-1", add(0))
    assert none.expected is NO_STREAM
    assert (none.token.text(), parse_token(none.token.text())) == ("0", none.token)
    one = deciders.handle("Tally-1", add(1), expected=none.expected)
    assert one.expected == one.token
    deciders.handle("Tally-1", add(2), expected=one.expected)
    for outcome in (none, one):
        with pytest.raises(ConflictError):
            deciders.handle("Tally-1", add(2), expected=outcome.expected)


def test_a_decision_that_stores_nothing_is_refused_likewise() -> None:
    deciders = tallies()
    deciders.handle("Tally-1", add(1))
    with pytest.raises(ConflictError):
        deciders.handle("Tally-1", add(0), expected=NO_STREAM)


def test_a_writer_who_is_faster_meanwhile_is_a_conflict_and_no_further_try() -> None:
    deciders = tallies()
    token = deciders.handle("Tally-1", add(1)).token
    asked: list[int] = []

    def decide(state: Tally) -> Sequence[TallyEvent]:
        asked.append(state.total)
        deciders.handle("Tally-1", add(5))
        return add(3)(state)

    assert token is not None
    with pytest.raises(ConflictError) as refused:
        deciders.handle("Tally-1", decide=decide, expected=token)
    assert (asked, refused.value.outcome.version) == ([1], 2)  # type: ignore[union-attr]


@pytest.mark.parametrize("load", [AllowStale(), ALLOW_LAG, ASSUME_EMPTY])
def test_an_old_state_is_compared_with_the_store_before_it_is_refused(load: AllowStale) -> None:
    streams, cache = memory_streams(), Cache()
    mine = tallies(streams, cache=cache)
    mine.handle("Tally-1", add(1))
    newest = tallies(streams).handle("Tally-1", add(2)).token

    assert newest is not None
    assert mine.handle("Tally-1", add(3), load=load, expected=newest).state == Tally(6)


def test_a_repeat_under_a_key_is_answered_whatever_it_expects() -> None:
    deciders = tallies()
    first = deciders.handle("Tally-1", add(1), expected=NO_STREAM, idempotency_key="k")
    deciders.handle("Tally-1", add(2))
    again = deciders.handle("Tally-1", add(1), expected=NO_STREAM, idempotency_key="k")
    assert (again.replayed, again.version, again.events) == (True, 1, first.events)
    with pytest.raises(ConflictError):
        deciders.handle("Tally-1", add(1), expected=NO_STREAM, idempotency_key="other")


@pytest.mark.parametrize("expected", [1, "1", None, Token(version=-1)])
def test_what_is_no_expectation_is_refused(expected: ExpectedVersion) -> None:
    with pytest.raises(InvalidInput, match="expected"):
        tallies().handle("Tally-1", add(1), expected=expected)


def test_it_is_awaited_too() -> None:
    async def both() -> int:
        deciders = async_deciders(tallies())
        await deciders.handle("Tally-1", add(1), expected=NO_STREAM)
        await deciders.handle("Tally-1", add(2))
        with pytest.raises(ConflictError):
            await deciders.handle("Tally-1", add(2), expected=NO_STREAM)
        return await deciders.query("Tally-1", lambda state: state.total, as_of=1)

    assert asyncio.run(both()) == 1


def total(state: Tally) -> int:
    return state.total


@pytest.mark.slow
@pytest.mark.parametrize("layout", [memory_streams, memory_tips])
@pytest.mark.parametrize("strategy", [name for name, each in STRATEGIES.items() if not each.state_in_unfolds])
def test_the_state_as_of_every_version_is_that_of_the_events_before_it(
    strategy: str, layout: Callable[[], Streams]
) -> None:
    deciders = tallies(layout(), access=STRATEGIES[strategy])
    commands = [clear if number % 7 == 0 else add(number) for number in range(1, 30)]
    were = [0, *(deciders.handle("Tally-1", command).state.total for command in commands)]
    assert [deciders.query("Tally-1", total, as_of=version) for version in range(30)] == were
    with pytest.raises(InvalidInput, match="as_of: is beyond the end of Tally-1"):
        deciders.query("Tally-1", total, as_of=30)
    assert deciders.query("Tally-2", total, as_of=0) == 0


def test_the_state_as_of_a_moment_is_that_of_the_events_up_to_the_last_that_had_happened() -> None:
    streams = memory_streams()
    deciders = tallies(streams)
    for number, day in enumerate(DAYS, 1):
        encoded = CODEC.encode(add(number)(deciders.query("Tally-1", lambda state: state))[0])
        streams.append("Tally-1", [Event(type=encoded.type, data=encoded.data, timestamp=day)])

    found = [deciders.query("Tally-1", total, as_of=day) for day in DAYS]
    assert found == [1, 3, 6, 10]
    assert deciders.query("Tally-1", total, as_of="2026-11-03T11:59:59Z") == 3
    assert deciders.query("Tally-1", total, as_of="2026-10-31T00:00:00Z") == 0
    assert deciders.query("Tally-1", total, as_of="2027-01-01T00:00:00Z") == 10
    assert deciders.query("Tally-2", total, as_of=DAYS[0]) == 0
    assert [deciders.query("Tally-1", total, as_of=day) for day in DAYS] == found
    assert [deciders.query("Tally-1", total, as_of=datetime.fromisoformat(day)) for day in DAYS] == found
    for naive in (DAYS[0].removesuffix("Z"), datetime.fromisoformat(DAYS[0]).replace(tzinfo=None)):
        with pytest.raises(InvalidInput, match="as_of: must .*time zone"):
            deciders.query("Tally-1", total, as_of=naive)
    with pytest.raises(InvalidInput, match="as_of: must be an ISO 8601"):
        deciders.query("Tally-1", total, as_of="yesterday")


def test_a_state_whose_events_are_gone_or_were_never_stored_is_not_made_up() -> None:
    streams = memory_streams()
    deciders = tallies(streams, access=STRATEGIES["snapshot"])
    for number in range(1, 6):
        deciders.handle("Tally-1", add(number))
    streams.prune("Tally-1", 3)
    with pytest.raises(EventsPruned):
        deciders.query("Tally-1", total, as_of=4)
    assert deciders.query("Tally-1", total) == 15
    rolling = tallies(streams, access=STRATEGIES["rolling state"])
    with pytest.raises(InvalidInput, match="as_of: needs a strategy that stores events"):
        rolling.query("Tally-1", total, as_of=1)
    streams.delete("Tally-1")
    with pytest.raises(StreamDeleted):
        deciders.query("Tally-1", total, as_of=1)
