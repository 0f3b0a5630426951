"""G8 where another library wrote the type: what it calls its events holds up nobody else's."""

from __future__ import annotations

import pytest

from epochal.plan.ops import Put
from epochal.plan.values import Item, binary
from tests.layouts.stores import ALICE, BOB, Layouts


def rewritten(layouts: Layouts, payload: bytes) -> None:
    """Alice's only event as it would be with another payload."""
    (item,) = (each for each in layouts.tables.items("journal") if each["aid"]["S"] == str(ALICE))
    changed: Item = {**item, "payload": binary(payload)}
    layouts.tables.execute(Put(table="journal", item=changed))


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (b'{"type":"Renamed","data":"\\ud83d"}', "Renamed"),
        (b'{"type":"\\ud83d","data":1}', ""),
        (b'{"type":7,"data":1}', ""),
        (b'{"type":"Renamed","data":' + b"[" * 100_000, ""),
        (b"\xff", ""),
    ],
)
def test_a_type_that_no_index_could_hold_is_none(payload: bytes, kind: str) -> None:
    layouts = Layouts()
    layouts.persist_elsewhere(ALICE, "Opened")
    rewritten(layouts, payload)
    layouts.persist(BOB, "Opened")
    layouts.index()
    assert sorted(layouts.feed("journal")) == sorted([(str(ALICE), 0, kind), (str(BOB), 0, "Opened")])


def test_half_of_a_surrogate_pair_in_an_event_of_another_library_reaches_readers_escaped() -> None:
    layouts = Layouts()
    layouts.persist_elsewhere(ALICE, "Opened")
    rewritten(layouts, b'{"type":"Opened","data":{"name":"\\ud83d"}}')
    layouts.index()
    ((item),) = layouts.items("journal", data=True)
    assert item.event is not None
    assert item.event.data == b'{"name":"\\ud83d"}'
