"""Seeded appends of every size: the same bytes on every machine, so that figures can be repeated to the unit.

Two kinds of body. `direct`: random bytes, which no compression shortens, so the class is what is stored. `json`: an
aircraft's log as JSON text of the class's size, which brotli shortens as it would a user's.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from epochal.model.events import Event, Unfold

Kind = Literal["direct", "json"]

UNFOLD_BYTES = 1024

_WORDS = (
    *("cleared", "taxi", "runway", "departure", "climb", "cruise", "level", "heading", "descend", "approach"),
    *("landed", "gate", "fuel", "delayed", "crew", "weather", "wind", "gusts", "visibility", "inspection"),
)
_AIRPORTS = ("ATL", "BOS", "CLT", "DFW", "EWR", "FLL", "JFK", "LAX", "LGA", "MCO", "MIA", "ORD", "SEA", "SFO")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Appends of one event each to one stream.

    Attributes:
        size: number of bytes of a body before compression.
        jitter: largest deviation of sizes from `size`, evenly distributed: 0.3 is ±30 %.
        long_tail: whether sizes are exponentially distributed instead: many small, few large.
        unfold: number of bytes of the unfold that each append replaces; 0 for none.
    """

    size: int
    jitter: float = 0.0
    long_tail: bool = False
    unfold: int = 0
    kind: Kind = "direct"
    length: int = 1000
    seed: int = 1

    @property
    def shape(self) -> str:
        """Name of the distribution of sizes and of the kind of bodies."""
        return f"{self.kind}, long tail" if self.long_tail else f"{self.kind} ±{self.jitter:.0%}"

    def appends(self) -> Iterator[tuple[list[Event], list[Unfold] | None]]:
        """Yield the arguments of the stream's appends, in order."""
        rng = random.Random(f"{self.seed}/{self.shape}/{self.size}/{self.unfold}")
        for _ in range(self.length):
            event = Event(type="Happened", data=body(rng, self._size(rng), self.kind))
            unfolds = [Unfold(type="State", data=body(rng, self.unfold, self.kind))] if self.unfold else None
            yield [event], unfolds

    def _size(self, rng: random.Random) -> int:
        strays = rng.expovariate(1) if self.long_tail else rng.uniform(1 - self.jitter, 1 + self.jitter)
        return max(1, round(self.size * strays))


def body(rng: random.Random, size: int, kind: Kind = "direct") -> bytes:
    """Return a body of exactly `size` bytes (JSON: at least 93)."""
    return rng.randbytes(size) if kind == "direct" else _log_entry(rng, size)


def _log_entry(rng: random.Random, size: int) -> bytes:
    origin, destination = rng.sample(_AIRPORTS, 2)
    entry = {
        "flight": rng.randrange(1, 9999),
        "origin": origin,
        "dest": destination,
        "at": f"2013-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}T{rng.randrange(24):02}:{rng.randrange(60):02}",
        "dep_delay": rng.randrange(-20, 180),
        "log": "",
    }
    room = max(0, size - len(_compact(entry)))
    # Names and figures by turns; even the shortest pair is more than five characters with its spaces.
    notes = (f"{rng.choice(_WORDS)} {rng.randrange(10_000)}" for _ in range(1 + room // 5))
    entry["log"] = " ".join(notes)[:room]
    return _compact(entry)


def _compact(entry: object) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode()
