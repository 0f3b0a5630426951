"""A codec of one's own is two functions. This one upgrades what an older program stored.

Prints:

    delays of 2013-01-01: 35 minutes
"""

from __future__ import annotations

from dataclasses import dataclass

from epochal.deciders.codecs import EventCodec, Stored
from epochal.deciders.on_streams import Decider, Deciders
from epochal.model.events import Event
from epochal.testing.stores import memory_streams


@dataclass(frozen=True)
class Delayed:
    """A flight left so many seconds late."""

    seconds: int


def encode(event: Delayed) -> Event:
    """The second version of this event, in seconds."""
    return Event.json("Delayed/2", {"seconds": event.seconds}, meta=b'{"by":"example"}')


def decode(stored: Stored) -> Delayed | None:
    """Both versions; the first was in minutes. Anything else is no business of this decider."""
    match stored.type:
        case "Delayed/2":
            return Delayed(stored.json()["seconds"])
        case "Delayed":
            return Delayed(60 * stored.json()["minutes"])
        case _:
            return None


def evolve(total: int, event: Delayed) -> int:
    """Seconds add up."""
    return total + event.seconds


def decide(seconds: int, _: int) -> list[Delayed]:
    """Every delay counts."""
    return [Delayed(seconds)]


streams = memory_streams()
delays = Deciders(
    streams=streams,
    decider=Decider(initial=int, evolve=evolve, decide=decide),
    codec=EventCodec(encode=encode, decode=decode, skips_unknown=True),
)


def main() -> None:
    """Begin with what was there before."""
    streams.append("Delays-20130101", [Event.json("Delayed", {"minutes": 5}), Event(type="Closed")])
    delays.handle("Delays-20130101", 1800)
    print(f"delays of 2013-01-01: {delays.query('Delays-20130101', lambda seconds: seconds // 60)} minutes")


if __name__ == "__main__":
    main()
