"""A decision under an idempotency key: a repeat is answered like the first, and what was decided is stored once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from epochal.contrib.equinox.calving import Fixed
from epochal.contrib.equinox.streams import Tips
from epochal.deciders.access import custom
from epochal.deciders.cache import Cache
from epochal.deciders.loading import ALLOW_LAG, ASSUME_EMPTY, REQUIRE_LOAD, AllowStale
from epochal.deciders.on_streams import handle_all
from epochal.deciders.stream_decisions import AllTransacted, Transacted
from epochal.errors import EventsPruned, InvalidInput, OutcomeUndetermined, TooLarge, Unavailable
from epochal.errors import Refused as Denied
from epochal.model.events import Event, Unfold
from epochal.model.stream_append import StreamAppend
from epochal.pages.layout import Pages
from epochal.plan.ops import Delete, Op, Put, Transact, Update
from epochal.settings import KEY_WINDOW_SECONDS
from tests.layouts.deciders.tally import (
    STRATEGIES,
    Added,
    Refused,
    Store,
    Tally,
    TallyEvent,
    add,
    is_snapshot,
    to_snapshot,
)

S = "Tally-1"
KEYED = ("unoptimized", "latest known event", "snapshot", "multi-snapshot")
"""Strategies whose states are made of events."""

LAYOUTS = {
    "pages": (Pages(), "streams"),
    "tips": (Tips(), "tips"),
    "tips that are calved": (Tips(calving=Fixed(max_events=2, mode="two-step")), "tips"),
}


@pytest.fixture(params=LAYOUTS)
def store(request: pytest.FixtureRequest) -> Store:
    layout, kind = LAYOUTS[request.param]
    return Store(layout=layout, kind=kind)


def drawn(numbers: Iterator[int]) -> Callable[[Tally], Sequence[TallyEvent]]:
    """A decision that is another one each time it is made, and more events the larger the state is."""

    def decide(state: Tally) -> Sequence[TallyEvent]:
        by = next(numbers)
        return [Added(by, state.total + by)] * (1 + state.total % 3)

    return decide


def told(outcome: Transacted[Tally, TallyEvent]) -> tuple[Any, ...]:
    """What a caller is told; a token's sizes are guesses."""
    etag = None if outcome.token is None else outcome.token.etag
    return outcome.state, outcome.events, outcome.version, etag


def written(store: Store) -> int:
    return len(list(store.others.read(S)))


@pytest.mark.slow
@pytest.mark.parametrize("strategy", KEYED)
@pytest.mark.parametrize("since", [0, 1, 7])
def test_a_repeat_is_answered_like_the_first_whatever_the_stream_is_by_then(
    store: Store, strategy: str, since: int
) -> None:
    tallies, numbers = store.tallies(STRATEGIES[strategy]), count(5)
    tallies.handle(S, decide=add(1))
    first = tallies.handle(S, decide=drawn(numbers), idempotency_key="a")
    for _ in range(since):
        tallies.handle(S, decide=add(100))
    before = written(store)

    again = tallies.handle(S, decide=drawn(numbers), idempotency_key="a")

    assert told(again) == told(first)
    assert (first.replayed, again.replayed) == (False, True)
    assert written(store) == before
    assert store.others.append(S, [Event(type="Cleared", data=b"{}")]).first == before


def test_a_command_that_would_be_refused_by_now_is_answered_as_it_was(store: Store) -> None:
    tallies = store.tallies()
    tallies.handle(S, decide=add(3))
    first = tallies.handle(S, add(-3), idempotency_key="take")
    with pytest.raises(Refused):
        tallies.handle(S, add(-3))

    assert told(tallies.handle(S, add(-3), idempotency_key="take")) == told(first)


