"""How wild a simulated world is. Each seed draws it, since faults that are all equally likely mask each other."""

from __future__ import annotations

import random
from dataclasses import dataclass

from epochal.index.epochs import EpochLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """How wild a world is. Chances are of each turn, or of each request.

    Attributes:
        faults: a request is throttled, loses its answer, or takes its invocation with it.
        again: an invocation starts on a batch that is done, or that another is at.
        drops: a record never arrives.
        stale: an invocation starts with the state that some earlier one held.
        pieces: gaps are healed event by event.
        jumbled: a record comes twice; and likewise, that one comes late.
    """

    limits: EpochLimits
    shards: int
    streams: int
    appends: int
    batch: int
    invocations: int
    faults: float
    again: float
    drops: float
    prunes: float
    stale: float
    pieces: bool
    jumbled: float = 0.0

    @classmethod
    def draw(cls, rng: random.Random) -> Weather:
        """Small epochs, few streams: so that everything meets everything. Or nearly every event begins a stream."""
        limits = EpochLimits(
            entries=rng.choice((1, 1, 2, 3, 6)),
            streams=rng.choice((2, 4, 100)),
            bytes=rng.choice((150, 1_000, 100_000)),
        )
        return cls(
            limits=limits,
            shards=rng.randint(1, 3),
            streams=rng.choice((rng.randint(2, 6), rng.randint(2, 6), 40)),
            appends=rng.randint(8, 22),
            batch=rng.choice((1, 2, 4)),
            invocations=rng.randint(1, 4),
            faults=rng.choice((0.0, 0.05, 0.2)),
            again=rng.choice((0.0, 0.1, 0.3)),
            drops=rng.choice((0.0, 0.1)),
            prunes=rng.choice((0.0, 0.0, 0.1)),
            stale=rng.choice((0.2, 0.9)),
            pieces=rng.random() < 0.3,
        )
