"""A flight's gate: each event replaces the state, so the latest is all that is read.

Prints:

    gate B14, after 500 changes, in 1 request
"""

from __future__ import annotations

from dataclasses import dataclass

from epochal.deciders.access import LATEST_KNOWN_EVENT
from epochal.deciders.codecs import EventCodec, json_codec
from epochal.deciders.on_streams import Decider, Deciders
from epochal.testing.stores import memory_streams


@dataclass(frozen=True)
class GateAssigned:
    """The flight leaves from here."""

    gate: str


def initial() -> str | None:
    """No gate yet."""
    return None


def evolve(_: str | None, event: GateAssigned) -> str | None:
    """The latest assignment counts."""
    return event.gate


def decide(gate: str, current: str | None) -> list[GateAssigned]:
    """Assigning the gate it has already is no change."""
    return [] if gate == current else [GateAssigned(gate)]


codec: EventCodec[GateAssigned] = json_codec(GateAssigned)
streams = memory_streams()
gates = Deciders(
    streams=streams,
    decider=Decider(initial=initial, evolve=evolve, decide=decide),
    codec=codec,
    access=LATEST_KNOWN_EVENT,
)


def main() -> None:
    """Change the gate often, and ask for it once."""
    for number in range(500):
        gates.handle("Gate-UA1545", f"B{number % 19}")
    gates.handle("Gate-UA1545", "B14")
    before = streams.driver.meter.requests
    gate = gates.query("Gate-UA1545", lambda gate: gate)
    version = gates.handle("Gate-UA1545", "B14").version - 1
    print(f"gate {gate}, after {version} changes, in {streams.driver.meter.requests - before - 1} request")


if __name__ == "__main__":
    main()
