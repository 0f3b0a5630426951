"""Take any one rule out of appends in bulk, and a seed finds out."""

# ruff: noqa: SLF001  a mutant reaches inside

from __future__ import annotations

from typing import Any

import pytest

from epochal.layout.outcomes import conflict_at
from epochal.model.expected_version import UNREAD
from epochal.model.outcomes import Undetermined
from epochal.model.tokens import version_of
from epochal.pages import layout
from epochal.pages.appending import append_on
from epochal.pages.attempts import head_from, write
from epochal.pages.batch import joined, packed
from epochal.pages.joined import outcomes_of_joined
from epochal.pages.layout import Pages
from epochal.pages.writes import Planned
from epochal.plan.ops import Steps
from epochal.store import bulk
from epochal.store.streams import Streams
from tests.simulation.mutants import Mutants, Patch
from tests.simulation.test_bulk_seeds import SIZE, replay

MUTANTS = Mutants()
mutant = MUTANTS.add


@mutant()
def keys_are_not_recorded_before_the_write(patch: Patch) -> None:
    def free(_self: Any, _known: Any, given: Any) -> Steps[Any]:
        yield from ()
        return given

    patch.setattr(bulk._Line, "_reserve_keys", free)


@mutant(begin=30)
def a_key_is_taken_for_free_after_others_have_written(patch: Patch) -> None:
    patch.setattr(bulk._Line, "_distrust_keys", lambda _: None)


@mutant()
def what_follows_is_held_to_nothing(patch: Patch) -> None:
    is_met = bulk._is_met

    def lax(*given: Any, moved: bool) -> bool:
        return moved or is_met(*given, moved=moved)

    patch.setattr(bulk, "_is_met", lax)


@mutant()
def what_follows_is_held_to_the_stream_as_it_was(patch: Patch) -> None:
    is_met = bulk._is_met

    def as_it_was(expected: Any, known: Any, _version: int, *, moved: bool) -> bool:
        del moved
        return is_met(expected, known, version_of(known), moved=False)

    patch.setattr(bulk, "_is_met", as_it_was)


@mutant()
def an_answer_that_was_lost_is_taken_for_a_refusal(patch: Patch) -> None:
    def refused(table: str, whole: Any, known: Any) -> Steps[Any]:
        sent = yield from write(table, whole, known)
        if isinstance(sent, Planned):
            return sent.appended
        return conflict_at((yield from head_from(table, whole.stream, sent.page)))

    patch.setattr(layout, "append_whole", refused)


@mutant(begin=106)
def a_write_is_known_by_its_last_append_alone(patch: Patch) -> None:
    def by_its_last(self: Pages, table: str, batches: Any, known: Any) -> Steps[Any]:
        del self
        packs = [packed(batch) for batch in batches]
        return tuple(outcomes_of_joined(packs, (yield from append_on(table, joined(packs), known))))

    patch.setattr(Pages, "append_together_on", by_its_last)


@mutant(begin=11)
def what_goes_out_alone_goes_first(patch: Patch) -> None:
    appended = bulk._append_in_order

    def alone_first(store: Streams, ones: Any) -> None:
        appended(store, sorted(ones, key=lambda one: one.append.unfolds is None))

    patch.setattr(bulk, "_append_in_order", alone_first)


@mutant()
def a_conflict_is_told_without_a_look_for_the_key(patch: Patch) -> None:
    played = bulk._Line._choose_writes

    def hasty(self: Any, known: Any, left: Any) -> list[Any]:
        before = [one for one in left if one.alone]
        found = played(self, known, left)
        for one in left:
            if one.alone and one not in before:
                one.alone, one.reserved = False, True
                found.append((one, False))
        return found

    patch.setattr(bulk._Line, "_choose_writes", hasty)


@mutant(begin=237)
def what_is_unknown_of_a_write_is_told_of_its_keys_too(patch: Patch) -> None:
    """They can be looked for."""
    written = bulk._Line._write

    def told(self: Any, known: Any, given: Any) -> Steps[Any]:
        left = yield from written(self, known, given)
        for one, met in given:
            if met and one.result is None and left is UNREAD:
                one.result = Undetermined(first=10**6)
        return left

    patch.setattr(bulk._Line, "_write", told)


@pytest.mark.parametrize("name", MUTANTS.names())
def test_a_seed_finds_out(name: str, monkeypatch: Patch) -> None:
    MUTANTS.find_out(name, monkeypatch, replay, 2 * SIZE)
