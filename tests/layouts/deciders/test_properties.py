"""Whatever is commanded, in whatever order, by whomever: every strategy keeps the state that all events make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.deciders.cache import Cache
from epochal.deciders.loading import ALLOW_LAG, ASSUME_EMPTY, REQUIRE_LOAD, AllowStale, Load
from epochal.layout.streams import AnyStreamLayout
from tests.layouts.deciders.tally import (
    CODEC,
    STRATEGIES,
    Refused,
    Store,
    Tallies,
    Tally,
    TallyEvent,
    add,
    clear,
    evolve,
    total,
)
from tests.support.stream_layouts import WAYS

S = "Tally-1"
STORING_EVENTS = ["unoptimized", "latest known event", "snapshot", "multi-snapshot"]
Decide = Callable[[Tally], Sequence[TallyEvent]]


def several(count: int) -> Decide:
    """Several events at once."""

    def decide(state: Tally) -> Sequence[TallyEvent]:
        events: list[TallyEvent] = []
        for _ in range(count):
            events += add(1)(reduce(evolve, events, state))
        return events

    return decide


COMMANDS: st.SearchStrategy[Decide] = st.one_of(
    st.integers(-20, 20).map(add), st.just(clear), st.integers(1, 5).map(several)
)
LOADS: st.SearchStrategy[Load | AllowStale] = st.sampled_from(
    [REQUIRE_LOAD, ALLOW_LAG, ASSUME_EMPTY, AllowStale()]
)
WRITERS = st.sampled_from(["cached", "uncached", "shared cache"])
LAYOUT_CHOICES: st.SearchStrategy[AnyStreamLayout] = st.sampled_from([*WAYS.values()])


def writers(store: Store, strategy: str) -> dict[str, Tallies]:
    shared = Cache(entries=1)
    access = STRATEGIES[strategy]
    return {
        "cached": store.tallies(access, cache=Cache()),
        "uncached": store.tallies(access),
        "shared cache": store.elsewhere(access, cache=shared),
    }


@pytest.mark.slow
@given(steps=st.lists(st.tuples(WRITERS, COMMANDS, LOADS), max_size=25), layout=LAYOUT_CHOICES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_keeps_the_state_that_all_events_make(
    strategy: str, steps: list[tuple[str, Decide, Load | AllowStale]], layout: AnyStreamLayout
) -> None:
    store = Store(layout=layout)
    by_name = writers(store, strategy)
    state, history = Tally(), list[TallyEvent]()
    for writer, decide, load in steps:
        try:
            expected = tuple(decide(state))
        except Refused:
            with pytest.raises(Refused):
                by_name[writer].handle(S, decide=decide, load=load)
            continue
        outcome = by_name[writer].handle(S, decide=decide, load=load)
        state = reduce(evolve, expected, state)
        history += expected
        assert (outcome.events, outcome.state) == (expected, state)
    assert {name: tallies.query(S, total) for name, tallies in by_name.items()} == dict.fromkeys(
        by_name, state.total
    )
    if strategy in STORING_EVENTS:
        encoded = [CODEC.encode(event) for event in history]
        assert [(event.type, event.data) for event in store.others.read(S)] == [
            (event.type, event.data) for event in encoded
        ]


@given(
    steps=st.lists(st.tuples(st.sampled_from(STORING_EVENTS), COMMANDS), max_size=25),
    layout=LAYOUT_CHOICES,
)
def test_strategies_that_store_events_may_take_turns_on_one_stream(
    steps: list[tuple[str, Decide]], layout: AnyStreamLayout
) -> None:
    store, state, cache = Store(layout=layout), Tally(), Cache()
    for strategy, decide in steps:
        try:
            state = reduce(evolve, decide(state), state)
        except Refused:
            continue
        assert (
            store.tallies(STRATEGIES[strategy], cache=cache).handle(S, decide=decide, load=AllowStale()).state
            == state
        )
    for strategy in STORING_EVENTS:
        assert store.tallies(STRATEGIES[strategy]).query(S, total) == state.total