def test_a_result_is_that_of_the_state_that_was_decided_on(store: Store) -> None:
    def take(state: Tally) -> tuple[int, Sequence[TallyEvent]]:
        return state.total, [Added(1, state.total + 1)]

    tallies = store.tallies(STRATEGIES["snapshot"])
    tallies.handle(S, decide=add(7))
    assert tallies.handle(S, decide=take, idempotency_key="a", with_result=True)[0] == 7
    assert tallies.handle(S, decide=take, idempotency_key="a", with_result=True)[0] == 7, (
        "the append is the last one still"
    )
    assert tallies.handle(S, decide=take, with_result=True)[0] == 8
    assert tallies.handle(S, decide=take, idempotency_key="a", with_result=True)[0] == 7
    assert written(store) == 3


@pytest.mark.parametrize("load", [REQUIRE_LOAD, ALLOW_LAG, ASSUME_EMPTY, AllowStale()], ids=str)
def test_however_the_state_was_got_at_a_repeat_is_noticed(store: Store, load: Any) -> None:
    here, elsewhere = store.tallies(cache=Cache()), store.elsewhere()
    here.handle(S, decide=add(1))
    first = elsewhere.handle(S, decide=add(2), idempotency_key="a")

    again = here.handle(S, decide=add(2), load=load, idempotency_key="a")

    assert (told(again), again.replayed) == (told(first), True)
    assert written(store) == 2


def test_a_key_is_of_its_stream(store: Store) -> None:
    tallies = store.tallies()
    tallies.handle(S, decide=add(1), idempotency_key="a")
    assert not tallies.handle("Tally-2", decide=add(1), idempotency_key="a").replayed
    assert not tallies.handle(S, decide=add(1), idempotency_key="b").replayed


def test_a_decision_that_stored_nothing_is_made_again(store: Store) -> None:
    tallies = store.tallies()
    assert tallies.handle(S, decide=lambda _: [], idempotency_key="a").events == ()
    with pytest.raises(Refused):
        tallies.handle(S, decide=add(-1), idempotency_key="a")
    assert tallies.handle(S, decide=add(1), idempotency_key="a").events == (Added(1, 1),)
    assert tallies.handle(S, decide=add(1), idempotency_key="a").events == (Added(1, 1),)
    assert written(store) == 1


@pytest.mark.parametrize("overtakers", range(4))
def test_what_was_decided_elsewhere_under_the_key_while_this_was_is_what_is_answered(
    store: Store, overtakers: int
) -> None:
    """Others append too, so that refusals and what is read after them lie apart."""
    tallies, elsewhere, numbers = store.tallies(), store.elsewhere(), count(5)
    tallies.handle(S, decide=add(1))
    others = iter(range(overtakers))
    rival: list[Any] = []

    def overtaken(state: Tally) -> Sequence[TallyEvent]:
        if next(others, None) is not None:
            elsewhere.handle(S, decide=add(3))
        elif not rival:
            rival.append(elsewhere.handle(S, decide=drawn(numbers), idempotency_key="a"))
            for _ in range(overtakers):
                elsewhere.handle(S, decide=add(3))
        return drawn(numbers)(state)

    mine = tallies.handle(S, decide=overtaken, idempotency_key="a")

    assert (told(mine), mine.replayed) == (told(rival[0]), True)
    assert written(store) == 1 + 2 * overtakers + len(mine.events)


@pytest.mark.parametrize("meanwhile", ["unfolds", "events"])
def test_a_decision_that_is_made_again_on_a_later_state_asks_nothing_of_its_keys_record(
    store: Store, meanwhile: str
) -> None:
    """The key was free up to the state before, so only what came since is searched."""
    tallies, states = store.tallies(), list[Tally]()
    tallies.handle(S, decide=add(1))

    def decide(state: Tally) -> Sequence[TallyEvent]:
        if not states and meanwhile == "events":
            store.elsewhere().handle(S, decide=add(3))
        elif not states:
            store.others.append(S, [], unfolds=[Unfold(type="Other", data=b"1")])
        states.append(state)
        return add(1)(state)

    store.ops.clear()
    made = tallies.handle(S, decide=decide, idempotency_key="a")
    assert len(states) == 2, "the first try met what came meanwhile"
    assert made.state == Tally(states[1].total + 1)
    assert [type(op) for op in store.ops if "$Idempotency-" in str(op)] == [Put]


