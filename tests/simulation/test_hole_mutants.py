"""Take a rule out of how holes are told, and a seed finds out: beside pruners of ours, Equinox's, and archives."""

# ruff: noqa: SLF001  # mutants are of steps that are nobody else's business
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from epochal.contrib.equinox import port
from epochal.index.checkpoints import tip_key
from epochal.plan.ops import Get, Steps
from epochal.store import reading as stores
from epochal.store import streams
from epochal.store.reading import Hole
from epochal.store.streams import Streams
from tests.simulation.hole_simulation import replay
from tests.simulation.mutants import Mutants, Patch

SEEDS = 1_000

MUTANTS = Mutants()
mutant = MUTANTS.add


@mutant("untold|the archive was not asked")
def a_read_that_a_prune_overtakes_is_not_told(patch: Patch) -> None:
    told = stores._Walk.events_and_holes
    patch.setattr(
        stores._Walk,
        "events_and_holes",
        lambda walk: (each for each in told(walk) if not isinstance(each, Hole) or each.first == walk.start),
    )


@mutant("untold")
def a_hole_at_the_beginning_is_passed_over(patch: Patch) -> None:
    told = stores._Walk.events_and_holes

    def later(walk: Any) -> Iterator[Any]:
        return (each for each in told(walk) if not isinstance(each, Hole) or each.first != walk.start)

    patch.setattr(stores._Walk, "events_and_holes", later)


@mutant("EventsPruned|DID NOT RAISE")
def a_hole_in_the_middle_is_taken_for_pruning(patch: Patch) -> None:
    def passed(table: str, cursor: Any) -> Steps[Any]:
        del table
        yield from ()
        return port._passed(cursor, cursor.head.span.base)

    patch.setattr(port, "_pruned_by_others", passed)


@mutant(dear=True)
def a_calf_that_does_not_show_yet_is_taken_for_pruned(patch: Patch) -> None:
    patch.setattr(port, "LOOKS", 0)
    patch.setattr(
        port, "_build_barrier_read", lambda table, cursor: Get(table=table, key=tip_key(cursor.head.stream))
    )


@mutant("is in no item")
def what_equinox_pruned_is_corrupt(patch: Patch) -> None:
    def never(*_: Any) -> Steps[None]:
        yield from ()

    patch.setattr(port, "_pruned_by_others", never)


@mutant("the archive was not asked")
def the_archive_is_not_asked_below_the_first_event(patch: Patch) -> None:
    patch.setattr(stores._Walk, "_archived", lambda _walk, _first, _end: iter(()))


@mutant("pruned unarchived")
def what_is_not_archived_is_pruned(patch: Patch) -> None:
    patch.setattr(streams, "_archived", lambda _store, _stream, _archive, before=0: before)


@mutant("pruned unarchived", dear=True)
def as_much_is_pruned_as_was_asked_for_whatever_came_meanwhile(patch: Patch) -> None:
    archived = streams._archived

    def checked(store: Streams, stream: str, archive: Streams, before: int = 0) -> int:
        archived(store, stream, archive, before)
        return before

    patch.setattr(streams, "_archived", checked)


@pytest.mark.parametrize("name", MUTANTS.names())
def test_a_seed_finds_out(name: str, monkeypatch: Patch) -> None:
    MUTANTS.find_out(name, monkeypatch, replay, SEEDS)
