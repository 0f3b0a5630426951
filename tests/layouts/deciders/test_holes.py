"""No state is made over a hole: whoever pruned, and even if while the state was being made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from epochal.contrib.equinox.calving import Fixed
from epochal.contrib.equinox.streams import Tips
from epochal.deciders.access import Access, custom
from epochal.errors import EventsPruned
from epochal.index.checkpoints import calf_key
from epochal.plan.ops import Delete, Op, Query, Reply
from epochal.testing.memory import MemoryTables
from tests.layouts.deciders.tally import DECIDER, STRATEGIES, Added, Cleared, Store, Tally, TallyEvent, add

S = "Tally-1"
EVENTS = 9


def filled() -> Store:
    """Nine events, eight of them in calves of two."""
    store = Store(layout=Tips(calving=Fixed(max_events=2, mode="two-step")))
    for _ in range(EVENTS):
        store.tallies().handle(S, decide=add(1))
    store.requests()
    return store


def equinox(tables: MemoryTables, before: int) -> None:
    """Its pruner deletes calves, oldest first, and leaves no mark."""
    for base in range(0, before, 2):
        tables.execute(Delete(table="tips", key=calf_key(S, base)))


def folded(
    store: Store, access: Access[Tally, TallyEvent] = STRATEGIES["unoptimized"], **options: bool
) -> list[int]:
    """The totals of the events that a state is made of."""
    totals = list[int]()

    def noting(state: Tally, event: TallyEvent) -> Tally:
        totals.append(event.total if isinstance(event, Added) else 0)
        return DECIDER.evolve(state, event)

    tallies = replace(store.tallies(access, **options), decider=replace(DECIDER, evolve=noting))
    tallies.query(S, lambda state: state.total)
    return totals


def pruned_while_read(store: Store, prune: Callable[[], object], after: int) -> None:
    """The store answers with an item a request, and is pruned after so many."""
    perform = store.tables.execute
    left = after

    def slowly(op: Op) -> Reply:
        nonlocal left
        reply = perform(replace(op, limit=1) if isinstance(op, Query) else op)
        left -= 1
        if left == 0:
            store.tables.execute = perform  # type: ignore[method-assign]
            prune()
            store.tables.execute = slowly  # type: ignore[method-assign]
        return reply

    store.tables.execute = slowly  # type: ignore[method-assign]


def test_a_state_is_not_made_of_what_equinox_left_of_a_stream() -> None:
    store = filled()
    equinox(store.tables, 4)

    with pytest.raises(EventsPruned) as pruned:
        folded(store)

    assert (pruned.value.needed, pruned.value.low_water) == (0, 4)


def test_a_stream_that_equinox_pruned_begins_anew_where_that_is_chosen() -> None:
    store = filled()
    equinox(store.tables, 4)

    assert folded(store, forget_pruned=True) == [5, 6, 7, 8, 9]


def test_what_equinox_pruned_comes_from_the_archive() -> None:
    store, archive = filled(), Store()
    for _ in range(4):
        archive.tallies().handle(S, decide=add(1))
    equinox(store.tables, 4)
    store.streams = replace(store.streams, archive=archive.streams)

    assert folded(store) == list(range(1, 10))


def test_the_latest_event_of_a_stream_that_equinox_pruned_is_enough_where_it_is_all_that_is_needed() -> None:
    store = filled()
    equinox(store.tables, 8)

    assert folded(store, STRATEGIES["latest known event"]) == [9]


PRUNES: dict[str, Callable[[Store], Callable[[], object]]] = {
    "ours": lambda store: lambda: store.others.prune(S, 6),
    "Equinox": lambda store: lambda: equinox(store.tables, 6),
}


@pytest.mark.parametrize("prune", PRUNES.values(), ids=PRUNES)
def test_a_state_that_a_prune_overtakes_is_refused(prune: Callable[[Store], Callable[[], object]]) -> None:
    store = filled()
    pruned_while_read(store, prune(store), after=2)

    with pytest.raises(EventsPruned) as pruned:
        folded(store)

    assert (pruned.value.needed, pruned.value.low_water) == (2, 6)


@pytest.mark.parametrize("prune", PRUNES.values(), ids=PRUNES)
def test_a_state_that_a_prune_overtakes_begins_anew_where_that_is_chosen(
    prune: Callable[[Store], Callable[[], object]],
) -> None:
    """Of the events before the hole nothing is left in it."""
    store = filled()
    states = list[int]()
    pruned_while_read(store, prune(store), after=2)

    def summing(state: Tally, event: TallyEvent) -> Tally:
        states.append(state.total)
        return Tally(state.total + (event.by if isinstance(event, Added) else 0))

    tallies = replace(store.tallies(forget_pruned=True), decider=replace(DECIDER, evolve=summing))

    assert tallies.query(S, lambda state: state.total) == 3
    assert states == [0, 1, 0, 1, 2]


@pytest.mark.parametrize("forget", [False, True])
def test_an_origin_beyond_a_hole_begins_no_state(*, forget: bool) -> None:
    """Newest first, the walk comes to the archive, which has the origin, and not what came after it."""
    store, archive = filled(), Store()
    for decide in (add(1), lambda _: [Cleared()], add(1)):
        archive.tallies().handle(S, decide=decide)
    store.others.prune(S, 6)
    store.streams = replace(store.streams, archive=archive.streams)
    from_cleared: Access[Tally, TallyEvent] = custom(
        lambda event: isinstance(event, Cleared), lambda events, _: (events, None)
    )

    if forget:
        assert folded(store, from_cleared, forget_pruned=True) == [7, 8, 9]
        return
    with pytest.raises(EventsPruned) as pruned:
        folded(store, from_cleared)
    assert (pruned.value.needed, pruned.value.low_water) == (3, 6)