def test_a_stale_state_that_leads_to_nothing_is_not_decided_on_past_the_key(store: Store) -> None:
    """The state is read again, and the key looked for on what was read."""
    cache = Cache()
    here, elsewhere = store.tallies(cache=cache), store.elsewhere()
    here.handle(S, decide=add(1))
    made: list[Any] = []

    def take(state: Tally) -> Sequence[TallyEvent]:
        if not made:
            made.append(elsewhere.handle(S, decide=add(5), idempotency_key="a"))
            return []
        return [Added(1, state.total + 1)]

    mine = here.handle(S, decide=take, load=AllowStale(), idempotency_key="a")
    assert told(mine) == told(made[0])
    assert written(store) == 2


@pytest.mark.parametrize("kind", [Put, Update, Transact])
def test_a_lost_answer_is_the_one_that_the_repeat_gets(store: Store, kind: type[Op]) -> None:
    lost = iter([True])
    tallies, numbers = store.tallies(), count(5)
    tallies.handle(S, decide=add(1))

    def lose(op: Op) -> bool:
        return isinstance(op, kind) and next(lost, False)

    store.lose = lose
    first = tallies.handle(S, decide=drawn(numbers), idempotency_key="a")
    assert told(tallies.handle(S, decide=drawn(numbers), idempotency_key="a")) == told(first)
    assert written(store) == 1 + len(first.events)


def test_a_key_of_an_append_is_refused_to_a_decision_and_the_other_way_round(store: Store) -> None:
    tallies = store.tallies()
    store.others.append(S, [Event(type="Cleared", data=b"{}")], idempotency_key="a")
    with pytest.raises(InvalidInput, match="was already used for an append with other contents"):
        tallies.handle(S, decide=add(1), idempotency_key="a")
    tallies.handle(S, decide=add(1), idempotency_key="b")
    with pytest.raises(InvalidInput, match="was already used for an append with other contents"):
        store.others.append(S, [Event(type="Cleared", data=b"{}")], idempotency_key="b")
    assert written(store) == 2


def test_a_key_of_unfolds_alone_is_refused_to_a_decision(store: Store) -> None:
    tallies = store.tallies()
    tallies.handle(S, decide=add(1))
    store.others.append(S, [], unfolds=[Unfold(type="State", data=b"{}")], idempotency_key="a")
    with pytest.raises(InvalidInput, match="was already used for an append with other contents"):
        tallies.handle(S, decide=add(1), idempotency_key="a")
    assert written(store) == 1


def test_a_decision_that_stores_unfolds_alone_takes_no_key(store: Store) -> None:
    tallies = store.tallies(custom(is_snapshot, lambda _, state: ((), (to_snapshot(state),))))
    with pytest.raises(InvalidInput, match="idempotency_key"):
        tallies.handle(S, decide=add(1), idempotency_key="a")
    assert store.others.load(S) is None


@pytest.mark.parametrize("strategy", sorted(set(STRATEGIES) - set(KEYED)))
def test_a_state_that_no_events_make_takes_no_key(store: Store, strategy: str) -> None:
    tallies = store.tallies(STRATEGIES[strategy])
    with pytest.raises(InvalidInput, match="idempotency_key"):
        tallies.handle(S, decide=add(1), idempotency_key="a")
    assert store.others.load(S) is None


def test_what_a_key_was_used_for_is_undetermined_once_it_is_pruned(store: Store) -> None:
    tallies = store.tallies(STRATEGIES["snapshot"])
    tallies.handle(S, decide=add(1), idempotency_key="a")
    for _ in range(12):
        tallies.handle(S, decide=add(1))
    store.others.prune(S, 13)
    with pytest.raises((OutcomeUndetermined, EventsPruned)):
        tallies.handle(S, decide=add(1), idempotency_key="a")
    assert tallies.query(S, lambda state: state.total) == 13


