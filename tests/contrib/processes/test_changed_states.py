"""Instances of a process whose class has changed since: their states are folded again from their inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from epochal.contrib.processes import Output, Process, process_of
from epochal.contrib.processes import process as process_class
from epochal.deciders.codecs import Stored, json_codec
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams


@dataclass(frozen=True)
class Placed:
    total: int


CODEC = json_codec(Placed)
NAMED = process_class(name="tally", categories=["Order"], codec=CODEC)


@NAMED
@dataclass(frozen=True)
class Summing:
    total: int = 0

    def evolve(self, event: Placed) -> Summing:
        return Summing(self.total + event.total)

    def react(self, _: Placed) -> list[Output]:
        return []


@NAMED
@dataclass(frozen=True)
class Counting:
    total: int = 0
    orders: int = 0

    def evolve(self, event: Placed) -> Counting:
        return Counting(self.total + event.total, self.orders + 1)

    def react(self, _: Placed) -> list[Output]:
        return []


@NAMED
@dataclass(frozen=True)
class Renamed:
    amount: int = 0

    def evolve(self, event: Placed) -> Renamed:
        return Renamed(self.amount + event.total)

    def react(self, _: Placed) -> list[Output]:
        return []


def take(streams: Streams, kind: type, index: int, total: int) -> Any:
    """Let an instance take an input; its state after that."""
    rules = _process(kind)
    given = Stored(type="Placed", data=CODEC.encode(Placed(total)).content, index=index, stream="Order-1")
    instances = rules.instances(streams)
    instances.handle("tally-1", decide=lambda found: rules.take("tally-1", "pages/Order-1", given, found)[1])
    return instances.query("tally-1", lambda found: found.state)


def _process(kind: type) -> Process:
    found = process_of(kind)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("kind", "state", "later"),
    [(Counting, Counting(9, 2), Counting(12, 3)), (Renamed, Renamed(9), Renamed(12))],
    ids=["a field added with a default", "a field renamed"],
)
def test_an_instance_of_a_changed_class_is_folded_again(kind: type, state: Any, later: Any) -> None:
    streams = memory_streams()
    take(streams, Summing, 0, 5)
    take(streams, Summing, 1, 4)
    assert _process(kind).instances(streams).query("tally-1", lambda found: found.state) == state
    assert take(streams, kind, 2, 3) == later
