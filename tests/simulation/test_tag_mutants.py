"""The seeded worlds of tags are worth their time: take any one rule out of the layout, and a seed finds out.

What two writers alone can show is checked exhaustively (`test_tag_exhaustive`); these rules need more events, pages or
readers.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from epochal.model.outcomes import Conflict
from epochal.model.positions import Position
from epochal.model.tags import Trail
from epochal.pages import commit
from epochal.pages.tags import append, listing, reading
from epochal.pages.tags.entries import EventOfTag
from epochal.plan.conditions import Absent, AnyOf
from epochal.plan.ops import Check, Steps
from epochal.store import queueing
from tests.simulation.mutants import Mutants, Patch
from tests.simulation.tag_simulation import replay

SEEDS = 60

MUTANTS = Mutants()
mutant = MUTANTS.add


@mutant("violated|differ")
def fences_are_not_checked(patch: Patch) -> None:
    right = commit.fence

    def unchecked(*given: Any) -> Steps[Any]:
        found = yield from right(*given)
        always = AnyOf((Absent("i"), Absent("never")))
        return replace(found, condition=always) if isinstance(found, Check) else found

    patch.setattr(commit, "fence", unchecked)


@mutant("violated|differ|unseen")
def what_came_between_is_not_looked_at(patch: Patch) -> None:
    def nothing(_: Any, __: Any, position: Position, heads: Any) -> Steps[Conflict]:
        yield from ()
        until = {tag: heads[tag].reached for tag in position.seen}
        return Conflict(events=(), position=replace(position, seen=until))

    patch.setattr(append, "_in_the_way", nothing)


@mutant("committed twice|has one twice|yet committed")
def ids_have_no_records(patch: Patch) -> None:
    patch.setattr(append.TagsPart, "records", lambda *_: [])


@mutant("no match|seen before|read again|differ")
def what_was_seen_is_new_again(patch: Patch) -> None:
    patch.setattr(reading, "is_new", lambda *_: True)


def unordered(right: Any) -> Any:
    def found(*given: Any) -> list[EventOfTag]:
        return right(*given)[::-1]

    return found


@mutant()
def tags_are_not_merged_by_place(patch: Patch) -> None:
    patch.setattr(reading, "candidates", unordered(reading.candidates))


@mutant("claims more|differ|violated")
def an_event_tells_the_position_of_the_whole_read(patch: Patch) -> None:
    patch.setattr(Trail, "at", lambda self, _: self.end)


@mutant("lost by a listing")
def a_listing_goes_on_from_the_last_page(patch: Patch) -> None:
    def last(_: Any, head: Any, __: Any) -> Steps[Any]:
        yield from ()
        return head

    patch.setattr(listing, "_holding", last)


@mutant("differ|missing|violated")
def a_part_ends_after_its_cut(patch: Patch) -> None:
    patch.setattr(reading, "_passed", lambda entries, at, _: entries[-1].reached if entries else at)


@mutant("violated|differ|unseen|no match")
def what_the_last_caller_has_left_counts_as_seen(patch: Patch) -> None:
    right = append.TagsPart.of.__func__  # type: ignore[attr-defined]

    def of(kind: Any, *given: Any) -> Any:
        part = right(kind, *given)
        ends = given[1].ends
        seen = {tag: ends.get(tag, reached) for tag, reached in part.position.seen.items()}
        part.position = replace(part.position, seen=seen)
        return part

    patch.setattr(append.TagsPart, "of", classmethod(of))


@mutant("everyone waits")
def queues_of_several_tags_are_taken_in_any_order(patch: Patch) -> None:
    """Every second caller takes them the other way round."""
    right, numbers = queueing.QueuePlace._full_keys, count()  # noqa: SLF001  of the mutant

    def either_way(place: queueing.QueuePlace) -> list[tuple[Any, ...]]:
        return right(place)[:: -1 if next(numbers) % 2 else 1]

    patch.setattr(queueing, "_QUEUES", {})
    patch.setattr(queueing.QueuePlace, "_full_keys", either_way)


@mutant("everyone waits")
def a_caller_that_fails_keeps_its_place(patch: Patch) -> None:
    right = queueing.QueuePlace.__exit__

    def unless_failed(place: queueing.QueuePlace, *error: object) -> None:
        if error[0] is None:
            right(place)

    patch.setattr(queueing, "_QUEUES", {})
    patch.setattr(queueing.QueuePlace, "__exit__", unless_failed)


@pytest.mark.parametrize("name", MUTANTS.names())
def test_a_seed_finds_out(name: str, monkeypatch: Patch) -> None:
    MUTANTS.find_out(name, monkeypatch, replay, SEEDS)
