"""Where an aircraft is: rolling state, which keeps no events. Every write is held to the last one's etag.

Prints:

    N14228 at 41.0, -73.0 after 100 reports; events kept: 0
    a late report changes nothing
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from epochal.deciders.access import rolling_state
from epochal.deciders.cache import Cache
from epochal.deciders.codecs import EventCodec, json_codec
from epochal.deciders.loading import AllowStale
from epochal.deciders.on_streams import Decider, Deciders
from epochal.testing.stores import memory_streams


@dataclass(frozen=True)
class Position:
    """An aircraft's position, which is state, command and event at once."""

    second: int = -1
    latitude: float = 0.0
    longitude: float = 0.0
    reports: int = 0


def evolve(_: Position, event: Position) -> Position:
    """The event is the state."""
    return event


def decide(report: Position, current: Position) -> list[Position]:
    """A report that was overtaken is dropped."""
    return [replace(report, reports=current.reports + 1)] if report.second > current.second else []


def same(position: Position) -> Position:
    """The state as it is stored."""
    return position


codec: EventCodec[Position] = json_codec(Position)
streams = memory_streams()
positions = Deciders(
    streams=streams,
    decider=Decider(initial=Position, evolve=evolve, decide=decide),
    codec=codec,
    access=rolling_state(same),
    cache=Cache(),
)


def main() -> None:
    """Report a flight north, one request a report, and once too late."""
    for second in range(100):
        report = Position(second=second, latitude=40.0 + (second + 1) / 100, longitude=-73.0)
        positions.handle("Position-N14228", report, load=AllowStale())
    at = positions.query("Position-N14228", same)
    kept = len(list(streams.read("Position-N14228")))
    print(f"N14228 at {at.latitude}, {at.longitude} after {at.reports} reports; events kept: {kept}")
    late = positions.handle("Position-N14228", Position(second=50))
    print("a late report changes nothing" if late.state == at else "the aircraft jumped")


if __name__ == "__main__":
    main()
