"""Take any one rule out of the rests of indexers, and a seed finds out.

Rules of the measurement alone are tried by walks, which take milliseconds; what indexers make of it by their worlds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from epochal.feed.index_writer import IndexWriter
from epochal.feed.indexer import Indexer
from epochal.index import crowding, ingestion
from epochal.index.crowding import Crowding
from epochal.index.ingestion import Indexing, Partition
from epochal.plan.ops import Steps
from tests.simulation import rest_walk, rest_world
from tests.simulation.mutants import Mutant, Mutants, Patch

SEEDS = 300

WALKS, WORLDS = Mutants(), Mutants()


def mutant(found: str, *, of: Mutants = WORLDS, begin: int = 0) -> Callable[[Mutant], Mutant]:
    """Register a mutant, how it is found out, and by what."""
    return of.add(found, begin=begin)


def constant(patch: Patch, name: str, value: float) -> None:
    """Measure by another value of a constant; what is due goes by the real one."""
    measure = Crowding.measure

    def otherwise(self: Crowding, now: float, changes: int) -> None:
        with pytest.MonkeyPatch.context() as other:
            other.setattr(crowding, name, value)
            measure(self, now, changes)

    patch.setattr(Crowding, "measure", otherwise)


@mutant("no longer than|at most", of=WALKS)
def a_rest_may_take_as_long_as_it_likes(patch: Patch) -> None:
    constant(patch, "LONGEST", math.inf)


@mutant("at most", of=WALKS)
def few_others_are_a_crowd(patch: Patch) -> None:
    constant(patch, "CROWD", 0)


@mutant("at most", of=WALKS)
def a_rest_gathers_next_to_nothing(patch: Patch) -> None:
    constant(patch, "WORTHWHILE", 0)


@mutant("at most", of=WALKS)
def a_calm_partition_is_crowded(patch: Patch) -> None:
    constant(patch, "CALM", 0.0)


@mutant("at most", of=WALKS)
def one_measurement_may_show_any_rate(patch: Patch) -> None:
    constant(patch, "HIGHEST", math.inf)


@mutant("at most", of=WALKS)
def the_rate_never_decays(patch: Patch) -> None:
    measure = Crowding.measure

    def lasting(self: Crowding, now: float, changes: int) -> None:
        before = self.rate
        measure(self, now, changes)
        self.rate = max(before, self.rate)

    patch.setattr(Crowding, "measure", lasting)


@mutant("at most", of=WALKS)
def entries_are_counted_again_after_every_batch(patch: Patch) -> None:
    measure = Crowding.measure

    def keeping(self: Crowding, now: float, changes: int) -> None:
        others = self.others
        measure(self, now, changes)
        self.others = others

    patch.setattr(Crowding, "measure", keeping)


@mutant("at least", of=WALKS)
def an_epoch_that_was_deleted_takes_entries_back(patch: Patch) -> None:
    def count_others(self: Crowding, entries: int) -> None:
        self.others += entries

    patch.setattr(Crowding, "count_others", count_others)


@mutant("at most", of=WALKS)
def a_clock_that_was_set_back_shows_a_short_time(patch: Patch) -> None:
    measure = Crowding.measure

    def hasty(self: Crowding, now: float, changes: int) -> None:
        last = self._measured
        measure(self, now if last is None else max(now, last + 0.001), changes)
        self._measured = now

    patch.setattr(Crowding, "measure", hasty)


@mutant("at most", of=WALKS)
def the_first_batch_of_a_process_measures_from_its_start(patch: Patch) -> None:
    measure = Crowding.measure

    def early(self: Crowding, now: float, changes: int) -> None:
        if self._measured is None:
            self._measured = now - 1.0
        measure(self, now, changes)

    patch.setattr(Crowding, "measure", early)


@mutant("before it has notified", begin=4)
def a_rest_comes_before_the_notice(patch: Patch) -> None:
    notify = Indexer._notify  # noqa: SLF001  the mutant is of this very step

    def late(self: Indexer, records: Any, outcome: Any) -> None:
        if not outcome.failed:
            self.rest(outcome.by_partition)
        notify(self, records, outcome)

    patch.setattr(Indexer, "_notify", late)


@mutant("after a batch that failed", begin=82)
def a_batch_that_failed_rests(patch: Patch) -> None:
    class Unnoticed(list[str]):
        """Records that failed, which count as none where somebody asks whether there are any."""

        def __bool__(self) -> bool:
            return False

    notify = Indexer._notify  # noqa: SLF001  the mutant is of this very step

    def heedless(self: Indexer, records: Any, outcome: Any) -> None:
        notify(self, records, outcome)
        outcome.failed = Unnoticed(outcome.failed)

    patch.setattr(Indexer, "_notify", heedless)


@mutant("at most", begin=4)
def an_indexer_counts_its_own_entries(patch: Patch) -> None:
    write = Indexing._write  # noqa: SLF001  the mutant is of this very step

    def counting(self: Indexing, partition: Partition, *rest: Any) -> Steps[bool]:
        written = yield from write(self, partition, *rest)
        partition.crowding.count_others(int(written))
        return written

    patch.setattr(Indexing, "_write", counting)


@mutant("at most", begin=4)
def every_look_counts_all_entries_of_the_epoch(patch: Patch) -> None:
    refresh = Indexing._refresh  # noqa: SLF001  the mutant is of this very step

    def recounting(self: Indexing, partition: Partition, *tip: Any) -> Steps[None]:
        yield from refresh(self, partition, *tip)
        partition.crowding.count_others(partition.state.active.version)

    patch.setattr(Indexing, "_refresh", recounting)


@mutant("at least|no rest in a crowd", begin=4)
def what_a_refusal_shows_is_not_counted(patch: Patch) -> None:
    refresh = Indexing._refresh  # noqa: SLF001  the mutant is of this very step

    def blind(self: Indexing, partition: Partition, *tip: Any) -> Steps[None]:
        before = partition.crowding.others
        yield from refresh(self, partition, *tip)
        if partition.spread:
            partition.crowding.others = before

    patch.setattr(Indexing, "_refresh", blind)


@mutant("a spread of", begin=16)
def tries_are_spread_no_further_where_indexers_rest(patch: Patch) -> None:
    def refused(self: Partition) -> None:
        self.spread = min(ingestion.MOST_SPREAD, max(ingestion.LEAST_SPREAD, 2 * self.spread))

    patch.setattr(Partition, "refused", refused)


@mutant("ended in its rest", begin=13)
def a_rest_does_not_heed_the_end_of_its_invocation(patch: Patch) -> None:
    rest = IndexWriter.rest
    patch.setattr(IndexWriter, "rest", lambda self, partitions, _deadline=math.inf: rest(self, partitions))


@mutant("at most", begin=54)
def an_indexer_rests_for_partitions_that_its_batch_has_nothing_for(patch: Patch) -> None:
    rest = IndexWriter.rest

    def everywhere(self: IndexWriter, _partitions: Iterable[int], deadline: float = math.inf) -> float:
        return rest(self, list(self._held), deadline)

    patch.setattr(IndexWriter, "rest", everywhere)


@mutant("do not vary", begin=4)
def all_indexers_rest_equally_long(patch: Patch) -> None:
    def rest(self: IndexWriter, partitions: Iterable[int], deadline: float = math.inf) -> float:
        seconds = max((self._held[number].crowding.rest for number in partitions), default=0.0)
        seconds = min(seconds, (deadline - self.driver.clock()) / 2)
        if seconds > 0:
            self.driver.sleep(seconds)
        return max(0.0, seconds)

    patch.setattr(IndexWriter, "rest", rest)


@mutant("the report says", begin=4)
def a_rest_is_not_reported(patch: Patch) -> None:
    rest = IndexWriter.rest
    patch.setattr(IndexWriter, "rest", lambda *given: rest(*given) and 0.0)


@mutant("no rest in a crowd", begin=4)
def nobody_ever_rests(patch: Patch) -> None:
    patch.setattr(IndexWriter, "rest", lambda *_: 0.0)


@pytest.mark.parametrize("name", WALKS.names())
def test_a_walk_finds_out(name: str, monkeypatch: Patch) -> None:
    WALKS.find_out(name, monkeypatch, rest_walk.walk, SEEDS)


@pytest.mark.parametrize("name", WORLDS.names())
def test_a_world_finds_out(name: str, monkeypatch: Patch) -> None:
    WORLDS.find_out(name, monkeypatch, rest_world.run, SEEDS)
