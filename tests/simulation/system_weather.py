"""How wild a whole system is. Each seed draws it, since faults that are all equally likely mask each other."""

from __future__ import annotations

import random
from dataclasses import dataclass

from epochal.index.epochs import EpochLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """How wild a system is. Chances are of each turn, delivery or request.

    Attributes:
        limits: epochs are over soon, so that checkpoints cross their ends.
        partitions: of the feed, by source.
        ledger: the source that the second group is fed from.
        faults: a request is throttled, lost, unanswered or late.
        deaths: a process dies before one of its first requests.
        again: a batch or a message that was handled comes once more.
        withheld: a batch that is there is not delivered yet.
        retries: a batch is given up after so many, and its records are lost to the indexer.
        splits: a shard splits.
        refuses: the topic does not take an entry.
        ticks: a reaction's schedule wakes it.
    """

    limits: EpochLimits
    partitions: dict[str, int]
    ledger: str
    faults: float
    deaths: float
    again: float
    withheld: float
    retries: int
    splits: float
    refuses: float
    ticks: float

    @classmethod
    def draw(cls, luck: random.Random) -> Weather:
        """Return random chances of faults, and random limits."""
        return cls(
            limits=EpochLimits(entries=luck.choice((1, 2, 3, 100))),
            partitions={"tips": 2, "journal": 1, "dcb": luck.choice((1, 2))},
            ledger=luck.choice(("tips", "journal", "dcb")),
            faults=luck.choice((0.0, 0.03, 0.1)),
            deaths=luck.choice((0.0, 0.1, 0.4)),
            again=luck.choice((0.0, 0.1, 0.3)),
            withheld=luck.choice((0.0, 0.2)),
            retries=luck.choice((0, 0, 50)),
            splits=luck.choice((0.0, 0.1)),
            refuses=luck.choice((0.0, 0.2)),
            ticks=luck.choice((0.0, 0.05)),
        )

    def lifetime(self, luck: random.Random) -> int | None:
        """Return the number of requests after which a process dies; None if it does not."""
        return luck.randrange(25) if luck.random() < self.deaths else None
