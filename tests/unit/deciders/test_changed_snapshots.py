"""Snapshots in streams of a class that has changed since: the state is made from the events."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams
from tests.unit.deciders.changed_states import CHANGES

S = "Account-1"


@pytest.mark.parametrize("layout", [memory_streams, memory_tips])
@pytest.mark.parametrize("change", CHANGES)
def test_a_snapshot_of_a_changed_class_gives_way_to_the_events(
    change: str, layout: Callable[[], Streams]
) -> None:
    before, after = CHANGES[change]
    streams = layout()
    for amount in (5, 4):
        before.on(streams).handle(S, amount)
    assert after.on(streams).query(S, lambda state: state) == after.folded(5, 4)
    assert after.on(streams).handle(S, 3).state == after.folded(5, 4, 3)
    assert after.on(streams).query(S, lambda state: state) == after.folded(5, 4, 3)
