"""The error of a read of several events names the one that is broken."""

from __future__ import annotations

import pytest

from epochal.codec.bodies import decode
from epochal.errors import CorruptData
from epochal.model.events import Event
from epochal.plan.ops import Put
from epochal.store import encoding
from epochal.testing.stores import memory_streams
from tests.support.api import Api

STREAM = "Order-1"
LARGE = b" " * 1_000_000 + b"1"


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("start", [None, 0])
def test_a_load_names_the_event_whose_body_is_too_large(
    monkeypatch: pytest.MonkeyPatch, place: int, start: int | None
) -> None:
    streams = memory_streams()
    bodies = [b"1", b"2", b"3"]
    bodies[place] = LARGE
    streams.append(STREAM, [Event(type="Placed", data=body) for body in bodies])
    monkeypatch.setattr(encoding, "decode", lambda body, limit: decode(body, min(limit, 100_000)))
    with pytest.raises(CorruptData, match=rf"^Order-1 \(index {place}\): a body under encoding 2 "):
        streams.load(STREAM, start=start)


@pytest.mark.parametrize("place", [0, 1])
def test_a_load_names_the_event_of_an_unknown_encoding(place: int) -> None:
    api = Api(store="tips")
    api.append("Cat-1", "A", "B")
    (tip,) = api.tables.items("tips")
    events = list(tip["e"]["L"])
    events[place] = {"M": {**events[place]["M"], "d": {"B": b"x"}, "D": {"N": "3"}}}
    api.tables.execute(Put(table="tips", item={**tip, "e": {"L": events}}))
    with pytest.raises(CorruptData, match=rf"^Cat-1 \(index {place}\): unknown body encoding 3$"):
        api.streams.load("Cat-1")