def test_behind_a_prune_the_last_decision_of_a_stream_with_snapshots_is_answered(store: Store) -> None:
    tallies = store.tallies(STRATEGIES["snapshot"])
    for _ in range(12):
        tallies.handle(S, decide=add(1))
    store.others.prune(S, 12)
    first = tallies.handle(S, decide=add(1), idempotency_key="a")
    assert told(tallies.handle(S, decide=add(1), idempotency_key="a")) == told(first)


def test_a_key_costs_one_write_unit_and_one_request() -> None:
    store = Store(layout=Pages(), kind="streams")
    tallies = store.tallies()
    tallies.handle(S, decide=add(1))
    plain = tallies.handle(S, decide=add(1)).capacity
    keyed = tallies.handle(S, decide=add(1), idempotency_key="a").capacity
    again = tallies.handle(S, decide=add(1), idempotency_key="a").capacity
    assert keyed.write == plain.write + 1
    assert keyed.requests == plain.requests + 1
    assert (again.read, again.write, again.requests) == (6.0, 1.0, 6)


def behind(store: Store) -> Any:
    """Deciders that hold a state of a later version than the stream's: its table was brought back to a moment before.

    No try may be below what the key's record says.
    """
    cache = Cache()
    held = store.tallies(cache=cache)
    for _ in range(3):
        held.handle(S, decide=add(1))
    for item in store.tables.items(store.kind):
        store.tables.execute(Delete(table=store.kind, key={"p": item["p"], "i": item["i"]}))
    store.elsewhere().handle(S, decide=add(1))
    return held


def test_a_decision_on_a_state_that_was_ahead_of_the_stream_is_found_by_its_repeat(store: Store) -> None:
    made = behind(store).handle(S, decide=add(1), load=AllowStale(), idempotency_key="a")
    again = store.elsewhere().handle(S, decide=add(1), idempotency_key="a")
    assert (made.version, told(again), again.replayed) == (2, told(made), True)
    assert written(store) == 2


def test_what_was_decided_elsewhere_is_found_though_the_state_in_hand_was_ahead_of_the_stream(
    store: Store,
) -> None:
    made: list[Any] = []

    def overtaken(state: Tally) -> Sequence[TallyEvent]:
        if not made:
            made.append(store.elsewhere().handle(S, decide=add(5), idempotency_key="a"))
        return add(1)(state)

    mine = behind(store).handle(S, decide=overtaken, load=AllowStale(), idempotency_key="a")
    assert (told(mine), mine.replayed) == (told(made[0]), True)
    assert written(store) == 2


# ------------------------------------------------------------------------------------------------- on several streams

A, B = "Tally-a", "Tally-b"


def joint(store: Store, decide: Any, key: str | None = "k", streams: Sequence[str] = (A, B)) -> Any:
    tallies = store.tallies(STRATEGIES["snapshot"])
    return handle_all([tallies.on(each) for each in streams], decide, idempotency_key=key)


def all_told(outcome: AllTransacted[tuple[Transacted[Tally, TallyEvent], ...]]) -> list[tuple[Any, ...]]:
    return [told(each) for each in outcome.parties]


def drawn_for_both(numbers: Iterator[int]) -> Callable[[Tally, Tally], Any]:
    return lambda one, other: (drawn(numbers)(one), drawn(numbers)(other))


@pytest.fixture
def pages() -> Store:
    return Store(layout=Pages(), kind="streams")


