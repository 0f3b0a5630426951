"""One seed of a layout's simulation: processes that act on its store while requests are throttled, lost, unanswered or
late, and processes die. What they do, and what must hold, each layout says for itself.

Nothing but the seed decides: each process has dice of its own, so that what it does depends on these and on what it
sees.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from epochal.plan.ops import Execute
from epochal.testing.memory import Fault, Faults, Late, Schedule
from tests.simulation.scheduler import Body, Process, mortal, run

FAULTS = (
    Fault.THROTTLED,
    Fault.LOST,
    Fault.UNANSWERED,
    Fault.UNANSWERED,
    Late(0),
    Late(1),
    Late(5),
    Late(99),
)
RATES = (0.0, 0.1, 0.3)
"""How likely a request meets a fault, as a process has it: faults that are all equally likely mask each other."""


def schedule(luck: random.Random, rate: float, requests: int) -> Schedule:
    """Return random faults for a number of requests."""
    return {number: luck.choice(FAULTS) for number in range(requests) if luck.random() < rate}


@dataclass(slots=True)
class Simulation(ABC):
    """The processes and faults that a seed chooses, and the results."""

    seed: int

    requests: ClassVar[int] = 60
    """Of each process that may meet a fault; later ones go well."""

    def play(self) -> None:
        """Let two to four processes take turns until all are done."""
        luck = random.Random(self.seed)
        networks = [self._network(luck) for _ in range(luck.randint(2, 4))]
        processes = {
            f"process {number}": Process(f"process {number}", each.execute, self._body(luck, number))
            for number, each in enumerate(networks)
        }
        run(processes, luck.choice)
        self.calm()
        for each in networks:
            each.land()

    @abstractmethod
    def calm(self) -> None:
        """Complete everything that is under way in the tables; delayed requests arrive afterwards."""

    @abstractmethod
    def execute(self, luck: random.Random, rate: float) -> Execute:
        """Return an executor on the tables that injects a number of faults."""

    @abstractmethod
    def store(self, luck: random.Random, name: str, execute: Execute) -> Any:
        """Return the store of a process, with seeded random bytes."""

    @abstractmethod
    def act(self, luck: random.Random, store: Any) -> None:
        """Make one call of a process."""

    @abstractmethod
    def check(self) -> None:
        """Check what must be true of what is stored and of what was answered."""

    def _network(self, luck: random.Random) -> Faults:
        rate = luck.choice(RATES)
        drawn = schedule(luck, rate, self.requests)
        return Faults(self.execute(luck, rate), drawn)

    def _body(self, luck: random.Random, number: int) -> Body:
        own = random.Random(luck.random())
        dies_after = own.choice((None, None, None, own.randint(0, 12)))

        def body(execute: Execute) -> None:
            store = self.store(own, f"{self.seed} {number}", mortal(execute, dies_after))
            for _ in range(own.randint(1, 5)):
                self.act(own, store)

        return body


S = TypeVar("S", bound=Simulation)


def played(simulation: S) -> S:
    """Play a seed and check the result; a failure names the seed."""
    try:
        simulation.play()
        simulation.check()
    except Exception as error:
        raise AssertionError(f"seed {simulation.seed}: {error!r}") from error
    return simulation
