"""Decisions on several streams: what they store, what they cost, and that nobody comes between what they have read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.deciders.cache import Cache
from epochal.deciders.loading import ALLOW_LAG, ASSUME_EMPTY, REQUIRE_LOAD, AllowStale
from epochal.deciders.on_streams import handle_all
from epochal.deciders.stream_decisions import Transacted
from epochal.errors import Contended, InvalidInput, OutcomeUndetermined, StreamDeleted
from epochal.model.capacity import Capacity
from epochal.model.events import Event
from epochal.model.outcomes import Appended, Conflict, Outcome
from epochal.model.stream_append import StreamAppend
from epochal.model.tokens import Token
from epochal.pages import writes
from epochal.pages.layout import Pages
from epochal.plan.ops import QUICKEST, Check, Op, Query, Transact, TransactGet
from epochal.store.encoding import BodyCodec
from epochal.testing.stores import MemoryBodies, memory_streams
from tests.layouts.deciders.tally import (
    CODEC,
    DECIDER,
    STRATEGIES,
    Added,
    Refused,
    Store,
    Tallies,
    Tally,
    TallyEvent,
    add,
)
from tests.support.lagging import Lagging, oldest

A, B, C = "Tally-a", "Tally-b", "Tally-c"

Both = tuple[Sequence[TallyEvent], Sequence[TallyEvent]]


@pytest.fixture
def store() -> Store:
    return Store(layout=Pages(), kind="streams")


def move(amount: int) -> Callable[[Tally, Tally], Both]:
    """From the first to the second."""

    def decide(source: Tally, target: Tally) -> Both:
        if amount > source.total:
            raise Refused(amount, source.total)
        if not amount:
            return (), ()
        return [Added(-amount, source.total - amount)], [Added(amount, target.total + amount)]

    return decide


def withdraw(amount: int) -> Callable[[Tally, Tally], Both]:
    """From the first, as long as both together cover it."""

    def decide(one: Tally, other: Tally) -> Both:
        if amount > one.total + other.total:
            raise Refused(amount)
        return [Added(-amount, one.total - amount)], ()

    return decide


def both(tallies: Tallies, *streams: str) -> Any:
    return tuple(tallies.on(stream) for stream in streams or (A, B))


def totals(store: Store, *streams: str) -> list[int]:
    return [store.elsewhere().query(stream, lambda state: state.total) for stream in streams or (A, B)]


def filled(store: Store, stream: str, total: int) -> None:
    store.elsewhere().handle(stream, decide=lambda state: [Added(total, state.total + total)])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_decided_for_several_streams_is_stored_in_all_of_them_by_one_request(
    store: Store, strategy: str
) -> None:
    tallies = store.tallies(STRATEGIES[strategy])
    tallies.handle(A, decide=add(5))
    store.requests()

    made = handle_all(both(tallies), move(3))

    assert store.requests() == ["Query", "Query", "Transact"]
    assert [each.state for each in made.parties] == [Tally(2), Tally(3)]
    assert [each.events for each in made.parties] == [(Added(-3, 2),), (Added(3, 3),)]
    assert made.capacity == Capacity(read=2.0, write=4.0, requests=3)
    for stream, each in zip((A, B), made.parties, strict=True):
        assert tallies.query(stream, lambda state: state) == each.state
        state = store.others.load(stream)
        assert state is not None
        assert state.token == each.token


def test_a_stream_that_is_only_read_is_fenced_and_left_as_it_is(store: Store) -> None:
    filled(store, A, 1)
    filled(store, B, 5)
    before = store.others.load(B)
    store.requests()

    made = handle_all(both(store.tallies()), withdraw(4))

    transaction = store.ops[-1]
    assert isinstance(transaction, Transact)
    assert [type(write).__name__ for write in transaction.writes] == ["Update", "Check"]
    assert made.capacity.write == 4, "a fence costs what a write costs"
    assert store.others.load(B) == before
    assert totals(store) == [-3, 5]


@pytest.mark.parametrize("full", [False, True], ids=["open pages", "full pages"])
@pytest.mark.parametrize("load", [REQUIRE_LOAD, ALLOW_LAG, AllowStale()], ids=["required", "lag", "stale"])
def test_of_two_who_each_write_what_the_other_has_read_one_decides_again(
    store: Store, load: Any, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "is_full", lambda *_, **__: full)
    filled(store, A, 3)
    filled(store, B, 2)
    mine, others = store.tallies(cache=Cache()), store.elsewhere()
    handle_all(both(mine), lambda *_: ((), ()))
    overtaking = iter([lambda: handle_all(both(others, B, A), withdraw(5))])

    def decide(one: Tally, other: Tally) -> Both:
        for overtake in overtaking:
            overtake()
        return withdraw(5)(one, other)

    with pytest.raises(Refused):
        handle_all(both(mine), decide, load=load)
    assert totals(store) == [3, -3]


def test_what_is_decided_again_is_decided_on_what_the_refusal_brought(store: Store) -> None:
    for stream in (A, B, C):
        filled(store, stream, 5)
    others = iter([lambda: filled(store, B, 1)])
    seen: list[tuple[int, ...]] = []

    def decide(*states: Tally) -> list[list[TallyEvent]]:
        seen.append(tuple(state.total for state in states))
        for other in others:
            other()
        return [[Added(1, state.total + 1)] for state in states[:2]] + [[]]

    store.requests()
    made = handle_all(both(store.tallies(), A, B, C), decide)

    assert store.requests() == ["Query"] * 3 + ["Transact"] * 2, "no head is read a second time"
    assert seen == [(5, 5, 5), (5, 6, 5)]
    assert [each.state.total for each in made.parties] == [6, 7, 5]


def test_from_the_second_refusal_on_what_has_moved_is_read_after_the_pause(store: Store) -> None:
    for stream in (A, B):
        filled(store, stream, 5)
    amounts, waited = iter([1, 2, 3]), []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        filled(store, B, 10)

    def decide(one: Tally, other: Tally) -> Both:
        for amount in amounts:
            filled(store, B, amount)
            break
        return withdraw(1)(one, other)

    unhurried = replace(store.streams.driver, luck=lambda: 1.0, clock=lambda: 0.0, sleep=pause)
    slow = replace(store.streams, driver=unhurried)
    store.requests()
    made = handle_all(both(replace(store.tallies(), streams=slow)), decide)

    assert waited == [32 * QUICKEST, 48 * QUICKEST]
    assert [each.state.total for each in made.parties] == [4, 31]
    assert store.requests() == ["Query"] * 2 + ["Transact"] * 2 + ["Query", "Transact"] * 2


def test_a_stream_that_is_read_and_has_moved_alone_is_read_on_from_its_full_page(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(store, A, 5)
    monkeypatch.setattr(writes, "is_full", lambda *_, **__: True)
    filled(store, B, 5)
    others = iter([lambda: filled(store, B, 1), lambda: filled(store, B, 2)])

    def decide(one: Tally, other: Tally) -> Both:
        for each in others:
            each()
        return withdraw(1)(one, other)

    made = handle_all(both(store.tallies()), decide)

    assert [each.state.total for each in made.parties] == [4, 8]
    queried = [op.partition[1]["S"] for op in store.ops if isinstance(op, Query)]
    assert queried.count(A) == 1


def all_moves_between_the_reads(store: Store) -> None:
    """Between the read of one stream and that of the other, all that was in one goes to the other."""
    filled(store, A, 5)
    moved = iter([True])

    def before(op: Op) -> None:
        if isinstance(op, Query) and op.partition[1]["S"] == B and next(moved, False):
            handle_all(both(store.elsewhere()), move(5))

    store.before = before


def test_a_decision_that_stores_nothing_is_told_of_one_moment_only(store: Store) -> None:
    all_moves_between_the_reads(store)
    seen: list[int] = []

    def audit(one: Tally, other: Tally) -> Both:
        seen.append(one.total + other.total)
        return (), ()

    made = handle_all(both(store.tallies()), audit)

    assert seen == [10, 5], "what never was is not what is told"
    assert [each.state.total for each in made.parties] == [0, 5]
    assert [each.events for each in made.parties] == [(), ()]
    assert [type(op) for op in store.ops[-2:]] == [TransactGet, TransactGet]


def test_an_error_of_the_domain_is_one_of_states_that_were_at_one_moment(store: Store) -> None:
    filled(store, A, 5)
    tallies = store.tallies(cache=Cache())
    handle_all(both(tallies), move(0))
    store.elsewhere().handle(B, decide=add(2))

    made = handle_all(both(tallies), withdraw(7), load=AllowStale())

    assert [each.state.total for each in made.parties] == [-2, 2]
    with pytest.raises(Refused):
        handle_all(both(tallies), withdraw(1), load=AllowStale())


@pytest.mark.parametrize("where", ["decide", "evolve"])
def test_what_fails_on_a_state_that_never_was_is_decided_again(store: Store, where: str) -> None:
    all_moves_between_the_reads(store)
    seen: list[int] = []

    def sound(one: Tally, other: Tally) -> Both:
        seen.append(one.total + other.total)
        if where == "decide" and seen[-1] != 5:
            raise Refused(seen[-1])
        return [Added(seen[-1], 0)], ()

    def evolve(state: Tally, event: TallyEvent) -> Tally:
        if isinstance(event, Added) and event.by == 10:
            raise Refused(event.by)
        return DECIDER.evolve(state, event)

    tallies = replace(store.tallies(), decider=replace(DECIDER, evolve=evolve))

    made = handle_all(both(tallies), sound)

    assert seen == [10, 5]
    assert [each.state.total for each in made.parties] == [0, 5]


def test_a_cached_decision_is_one_request(store: Store) -> None:
    filled(store, A, 9)
    filled(store, B, 9)
    tallies = store.tallies(STRATEGIES["snapshot"], cache=Cache())
    handle_all(both(tallies), move(1))
    store.requests()

    for amount in (1, 2):
        handle_all(both(tallies), move(amount), load=AllowStale())
    handle_all(both(tallies), withdraw(3), load=AllowStale())
    assert store.requests() == ["Transact"] * 3
    handle_all(both(tallies), move(0), load=AllowStale())
    assert store.requests() == ["TransactGet"]
    assert totals(store) == [2, 13]


def test_loads_that_may_lag_cost_half_and_are_found_out_where_they_do(store: Store) -> None:
    lagging = Lagging(store.tables, oldest)
    streams = replace(store.others, driver=replace(store.others.driver, execute=lagging.execute))
    tallies = replace(store.tallies(), streams=streams)
    tallies.handle(A, decide=add(5))

    made = handle_all(both(tallies), move(2), load=ALLOW_LAG)

    assert [each.state.total for each in made.parties] == [3, 2]
    assert made.capacity.read == 1.0 + 4.0, (
        "an error on an old state is compared with all heads, at one moment"
    )


def test_streams_that_are_new_as_assumed_take_one_request(store: Store) -> None:
    made = handle_all(both(store.tallies()), lambda *_: ([Added(1, 1)], ()), load=ASSUME_EMPTY)

    assert store.requests() == ["Transact"]
    assert made.parties[0].version == 1
    assert made.parties[1].token == Token(version=0)


@pytest.mark.parametrize("written", [A, B], ids=["the first", "the other"])
def test_a_lost_answer_is_stored_once(store: Store, written: str) -> None:
    filled(store, A, 5)
    filled(store, B, 5)
    lost = iter([True])
    store.lose = lambda op: isinstance(op, Transact) and next(lost, False)
    parties = both(store.tallies(), written, A if written == B else B)

    made = handle_all(parties, withdraw(4))

    assert made.parties[0].state == Tally(1)
    assert sorted(totals(store)) == [1, 5]


def test_a_fence_that_another_has_moved_does_not_hide_what_was_stored(store: Store) -> None:
    """The answer is lost, the stream that was only read moves on, and its page alone is told of."""
    filled(store, A, 5)
    filled(store, B, 5)
    lost = iter([True])

    def lose(op: Op) -> bool:
        if isinstance(op, Transact) and next(lost, False):
            filled(store, B, 1)
            return True
        return False

    store.lose = lose
    inner = store.tables.execute

    def execute(op: Op) -> Any:
        reply = inner(op)
        if isinstance(op, Transact) and hasattr(reply, "failed"):
            checks = tuple(isinstance(write, Check) for write in op.writes)
            items = tuple(item if check else None for item, check in zip(reply.items, checks, strict=True))
            return replace(reply, failed=checks, items=items)
        return reply

    store.tables.execute = execute  # type: ignore[method-assign]
    made = handle_all(both(store.tallies()), withdraw(4))

    assert made.parties[0].state == Tally(1)
    assert totals(store) == [1, 6]


def test_a_deleted_stream_keeps_the_decision_from_all(store: Store) -> None:
    filled(store, A, 5)
    filled(store, B, 5)
    ended = iter([True])

    def decide(one: Tally, other: Tally) -> Both:
        if next(ended, False):
            store.others.delete(B)
        return withdraw(1)(one, other)

    with pytest.raises(StreamDeleted, match=B):
        handle_all(both(store.tallies()), decide)
    assert totals(store, A) == [5]


def test_one_who_is_overtaken_each_time_gives_up(store: Store) -> None:
    filled(store, A, 5)

    def decide(one: Tally, other: Tally) -> Both:
        filled(store, B, 1)
        return withdraw(1)(one, other)

    with pytest.raises(Contended, match=f"{B}: overtaken by other writers at each of 3 attempts"):
        handle_all(both(store.tallies()), decide, attempts=3)
    assert totals(store) == [5, 3]


def test_an_answer_that_nothing_can_tell_any_more_is_undetermined(store: Store) -> None:
    filled(store, A, 5)
    lost = iter([True])

    def lose(op: Op) -> bool:
        if isinstance(op, Transact) and next(lost, False):
            filled(store, A, 1)
            store.others.prune(A, 3)
            return True
        return False

    store.lose = lose
    with pytest.raises(OutcomeUndetermined, match=A):
        handle_all(both(store.tallies()), withdraw(4))


def test_parties_may_have_rules_of_their_own(store: Store) -> None:
    """Typed: `mypy` reads this test, too."""
    filled(store, A, 5)
    notes = replace(store.tallies(), access=STRATEGIES["rolling state"])

    def decide(tally: Tally, note: Tally) -> Both:
        return [Added(1, tally.total + 1)], [Added(tally.total, tally.total)]

    one, other = handle_all((store.tallies().on(A), notes.on("Note-a")), decide).parties

    stored: tuple[Transacted[Tally, TallyEvent], ...] = (one, other)
    assert [each.version for each in stored] == [2, 0]
    assert notes.query("Note-a", lambda state: state.total) == 5


@pytest.mark.parametrize(
    ("streams", "decide", "said"),
    [
        ((), lambda: (), "parties: must not be empty"),
        ((A, A), move(0), "parties: must not name a stream twice"),
        ((A, B), lambda *_: [()], "decide: must return a sequence of events for each party, in order"),
        (
            (A, B),
            lambda *_: None,
            "decide: must be a function that returns a sequence of events for each party",
        ),
        ((A, B), lambda *_: ((), ["x"]), "evolve: must return a state, but returned None for str"),
        ((A, "no dash"), move(0), "stream"),
        (tuple(f"Tally-{k}" for k in range(101)), move(0), "parties: 101 streams, at most 100"),
    ],
)
def test_what_cannot_be_one_decision_is_refused(
    store: Store, streams: tuple[str, ...], decide: Any, said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        handle_all(tuple(store.tallies().on(stream) for stream in streams), decide)
    assert not list(store.tables.items("streams"))


def test_parties_may_have_taken_the_store_from_a_deployment_one_after_the_other(store: Store) -> None:
    tallies = store.tallies()
    again = replace(tallies, streams=replace(tallies.streams, codec=BodyCodec(bodies=MemoryBodies())))
    assert again.streams != tallies.streams
    tallies.handle(A, decide=add(5))
    handle_all((tallies.on(A), again.on(B)), move(1))
    assert [tallies.query(stream, lambda state: state.total) for stream in (A, B)] == [4, 1]


def test_parties_of_several_stores_or_of_a_layout_that_cannot_are_refused(store: Store) -> None:
    other = replace(store.tallies(), streams=memory_streams())
    with pytest.raises(InvalidInput, match="parties: must all use the same table"):
        handle_all((store.tallies().on(A), other.on(B)), move(0))
    tips = Tallies(streams=memory_tips(), decider=DECIDER, codec=CODEC)
    with pytest.raises(InvalidInput, match="cannot be appended in one transaction with the layout tips"):
        handle_all((tips.on(A), tips.on(B)), move(0))
    with pytest.raises(InvalidInput, match="attempts"):
        handle_all(both(store.tallies()), move(0), attempts=0)


def test_a_token_of_another_process_is_no_fence_before_its_page_was_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be forged, and name a place where there is nothing."""
    monkeypatch.setattr(writes, "is_full", lambda *_, **__: True)
    filled(store, A, 5)
    token = store.others.append(B, [Event(type="Cleared")]).token
    forged = replace(token, version=7, of="")

    def held(known: Token) -> Outcome:
        cleared = StreamAppend(stream=A, events=[Event(type="Cleared")])
        return store.others.append_on({A: store.others.head(A), B: known}, [cleared])

    moved = held(forged)
    assert isinstance(moved, Conflict)
    assert moved.streams.keys() == {B}
    appended = held(replace(token, of=""))
    assert isinstance(appended, Appended)
    assert appended.streams.keys() == {A}
