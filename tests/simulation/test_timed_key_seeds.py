"""Keys that tell a moment, by seed: the processes of `test_seeds`, `test_key_seeds` and `test_bulk_seeds` on streams of
pages, under keys of which nothing is put on record, by clocks that are apart.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import pytest

from epochal.model.expected_version import ExpectedVersion
from epochal.model.outcomes import Appended
from epochal.model.tokens import Token
from epochal.pages import batch, writes
from epochal.plan.ops import Execute
from epochal.store.bulk import BulkAppend
from epochal.store.streams import Streams
from tests.simulation.histories import played
from tests.simulation.mutants import Mutants, Patch
from tests.simulation.page_items import PAGE_ITEMS
from tests.simulation.seeds import ranges
from tests.simulation.stream_simulation import NEIGHBOUR, OneStream, tables_of
from tests.simulation.test_bulk_seeds import Asked, Bulks
from tests.simulation.test_key_seeds import Keyed
from tests.simulation.world import NOON, SECOND, key_of

SIZE, COUNT = 200, 10
APART = 120
MUTANTS = Mutants()


@cache
def keys_of(seed: int) -> Mapping[str, str]:
    """A key of a moment for each letter: before all that happens, between, or ahead of most clocks."""
    luck = random.Random(f"{seed} keys")
    return {letter: key_of(letter, NOON + luck.randint(-200, 100) * SECOND) for letter in "klmn"}


class Clocks(OneStream):
    """Processes whose clocks are some minutes apart."""

    def store(self, luck: random.Random, name: str, execute: Execute) -> Streams:
        moment = NOON + luck.randint(-APART, APART) * SECOND
        return replace(super().store(luck, name, execute), now=lambda: moment)

    def _append(
        self, luck: random.Random, store: Streams, expected: ExpectedVersion, key: str | None
    ) -> None:
        super()._append(luck, store, expected, key and keys_of(self.seed)[key])

    def _unfold(self, store: Streams, expected: ExpectedVersion, key: str) -> None:
        super()._unfold(store, expected, keys_of(self.seed)[key])


class OnAndOn(Keyed, Clocks):
    """Their every append has one of two keys."""


class InBulk(Clocks, Bulks):
    """They make several appends in each call."""

    def _asked(self, luck: random.Random, token: Token | None) -> Asked:
        asked = super()._asked(luck, token)
        key = asked.append.idempotency_key
        append: BulkAppend = replace(asked.append, idempotency_key=key and keys_of(self.seed)[key])
        answered = (each for call in self.calls for each in call if isinstance(each.answer, Appended))
        made = key is not None and any(
            each.append.idempotency_key == append.idempotency_key for each in answered
        )
        return Asked(append=append, name=asked.name, made=made)


KINDS: Mapping[str, type[OneStream]] = {"once": Clocks, "on and on": OnAndOn, "in bulk": InBulk}


def replay(seed: int, kind: str) -> None:
    """Play a seed and check what came of it; a failure names it."""
    played(KINDS[kind](seed, tables_of(PAGE_ITEMS), kind=PAGE_ITEMS, neighbour=NEIGHBOUR))


@pytest.fixture(autouse=True, params=[1, 2], ids=lambda most: f"{most} appends a page")
def most(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any rule of when a page is full is safe."""

    def is_full(left: Token, before: Token | None = None, _joined: int = 0, **_: bool) -> bool:
        return left.appends >= request.param

    monkeypatch.setattr(writes, "is_full", is_full)


@pytest.mark.parametrize("kind", KINDS)
@ranges(SIZE, COUNT)
def test_an_append_under_a_key_that_tells_a_moment_is_made_once(seeds: range, kind: str) -> None:
    for seed in seeds:
        replay(seed, kind)


@MUTANTS.add()
def stamps_are_what_clocks_say(patch: Patch) -> None:
    patch.setattr(batch, "_above", lambda given: given.now)


@pytest.mark.parametrize("name", MUTANTS.names())
def test_the_first_seeds_find_out(name: str, monkeypatch: Patch) -> None:
    MUTANTS.find_out(name, monkeypatch, lambda seed: replay(seed, "in bulk"), SIZE)
