"""The smallest decider: count, and never above three.

Prints:

    1, 2, 3
    3 of 3
"""

from dataclasses import dataclass

from epochal.deciders.codecs import EventCodec, json_codec
from epochal.deciders.on_streams import Decider, Deciders
from epochal.testing.stores import memory_streams


@dataclass(frozen=True)
class Counted:
    """One more."""


def evolve(count: int, _: Counted) -> int:
    """Each event counts."""
    return count + 1


def decide(most: int, count: int) -> list[Counted]:
    """Count on, unless there are `most` already."""
    return [Counted()] if count < most else []


codec: EventCodec[Counted] = json_codec(Counted)
counters = Deciders(
    streams=memory_streams(), decider=Decider(initial=int, evolve=evolve, decide=decide), codec=codec
)


def main() -> None:
    """Count three times, and try once more."""
    print(", ".join(str(counters.handle("Counter-1", 3).state) for _ in range(3)))
    refused = counters.handle("Counter-1", 3)
    print(f"{refused.state} of {refused.version}")


if __name__ == "__main__":
    main()
