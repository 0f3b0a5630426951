"""G1, G2, G3, G4 and G5 for aggregates, everything at once, by seed: another library writes to the same tables.

A failing seed is named, and replays exactly: `replay(seed)`.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

from epochal.contrib.event_store_adapter.outcomes import AggregateConflict
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.plan.ops import BatchGet, Op, Reply
from epochal.store.driver import Driver, Meter
from tests.layouts.stores import persist_elsewhere
from tests.simulation.aggregate_simulation import ALICE, EQUAL, SITE, STATE, Aggregates, replay
from tests.simulation.seeds import ranges

SIZE, COUNT = 100, 24


@cache
def met(seed: int) -> Counter[str]:
    played = replay(seed)
    found = Counter(type(attempt.outcome).__name__ for attempt in played.attempts)
    return found + Counter(elsewhere=played.elsewhere, reads=len(played.reads), retired=played.retired)


@ranges(SIZE, COUNT)
def test_whatever_happens_aggregates_are_whole_and_every_append_is_made_once_or_not_at_all(
    seeds: range,
) -> None:
    for seed in seeds:
        met(seed)


def test_the_seeds_bring_about_all_that_they_are_meant_to() -> None:
    found = sum(map(met, range(SIZE)), Counter())

    assert min(found[kind] for kind in ("AggregateAppended", "AggregateConflict", "NoneType")) > SIZE / 2
    assert found["elsewhere"] > SIZE / 5, "hardly anything was written elsewhere"
    assert found["reads"] > SIZE / 5, "hardly anything was read"
    assert found["retired"] > SIZE / 10, "hardly a copy of a snapshot was retired"


def test_a_lock_is_in_conflict_where_another_append_overtakes_the_search_for_the_last_number() -> None:
    """Seed 105 found it: it was reported as a lock whose number does not join."""
    tables = Aggregates(0).tables
    store = AggregateStore(driver=Driver(execute=tables.execute, meter=Meter()), site=SITE)
    store.append(ALICE, [EQUAL], snapshot=STATE)
    persist_elsewhere(tables.execute, ALICE, "Elsewhere")
    lock = store.lock(ALICE)
    overtakers = iter(["Elsewhere"])

    def overtaken(op: Op) -> Reply:
        if isinstance(op, BatchGet):
            for kind in overtakers:
                persist_elsewhere(tables.execute, ALICE, kind)
        return tables.execute(op)

    ours = AggregateStore(driver=Driver(execute=overtaken, meter=Meter()), site=SITE)
    assert lock is not None
    assert ours.try_append(ALICE, [EQUAL], expected=lock) == AggregateConflict(version=3)
    assert next(overtakers, None) is None, "the search was not overtaken"


def test_a_seed_replays_exactly() -> None:
    one, two = replay(7), replay(7)
    assert list(one.tables.items(SITE.journal)) == list(two.tables.items(SITE.journal))
    assert one.attempts == two.attempts


def test_who_is_answered_by_the_record_of_a_key_finds_the_append() -> None:
    """Seed 4,435 found it: the record showed before the head, and a replay after the answer ended before the append."""
    replay(4435)
