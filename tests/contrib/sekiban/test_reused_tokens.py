"""A transaction's token that went with something else: the ids are looked up, and the append is made once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from epochal.model.outcomes import Appended
from epochal.plan.ops import Op, Refusal, Reply, Transact
from tests.contrib.sekiban.world import World, event

ID = "00000000-0000-4000-9000-000000000001"


@pytest.mark.parametrize("applied", [True, False], ids=["by an append of ours", "by something else"])
def test_an_append_whose_token_is_taken_looks_its_ids_up_and_is_made_once(applied: bool) -> None:
    world = World()
    world.store().append([event("Opened", "course:1")])
    tokens: list[str | None] = []
    perform = world.tables.execute

    def taken(op: Op) -> Reply:
        if not isinstance(op, Transact):
            return perform(op)
        tokens.append(op.token)
        if op.token is None:
            return perform(op)
        if applied:
            perform(op)
        nothing = (None,) * len(op.writes)
        return Refusal(items=nothing, failed=(False,) * len(nothing), ambiguous=True, reused=True)

    store = world.store()
    store = replace(store, driver=replace(store.driver, execute=taken))
    outcome = store.try_append([event("Closed", "course:1", id_=ID)])

    assert isinstance(outcome, Appended)
    assert outcome.replayed == applied
    assert [each.type for each in world.store().events([ID]).values()] == ["Closed"]
    assert tokens[1:] == ([] if applied else [None])
