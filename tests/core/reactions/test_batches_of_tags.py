"""Events of tags are read beside batches of new streams, and come with all that a tagged event has."""

from __future__ import annotations

import pytest

from epochal import Delivery, Event, reaction
from epochal.testing import MemoryStore


@pytest.mark.parametrize("in_order", [False, True], ids=["side by side", "in order"])
def test_new_tags_and_new_streams_are_delivered_together(in_order: bool) -> None:
    feed = MemoryStore()
    seen: dict[tuple[str, int], tuple[str, bytes | object, tuple[str, ...]]] = {}

    @reaction(name="board", in_order=in_order)
    def board(delivery: Delivery) -> None:
        for event in delivery.events:
            assert (delivery.stream, event.index) not in seen
            seen[delivery.stream, event.index] = (event.type, event.data, event.tags)

    for number in range(20):
        feed.streams.append(f"Cart-{number}", [Event(type="Placed", data=b"%d" % number)])
        feed.tagged.append([Event(type="Lent", data=b"%d" % number, tags=(f"book:{number}",))])
    feed.react(board)
    carts = {(f"Cart-{number}", 0): ("Placed", b"%d" % number, ()) for number in range(20)}
    lent = {value for place, value in seen.items() if place not in carts}
    assert {place: value for place, value in seen.items() if place in carts} == carts
    assert lent == {("Lent", b"%d" % number, (f"book:{number}",)) for number in range(20)}
    assert len(seen) == 40