@pytest.mark.parametrize("since", [0, 1, 7])
@pytest.mark.parametrize("begun", [False, True])
def test_a_repeat_on_several_streams_is_answered_like_the_first(
    pages: Store, since: int, begun: bool
) -> None:
    numbers = count(5)
    if begun:
        pages.tallies().handle(A, decide=add(1))
    first = joint(pages, drawn_for_both(numbers))
    for _ in range(since):
        pages.tallies().handle(B, decide=add(100))

    again = joint(pages, drawn_for_both(numbers))
    turned = joint(pages, drawn_for_both(numbers), streams=(B, A))

    assert all_told(again) == all_told(first) == all_told(turned)[::-1]
    assert [each.replayed for each in (*first.parties, *again.parties)] == [False, False, True, True]
    assert len(list(pages.others.read(A))) == begun + len(first.parties[0].events)
    assert len(list(pages.others.read(B))) == since + len(first.parties[1].events)


@pytest.mark.parametrize("begun", [False, True])
def test_what_was_only_read_is_answered_as_it_was_too(pages: Store, begun: bool) -> None:
    if begun:
        pages.tallies().handle(B, decide=add(4))
    first = joint(pages, lambda one, other: (add(other.total or 1)(one), ()))
    pages.tallies().handle(B, decide=add(9))
    again = joint(pages, lambda one, other: (add(other.total or 1)(one), ()))
    assert all_told(again) == all_told(first)
    assert again.parties[1].version == begun


def test_a_joint_decision_that_stored_nothing_is_made_again(pages: Store) -> None:
    joint(pages, lambda *_: ((), ()))
    assert [each.events for each in joint(pages, lambda *_: ((), add(1)(Tally()))).parties] == [
        (),
        (Added(1, 1),),
    ]


@pytest.mark.parametrize("overtakers", range(4))
def test_a_joint_decision_made_elsewhere_under_the_key_is_what_is_answered(
    pages: Store, overtakers: int
) -> None:
    numbers, rival, others = count(5), list[Any](), iter(range(overtakers))

    def overtaken(one: Tally, other: Tally) -> Any:
        if next(others, None) is not None:
            pages.elsewhere().handle(A, decide=add(3))
        elif not rival:
            elsewhere = pages.elsewhere(STRATEGIES["snapshot"])
            parties = [elsewhere.on(A), elsewhere.on(B)]
            rival.append(handle_all(parties, drawn_for_both(numbers), idempotency_key="k"))
            for _ in range(overtakers):
                pages.elsewhere().handle(B, decide=add(3))
        return drawn_for_both(numbers)(one, other)

    mine = joint(pages, overtaken)
    assert all_told(mine) == all_told(rival[0])


@pytest.mark.parametrize("times", [1, 2])
def test_a_lost_answer_of_a_joint_decision_is_the_one_that_the_repeat_gets(pages: Store, times: int) -> None:
    numbers, lost = count(5), iter([True] * times)
    pages.lose = lambda op: isinstance(op, Transact) and next(lost, False)
    first = joint(pages, drawn_for_both(numbers))
    assert all_told(joint(pages, drawn_for_both(numbers))) == all_told(first)
    assert len(list(pages.others.read(A))) == len(first.parties[0].events)


def test_a_key_of_an_append_to_several_streams_is_refused_to_a_joint_decision(pages: Store) -> None:
    event = Event(type="Cleared", data=b"{}")
    appends = [StreamAppend(stream=each, events=[event]) for each in (A, B)]
    pages.others.append_all(appends, idempotency_key="k")
    with pytest.raises(InvalidInput, match="was already used for an append with other contents"):
        joint(pages, lambda one, other: (add(1)(one), add(1)(other)))
    joint(pages, lambda one, other: (add(1)(one), add(1)(other)), key="other")
    with pytest.raises(InvalidInput, match="was already used for an append with other contents"):
        pages.others.append_all(appends, idempotency_key="other")


def test_under_a_key_one_stream_less_takes_part(pages: Store) -> None:
    with pytest.raises(TooLarge, match="parties"):
        joint(pages, lambda *_: [()] * 100, streams=[f"Tally-{number}" for number in range(100)])


