"""How crowded a simulated partition is, and what befalls its indexers: each seed draws it."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest

from epochal.index import crowding, ingestion
from epochal.index.epochs import STANDARD, EpochLimits

CONSTANTS = {"CALM": 5.0, "LENGTHENING": 0.2, "LONGEST": 1.0, "CROWD": 4, "WORTHWHILE": 2, "HIGHEST": 20.0}
"""A partition in small: five shards crowd it, where it takes a hundred in a table."""


def in_small(patch: pytest.MonkeyPatch) -> None:
    """Make partitions so small that a few shards crowd them."""
    for name, value in CONSTANTS.items():
        patch.setattr(crowding, name, value)
    patch.setattr(ingestion, "MOST_SPREAD", 0.04)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestWeather:
    """A table, its shards, and what goes wrong. Chances are of each request, each batch, or each rest.

    Attributes:
        shards: each has invocations of its own.
        partitions: of the feed. Where there are two, most streams are in the first.
        window: seconds for which a mapping gathers changes.
        together: the windows of all shards end at the same moments, as after an outage.
        request: seconds that a request takes.
        busy: heads a second of each shard; the second number is the rate once the load has fallen.
        seconds: how long heads are appended, and after which part of it the load falls.
        timeout: seconds after which an invocation is ended.
        faults: a request is throttled, loses its answer, or ends its process; as likely, a notice fails.
        dies: a process ends in its rest.
        again: a batch that was acknowledged is delivered once more, to another process.
        restarts: a batch goes to a new process.
        set_back: a process's clock is set back before a batch.
    """

    shards: int
    partitions: int
    limits: EpochLimits
    window: float
    together: bool
    request: float
    busy: tuple[float, float]
    seconds: float
    timeout: float
    faults: float = 0.0
    dies: float = 0.0
    again: float = 0.0
    restarts: float = 0.0
    set_back: float = 0.0

    @property
    def fair(self) -> bool:
        """Whether nothing goes wrong, so that an indexer sees every entry of the others in time."""
        wrong = (self.faults, self.dies, self.again, self.restarts, self.set_back)
        return not any(wrong) and self.timeout > self.seconds and self.limits is STANDARD

    @classmethod
    def draw(cls, rng: Random) -> RestWeather:
        """Half of the seeds are fair; of the others each has some of what may go wrong."""
        rate = rng.choice((1.0, 5.0, 8.0, 8.0))
        common = {
            "shards": rng.choice((1, 2, 6, 7, 7)),
            "partitions": rng.choice((1, 1, 2)),
            "window": rng.choice((0.0, 0.3, 0.5, 0.5)),
            "together": rng.random() < 1 / 2,
            "request": rng.choice((0.012, 0.03)),
            "busy": (rate, rng.choice((rate, 0.2))),
            "seconds": 5.0,
        }
        if rng.random() < 1 / 2:
            return cls(**common, limits=STANDARD, timeout=1_000.0)  # type: ignore[arg-type]
        return cls(
            **common,  # type: ignore[arg-type]
            limits=rng.choice((STANDARD, EpochLimits(entries=3), EpochLimits(entries=20))),
            timeout=float(common["request"]) * rng.choice((16, 120, 100_000)),  # type: ignore[arg-type]
            faults=rng.choice((0.0, 0.01, 0.03)),
            dies=rng.choice((0.0, 0.3)),
            again=rng.choice((0.0, 0.1)),
            restarts=rng.choice((0.0, 0.1)),
            set_back=rng.choice((0.0, 0.3)),
        )
