"""Many writers, lost responses, deleted streams: no update is lost, none is made twice, and what fails says why."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from random import Random

import pytest

from epochal.contrib.equinox.calving import Fixed
from epochal.contrib.equinox.streams import Tips
from epochal.deciders.cache import Cache
from epochal.deciders.loading import ASSUME_EMPTY, REQUIRE_LOAD, AllowStale, Load
from epochal.errors import (
    ConflictError,
    Contended,
    InvalidInput,
    OutcomeUndetermined,
    StreamDeleted,
    Unavailable,
)
from epochal.model.events import Unfold
from epochal.pages.layout import Pages
from epochal.plan.ops import QUICKEST, Op, Put, Update
from tests.layouts.deciders.tally import (
    CODEC,
    STRATEGIES,
    Added,
    Refused,
    Store,
    Tally,
    TallyEvent,
    add,
    total,
)

S = "Tally-1"
Decide = Callable[[Tally], Sequence[TallyEvent]]


def overtaken_by(store: Store, strategy: str, times: int) -> Decide:
    """Add 1, while another adds 10 between reading and writing, so many times."""
    left = iter(range(times))

    def decide(state: Tally) -> Sequence[TallyEvent]:
        if next(left, None) is not None:
            store.elsewhere(STRATEGIES[strategy]).handle(S, decide=add(10))
        return add(1)(state)

    return decide


@pytest.mark.slow
@pytest.mark.parametrize("load", [REQUIRE_LOAD, ASSUME_EMPTY, AllowStale()], ids=str)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_writers_in_threads_lose_no_update(strategy: str, load: Load | AllowStale) -> None:
    writers, each = 4, 12
    store = Store(layout=Tips(calving=Fixed(max_events=5)))
    start = threading.Barrier(writers)
    shared = Cache(entries=2)

    def write(position: int) -> None:
        cache = shared if position % 2 else Cache()
        tallies = store.tallies(STRATEGIES[strategy], cache=cache, attempts=writers * each)
        start.wait()
        for _ in range(each):
            tallies.handle(S, decide=add(1), load=load)

    threads = [threading.Thread(target=write, args=(position,)) for position in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.elsewhere(STRATEGIES[strategy]).query(S, total) == writers * each


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_of_two_who_begin_a_stream_neither_is_lost(strategy: str) -> None:
    """A Tip that holds unfolds alone has no events, and is a stream all the same."""
    store = Store()
    assert store.tallies(STRATEGIES[strategy]).handle(
        S, decide=overtaken_by(store, strategy, 1)
    ).state == Tally(11)
    assert store.elsewhere(STRATEGIES[strategy]).query(S, total) == 11


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_change_of_unfolds_alone_is_a_conflict(strategy: str) -> None:
    """The etag tells, where the version does not."""
    store = Store()
    tallies = store.tallies(STRATEGIES[strategy], cache=Cache())
    tallies.handle(S, decide=add(1))
    state = store.others.load(S)
    assert state is not None
    store.others.append(
        S, [], unfolds=[Unfold(type=unfold.type, data=unfold.data) for unfold in state.unfolds]
    )
    store.requests()
    assert tallies.handle(S, decide=add(1), load=AllowStale()).state == Tally(2)
    assert store.requests() == ["Update", "Update"]


def test_a_rolling_state_is_fenced_by_its_etag() -> None:
    store = Store()
    rolling = STRATEGIES["rolling state"]
    stale = store.tallies(rolling, cache=Cache())
    stale.handle(S, decide=add(1))
    store.elsewhere(rolling).handle(S, decide=add(10))
    outcome = stale.handle(S, decide=add(1), load=AllowStale())
    assert (outcome.state, outcome.version) == (Tally(12), 0)
    assert store.elsewhere(rolling).query(S, total) == 12


# ----------------------------------------------------------------------------------------- giving up


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_decision_is_attempted_as_often_as_allowed(strategy: str) -> None:
    store = Store()
    assert (
        store.tallies(STRATEGIES[strategy], attempts=3)
        .handle(S, decide=overtaken_by(store, strategy, 2))
        .state.total
        == 21
    )
    with pytest.raises(Contended, match="overtaken by other writers at each of 3 attempts") as raised:
        store.tallies(STRATEGIES[strategy], attempts=3).handle(S, decide=overtaken_by(store, strategy, 3))
    assert isinstance(raised.value, ConflictError)
    assert raised.value.attempts == 3
    assert store.elsewhere(STRATEGIES[strategy]).query(S, total) == 51


def test_ten_attempts_are_made_unless_told_otherwise() -> None:
    store = Store()
    assert store.tallies().handle(S, decide=overtaken_by(store, "unoptimized", 9)).state == Tally(91)
    with pytest.raises(Contended):
        store.tallies().handle(S, decide=overtaken_by(store, "unoptimized", 10))


def test_attempts_below_one_are_refused() -> None:
    with pytest.raises(InvalidInput, match="attempts"):
        Store().tallies(attempts=0)


@pytest.mark.parametrize("load", [REQUIRE_LOAD, ASSUME_EMPTY, AllowStale()], ids=str)
@pytest.mark.parametrize("decide", [add(1), add(0), add(-9)], ids=["an event", "no event", "an error"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_deleted_stream_says_so_whatever_is_decided(
    strategy: str, decide: Decide, load: Load | AllowStale
) -> None:
    store = Store()
    tallies = store.tallies(STRATEGIES[strategy], cache=Cache())
    tallies.handle(S, decide=add(1))
    store.others.delete(S)
    with pytest.raises(StreamDeleted):
        tallies.handle(S, decide=decide, load=load)
    with pytest.raises(StreamDeleted, match="Tally-1: deleted at version [01],"):
        tallies.query(S, total)


def test_a_stream_deleted_at_the_last_attempt_says_so() -> None:
    store = Store()
    store.tallies().handle(S, decide=add(1))

    def decide(state: Tally) -> Sequence[TallyEvent]:
        store.others.delete(S)
        return add(1)(state)

    with pytest.raises(StreamDeleted):
        store.tallies(attempts=1).handle(S, decide=decide)


def test_a_malformed_name_is_refused_before_anything_is_sent() -> None:
    store = Store()
    for load in (REQUIRE_LOAD, ASSUME_EMPTY, AllowStale()):
        with pytest.raises(InvalidInput, match="stream"):
            store.tallies(cache=Cache()).handle("not a name", decide=add(1), load=load)
    with pytest.raises(InvalidInput, match="stream"):
        store.tallies().query("$System", total)
    assert store.requests() == []


# ------------------------------------------------------------------------------------ lost responses


def lose_first_write(store: Store, meanwhile: Callable[[], object] = lambda: None) -> None:
    """The first write is applied, its response lost, and something happens before it is sent again."""
    writes = count()

    def lose(op: Op) -> bool:
        if isinstance(op, Put | Update) and next(writes) == 0:
            meanwhile()
            return True
        return False

    store.lose = lose


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_decision_whose_response_is_lost_is_stored_once(strategy: str) -> None:
    store = Store()
    store.elsewhere(STRATEGIES[strategy]).handle(S, decide=add(1))
    lose_first_write(store)
    assert store.tallies(STRATEGIES[strategy], cache=Cache()).handle(S, decide=add(1)).state == Tally(2)
    assert store.elsewhere(STRATEGIES[strategy]).query(S, total) == 2


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "rolling state"])
def test_a_lost_decision_that_others_built_upon_is_found_and_stands(strategy: str) -> None:
    store = Store()
    elsewhere = store.elsewhere(STRATEGIES[strategy])
    elsewhere.handle(S, decide=add(1))
    lose_first_write(store, lambda: elsewhere.handle(S, decide=add(1)))
    cache = Cache()
    outcome = store.tallies(STRATEGIES[strategy], cache=cache).handle(S, decide=add(1))
    assert (outcome.state, outcome.events) == (Tally(2), (Added(1, 2),))
    assert elsewhere.query(S, total) == 3
    assert store.tallies(STRATEGIES[strategy], cache=cache).handle(
        S, decide=add(1), load=AllowStale()
    ).state == Tally(4)


def test_a_lost_rolling_state_that_others_replaced_is_undetermined() -> None:
    store = Store()
    elsewhere = store.elsewhere(STRATEGIES["rolling state"])
    lose_first_write(store, lambda: elsewhere.handle(S, decide=add(1)))
    with pytest.raises(OutcomeUndetermined):
        store.tallies(STRATEGIES["rolling state"]).handle(S, decide=add(1))


def test_a_lost_decision_whose_evidence_was_pruned_is_undetermined() -> None:
    store = Store()

    def bury() -> None:
        store.elsewhere().handle(S, decide=add(1))
        store.others.prune(S, before=2)

    lose_first_write(store, bury)
    with pytest.raises(OutcomeUndetermined, match="version 0"):
        store.tallies().handle(S, decide=add(1))


def test_an_outage_passes_through_and_says_whether_it_may_have_been_applied() -> None:
    store = Store()
    store.lose = lambda op: isinstance(op, Put)
    store.now = 0.0
    store.before = lambda _: setattr(store, "now", store.now + 20.0)
    with pytest.raises(Unavailable) as raised:
        store.tallies().handle(S, decide=add(1))
    assert raised.value.maybe_applied


# --------------------------------------------------------------------------------- users' own errors


def test_errors_of_the_domain_pass_through_and_nothing_is_written() -> None:
    store = Store()
    with pytest.raises(Refused):
        store.tallies().handle(S, decide=add(-1))
    assert store.requests() == ["Get"]
    assert store.others.load(S) is None


def test_a_result_is_that_of_the_decision_that_stands() -> None:
    store = Store()
    attempts = iter(range(2))

    def decide(state: Tally) -> tuple[str, Sequence[TallyEvent]]:
        if next(attempts, None) is not None:
            store.elsewhere().handle(S, decide=add(10))
        return f"saw {state.total}", add(1)(state)

    assert store.tallies().handle(S, decide=decide, with_result=True)[0] == "saw 20"
    assert store.tallies().handle(S, decide=lambda state: (state.total, []), with_result=True)[0] == 21


def test_a_command_is_handled_by_the_decider() -> None:
    store = Store()
    assert store.tallies().handle(S, add(3)).state == Tally(3)
    assert store.tallies().handle(S, add(4), load=ASSUME_EMPTY).events == (Added(4, 7),)


def test_who_is_refused_once_decides_again_at_once_and_then_after_pauses() -> None:
    store, waited = Store(layout=Pages(), kind="streams"), []
    lucky = replace(store.streams.driver, luck=lambda: 1.0, clock=lambda: 0.0, sleep=waited.append)
    tallies = replace(store.tallies(), streams=replace(store.streams, driver=lucky))

    tallies.handle(S, decide=overtaken_by(store, "unoptimized", 1))
    assert waited == []

    tallies.handle(S, decide=overtaken_by(store, "unoptimized", 6))
    assert waited == [times * QUICKEST for times in (32, 48, 32, 16, 16)]


def test_a_full_page_that_stood_in_the_way_is_not_read_again() -> None:
    store = Store(layout=Pages(), kind="streams")
    tallies, noise = store.tallies(cache=Cache()), Random(1).randbytes(600)
    tallies.handle(S, decide=add(1))
    for reached in (2, 3):
        store.others.append(S, [replace(CODEC.encode(Added(1, reached)), meta=noise)])
    store.requests()

    assert tallies.handle(S, decide=add(1), load=AllowStale()).state.total == 4
    assert store.requests() == ["Update", "Query", "Put"], "refused; the last page; appended"
