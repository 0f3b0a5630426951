"""Loads that may lag: half the read units, and no decision that the latest state would not lead to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.contrib.equinox.calving import Fixed
from epochal.contrib.equinox.streams import Tips
from epochal.deciders.cache import Cache
from epochal.deciders.loading import ALLOW_LAG, REQUIRE_LOAD
from epochal.layout.streams import AnyStreamLayout
from epochal.model.capacity import Capacity
from epochal.testing.stores import memory_tables
from tests.layouts.deciders.tally import STRATEGIES, Refused, Store, Tallies, Tally, add
from tests.support.lagging import Choice, Lagging, oldest
from tests.support.stream_layouts import LAYOUTS

S = "Tally-1"


def latest_of(
    choice: Choice, layout: AnyStreamLayout, strategy: str = "unoptimized", **options: object
) -> Tallies:
    """Deciders whose eventually consistent reads are of the state that is chosen."""
    tables = memory_tables()
    streams = memory_tips(tables)
    driver = replace(streams.driver, execute=Lagging(tables, choice).execute)
    streams = replace(streams, driver=driver, layout=layout)
    return replace(Store().tallies(STRATEGIES[strategy], **options), streams=streams)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_decision_reads_half_a_unit_where_nobody_else_has_written(layout: str, strategy: str) -> None:
    tallies = latest_of(lambda states: states[-1], LAYOUTS[layout], strategy)
    for expected in range(1, 4):
        outcome = tallies.handle(S, decide=add(1), load=ALLOW_LAG)
        assert outcome.state == Tally(expected)
        assert outcome.capacity == Capacity(read=0.5, write=1.0, requests=2)


@pytest.mark.parametrize("strategy", ["unoptimized", "snapshot"])
def test_the_events_before_a_head_come_for_half_too(strategy: str) -> None:
    spent: list[float] = []
    for load in (REQUIRE_LOAD, ALLOW_LAG):
        tallies = latest_of(lambda states: states[-1], Tips(calving=Fixed(max_events=2)))
        for _ in range(9):
            tallies.handle(S, decide=add(1))
        other = replace(tallies, access=STRATEGIES[strategy])
        spent.append(other.handle(S, decide=add(1), load=load).capacity.read)
    assert spent[0] >= 2
    assert spent[1] == spent[0] / 2


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_refusal_brings_the_truth_without_a_second_read(layout: str, strategy: str) -> None:
    tallies = latest_of(oldest, LAYOUTS[layout], strategy)
    for expected in range(1, 4):
        outcome = tallies.handle(S, decide=add(1), load=ALLOW_LAG)
        assert outcome.state == Tally(expected)
    assert outcome.capacity == Capacity(read=0.5, write=2.0, requests=3)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_decision_that_stores_nothing_is_made_again_on_what_is_there(layout: str, strategy: str) -> None:
    tallies = latest_of(oldest, LAYOUTS[layout], strategy)
    tallies.handle(S, decide=add(5))
    seen: list[int] = []

    def enough(state: Tally) -> list[object]:
        seen.append(state.total)
        return []

    outcome = tallies.handle(S, decide=enough, load=ALLOW_LAG)  # type: ignore[arg-type]
    assert seen == [0, 5]
    assert outcome.state == Tally(5)
    assert outcome.capacity == Capacity(read=1.5, requests=2)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_error_of_the_domain_is_raised_of_the_latest_state_only(layout: str) -> None:
    tallies = latest_of(oldest, LAYOUTS[layout])
    tallies.handle(S, decide=add(5))
    assert tallies.handle(S, decide=add(-5), load=ALLOW_LAG).state == Tally(0)
    with pytest.raises(Refused):
        tallies.handle(S, decide=add(-1), load=ALLOW_LAG)


def test_a_cached_state_that_is_later_than_a_replica_is_decided_on() -> None:
    tallies = latest_of(oldest, Tips(), cache=Cache())
    tallies.handle(S, decide=add(1))
    for _ in range(3):
        assert tallies.handle(S, decide=add(1), load=ALLOW_LAG).capacity == Capacity(
            read=0.5, write=1.0, requests=2
        )


def test_what_an_old_head_needs_and_is_gone_is_no_error() -> None:
    tables = memory_tables()
    streams = memory_tips(tables)
    old = iter([tables])
    lagging = Lagging(tables, lambda states: next(old, states[-1]))
    streams = replace(
        streams,
        driver=replace(streams.driver, execute=lagging.execute),
        layout=Tips(calving=Fixed(max_events=1, mode="two-step")),
    )
    plain = replace(Store().tallies(), streams=streams)
    for _ in range(4):
        plain.handle(S, decide=add(1))
    old = iter([tables.copy()])
    keeping = replace(plain, access=STRATEGIES["snapshot"])
    keeping.handle(S, decide=add(1))
    streams.prune(S, 5)
    assert keeping.handle(S, decide=add(1), load=ALLOW_LAG).state == Tally(6)
    assert next(old, None) is None, "the old head was read"
