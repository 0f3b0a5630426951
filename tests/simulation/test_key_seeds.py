"""Idempotency keys that are used on and on, by seed: by writers who expect what never was, or what was before the table
was restored, on streams that are deleted and begun again. Whatever is expected when, an append is made once.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from epochal.layout import decision_keys, once
from epochal.layout.outcomes import conflict_at
from epochal.layout.streams import accepts
from epochal.model.expected_version import ANY, STREAM_EXISTS, ExpectedVersion
from epochal.model.tokens import Token
from epochal.plan.ops import Steps
from epochal.store.streams import Streams
from tests.simulation.histories import played
from tests.simulation.mutants import Mutants, Patch
from tests.simulation.page_items import PAGE_ITEMS
from tests.simulation.seeds import ranges
from tests.simulation.stream_items import TIP_ITEMS, StreamItems
from tests.simulation.stream_simulation import NEIGHBOUR, OneStream, tables_of

SIZE, COUNT = 250, 20
KINDS: dict[str, StreamItems] = {"tips": TIP_ITEMS, "pages": PAGE_ITEMS}
MUTANTS = Mutants()


class Keyed(OneStream):
    """Processes whose every append has one of two keys."""

    def act(self, luck: random.Random, store: Streams) -> None:
        match luck.choice(("append",) * 8 + ("plain", "plain", "delete")):
            case "append":
                self._append(luck, store, self._expected(luck), luck.choice("kl"))
            case "plain":
                self._append(luck, store, ANY, None)
            case _:
                store.try_delete(self.world.stream, leave_open=True)

    def _expected(self, luck: random.Random) -> ExpectedVersion:
        ahead = Token(version=luck.randint(2, 9), etag=luck.randbytes(16).hex())
        return luck.choice((ANY, ANY, STREAM_EXISTS, ahead))


def replay(seed: int, kind: str) -> None:
    """Play a seed and check what came of it; a failure names it."""
    items = KINDS[kind]
    played(Keyed(seed, tables_of(items), kind=items, neighbour=NEIGHBOUR))


@pytest.mark.parametrize("kind", KINDS)
@ranges(SIZE, COUNT)
def test_an_append_under_a_key_is_made_once_whatever_is_expected_later(seeds: range, kind: str) -> None:
    for seed in seeds:
        replay(seed, kind)


@MUTANTS.add()
def the_bound_of_a_key_is_not_lowered(patch: Patch) -> None:
    def as_it_is(_table: str, _record: object, _version: int, seen: object) -> Steps[object]:
        yield from ()
        return seen

    for module in (once, decision_keys):
        patch.setattr(module, "lower_bound", as_it_is)


@MUTANTS.add(begin=496)
def an_append_is_not_looked_for_in_what_was_written_during_a_pause(patch: Patch) -> None:
    def unsettled(call: Any, _head: object, *, repeatable: bool) -> Steps[object]:
        del repeatable
        newer = yield from call.attempts.load()
        return newer if accepts(call.expected, newer) else conflict_at(newer)

    patch.setattr(once, "_newer_head", unsettled)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MUTANTS.names())
def test_some_of_the_first_seeds_find_out(name: str, kind: str, monkeypatch: Patch) -> None:
    MUTANTS.find_out(name, monkeypatch, lambda seed: replay(seed, kind), 2 * SIZE)