def test_a_key_of_a_joint_decision_costs_two_write_units(pages: Store) -> None:
    def both(one: Tally, other: Tally) -> Any:
        return add(1)(one), add(1)(other)

    plain, keyed = joint(pages, both, key=None).capacity, joint(pages, both).capacity
    assert (keyed.write - plain.write, keyed.requests - plain.requests) == (2.0, 1)


def a_day_later(store: Store) -> Store:
    """Another process, and the same tables, once keys of before are forgotten."""
    later = store.others.now() + (KEY_WINDOW_SECONDS + 60) * 10**9
    store.others = replace(store.others, now=lambda: later)
    store.streams = replace(store.streams, now=lambda: later)
    return store


def test_a_key_that_is_used_anew_after_its_day_is_answered_with_what_it_was_used_for_last(
    store: Store,
) -> None:
    store.tallies().handle(S, decide=add(1), idempotency_key="daily")
    tallies = a_day_later(store).tallies()

    anew = tallies.handle(S, decide=add(2), idempotency_key="daily")
    again = tallies.handle(S, decide=add(2), idempotency_key="daily")

    assert (anew.replayed, again.replayed) == (False, True)
    assert told(again) == told(anew)
    assert written(store) == 2


@pytest.mark.parametrize("load", [ASSUME_EMPTY, AllowStale()], ids=str)
def test_after_its_day_a_key_on_a_state_from_before_its_use_is_a_late_repeat(store: Store, load: Any) -> None:
    """Only a further read could tell where the former use ended, and so which of the two an append behind that state is
    of. Whoever repeats a command late gets its answer; and for another its key may not be used.
    """
    here = store.tallies(cache=Cache())
    here.handle(S, decide=add(1))
    first = store.elsewhere().handle(S, decide=add(2), idempotency_key="daily")

    late = replace(here, streams=a_day_later(store).streams).handle(
        S, decide=add(2), load=load, idempotency_key="daily"
    )

    assert (told(late), late.replayed) == (told(first), True)
    assert written(store) == 2


@pytest.mark.parametrize("body", [b"{}", b'{"other":1}'])
def test_an_append_under_a_key_of_a_day_before_is_made_though_another_writer_is_in_its_way(
    store: Store, body: bytes
) -> None:
    store.others.append(S, [Event(type="Cleared", data=b"{}")], idempotency_key="daily")
    a_day_later(store)
    waiting = [Event(type="Cleared", data=b"9")]

    def other_writer(op: Op) -> None:
        if isinstance(op, Put | Update | Transact) and store.requests()[:-1] and waiting:
            store.others.append(S, [waiting.pop()])

    store.before = other_writer
    new = [Event(type="Cleared", data=body)]
    made = store.streams.append(S, new, idempotency_key="daily")
    again = store.streams.append(S, new, idempotency_key="daily")

    assert (made.first, made.replayed) == (again.first, False) == (2, not again.replayed)
    assert [event.data for event in store.others.read(S)] == [b"{}", b"9", body]


def test_an_error_while_a_repeat_is_told_what_was_decided_says_that_it_may_be_there(store: Store) -> None:
    tallies = store.tallies()

    def alone() -> Any:
        return tallies.handle(S, decide=add(1), idempotency_key="a")

    def both() -> Any:
        parties = (tallies.on(S), tallies.on("Tally-2"))
        return handle_all(parties, lambda _, __: ([Added(1, 1)], [Added(2, 2)]), idempotency_key="b")

    for decide in (alone, both) if isinstance(store.streams.layout, Pages) else (alone,):
        decide()
        store.requests()
        decide()
        left = [len(store.requests()) - 1]

        def denied(_: Op, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Denied("Query", "the security token is expired")

        store.before = denied
        with pytest.raises(Unavailable) as told:
            decide()
        assert told.value.maybe_applied
        assert isinstance(told.value.__cause__, Denied)
        store.before = lambda _: None
