"""The simulation is worth its time: take any one rule out of the layout of aggregates, and a seed finds out.

The seeds are those that the unchanged layout passes.
"""

# mutants are of steps that are nobody else's business
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from epochal.contrib.event_store_adapter import append, outcomes, reading, retention
from epochal.contrib.event_store_adapter import transaction as plans
from epochal.contrib.event_store_adapter.items import AggregateHead, JournalSite
from epochal.contrib.event_store_adapter.reading import last_number
from epochal.contrib.event_store_adapter.transaction import AggregateBatch, Base
from epochal.plan.conditions import Absent, equals
from epochal.plan.ops import Get, Refusal, Steps, Transact
from epochal.plan.values import number
from tests.simulation.aggregate_simulation import replay
from tests.simulation.mutants import Mutants, Patch

SEEDS = 3_000

MUTANTS = Mutants()
mutant = MUTANTS.add


def rewriting(patch: Patch, change: Callable[[int, Any], Any]) -> None:
    """Appends send other writes than planned; the first is the head's."""
    transaction = plans.transaction

    def planned(*given: Any) -> Transact:
        right = transaction(*given)
        return replace(right, writes=tuple(change(at, write) for at, write in enumerate(right.writes)))

    patch.setattr(append, "transaction", planned)


@mutant(dear=True)
def the_head_is_written_whatever_it_is(patch: Patch) -> None:
    rewriting(patch, lambda at, write: write if at else replace(write, condition=None))


@mutant()
def events_are_put_whatever_is_there(patch: Patch) -> None:
    rewriting(patch, lambda at, write: replace(write, condition=None) if at else write)
    patch.setattr(
        plans, "unchanged", lambda base: equals("seq_nr", number(0)) if base.lock else Absent("pkey")
    )


@mutant()
def what_is_expected_is_not_asked_for(patch: Patch) -> None:
    patch.setattr(append, "accepts", lambda *_: True)


@mutant()
def a_refused_append_is_not_looked_for(patch: Patch) -> None:
    def never(*_: Any) -> Steps[bool]:
        yield from ()
        return False

    patch.setattr(append, "_was_ours", never)


@mutant()
def only_the_latest_append_is_recognised_as_our_own(patch: Patch) -> None:
    def by_head(
        _site: JournalSite, batch: AggregateBatch, _base: Base, head: AggregateHead | None, _reply: Refusal
    ) -> Steps[bool]:
        yield from ()
        return head is not None and head.append_id == batch.append_id

    patch.setattr(append, "_was_ours", by_head)


@mutant()
def any_event_at_our_number_counts_as_our_own(patch: Patch) -> None:
    def by_number(
        site: JournalSite, batch: AggregateBatch, base: Base, _head: AggregateHead | None, reply: Refusal
    ) -> Steps[bool]:
        stored = yield Get(table=site.journal, key=site.keys.key(batch.aggregate, base.first))
        return reply.ambiguous and stored.item is not None

    patch.setattr(append, "_was_ours", by_number)


@mutant()
def the_search_for_the_last_number_goes_too_far(patch: Patch) -> None:
    def far(site: JournalSite, aggregate: Any) -> Steps[int]:
        found = yield from last_number(site, aggregate)
        return found + 1

    patch.setattr(append, "last_number", far)


@mutant()
def several_events_are_several_transactions(patch: Patch) -> None:
    """The first alone is written with the head, the rest is left for a step that a death forestalls."""
    transaction = plans.transaction

    def first(*given: Any) -> Transact:
        right = transaction(*given)
        return replace(right, writes=right.writes[:2])

    patch.setattr(append, "transaction", first)


@mutant(dear=True)
def an_event_that_a_plain_read_does_not_find_is_lost(patch: Patch) -> None:
    def none(*_: Any) -> Steps[dict[int, Any]]:
        yield from ()
        return {}

    patch.setattr(reading, "_read_in_transactions", none)


@mutant()
def an_event_in_the_way_of_the_head_that_was_read_before_it_means_torn_tables(patch: Patch) -> None:
    def plainly(site: JournalSite, batch: AggregateBatch, base: Base, reply: Refusal) -> Steps[Any]:
        if reply.failed[0]:
            return (yield from right(site, batch, base, reply))
        return (yield from append.read(site, batch.aggregate)), base.first

    right = append._in_the_way  # noqa: SLF001  # what reads both in one moment
    patch.setattr(append, "_in_the_way", plainly)


@mutant()
def retention_counts_from_the_oldest_copy(patch: Patch) -> None:
    right = retention._newest_first  # noqa: SLF001  # what reads the copies
    patch.setattr(retention, "_newest_first", lambda *given: replace(right(*given), forward=True))


@mutant()
def a_key_is_not_part_of_its_append(patch: Patch) -> None:
    transaction = plans.transaction

    def unrecorded(site: JournalSite, batch: AggregateBatch, base: Base) -> Transact:
        return transaction(site, replace(batch, key=None), base)

    patch.setattr(append, "transaction", unrecorded)


@mutant()
def a_key_is_put_over_another(patch: Patch) -> None:
    record = plans._key_record  # noqa: SLF001  # what makes the record
    patch.setattr(plans, "_key_record", lambda *given: replace(record(*given), condition=None))


@mutant("a repeated key is in conflict")
def a_conflict_is_told_before_a_key_is_looked_for(patch: Patch) -> None:
    def at_once(_site: JournalSite, _batch: AggregateBatch, head: AggregateHead | None) -> Steps[Any]:
        yield from ()
        return outcomes.conflict_with(head)

    patch.setattr(append, "_too_late", at_once)


@mutant("answered for other contents")
def a_keys_contents_are_not_looked_at(patch: Patch) -> None:
    of = plans.IdempotencyKey.of
    patch.setattr(
        plans.IdempotencyKey, "of", lambda aggregate, key, _contents, now: of(aggregate, key, b"", now)
    )


@pytest.mark.parametrize("name", MUTANTS.names())
def test_a_seed_finds_out(name: str, monkeypatch: Patch) -> None:
    MUTANTS.find_out(name, monkeypatch, replay, SEEDS)
