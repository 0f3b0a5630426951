"""Wake-ups: what a queue delivers to a reaction, and what becomes of each.

    the checkpoint has reached the position     done
    there was no time for more, or for any      done, and the partition wakes itself up: no failure
    the group pauses                            done: it is woken again once it goes on
    blocked, or no progress                     failed: it comes again, and at last goes to a queue with an alarm
    woken too often at one checkpoint           failed and logged: such a catch-up would go on for ever

A wake-up that has come several times is handled carefully: a process may have died over it.

Lambda ends a function that has woken itself some 16 times, unless recursion is allowed. Reactions allow it, so the
bound is ours: wake-ups that a group sends itself count those in a row that have found the group at one checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from epochal.index.checkpoints import BEGINNING, Checkpoint
from epochal.index.group_state import Unit
from epochal.lazy_dataclasses import dataclass, field
from epochal.reactions.reactor import RunResult

WORTHWHILE_SECONDS: Final = 0.5
"""Least seconds for which a partition is run. With less time left, since others of its batch took longer than their
share, it is woken again instead."""

CAREFUL_FROM: Final = 3
"""Deliveries of a message from which on processes are assumed to have died over it; one repeat may be a deployment."""

MOST_HOPS: Final = 500
"""Most wake-ups in a row that a group sends itself at one checkpoint. A page has some 11,000 events at most: 8 in
parallel, with calls of 12 seconds each, it takes 350 runs of a function with a timeout of a minute."""


@dataclass(frozen=True, slots=True)
class Standstill:
    """How many wake-ups of a group's own in a row have found it at one checkpoint.

    Attributes:
        at: the checkpoint.
        hops: the number of wake-ups.
    """

    at: Checkpoint = BEGINNING
    hops: int = 0

    def then(self, checkpoint: Checkpoint) -> Standstill:
        """Return the count for the next wake-up of a group that has reached `checkpoint`."""
        return Standstill(checkpoint, self.hops + 1 if checkpoint <= self.at else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeUp:
    """A message of the queue.

    Attributes:
        id: id of the message.
        unit: the partition to run, or the share of it.
        position: checkpoint up to which there are events.
        receives: number of deliveries of the message, this one included.
        standing: how often the group has woken itself at one checkpoint; no times unless it sent this wake-up.
        aside: whether it has a message group of its own, so that it waits for no other wake-up of its unit.
    """

    id: str
    unit: Unit
    position: Checkpoint
    receives: int = 1
    standing: Standstill = Standstill()
    aside: bool = False

    @property
    def partition(self) -> int:
        """The partition to run."""
        return self.unit.partition

    @property
    def concerns_all_members(self) -> bool:
        """Whether it concerns every member of its partition, since notices and schedules name partitions only."""
        return not self.unit.share and not self.standing.hops

    @property
    def careful(self) -> bool:
        """Whether to run the partition carefully, since a process may have died over this wake-up."""
        return self.receives >= CAREFUL_FROM


@dataclass(frozen=True, slots=True, kw_only=True)
class Woken:
    """The result of a batch of wake-ups.

    Attributes:
        failed: ids of the messages that must be delivered again.
        runs: results of the runs by unit.
        stuck: units that have made no progress for too long, with their counts of wake-ups.
    """

    failed: tuple[str, ...]
    runs: dict[Unit, RunResult]
    stuck: dict[Unit, Standstill] = field(default_factory=dict)


RunUnit = Callable[[Unit, float, bool], RunResult]
"""Function that runs a partition, or a share of it, for so many seconds, carefully or not."""

Again = Callable[[Unit, Checkpoint, Standstill], None]
"""Function that wakes a unit again for a position, with its count of wake-ups at one checkpoint."""


def handle_wake_ups(
    wake_ups: Iterable[WakeUp], remaining: Callable[[], float], run: RunUnit, again: Again
) -> Woken:
    """Run each woken partition in its part of the time, or wake it again; return runs and failures."""
    by_unit: dict[Unit, list[WakeUp]] = {}
    for wake_up in wake_ups:
        by_unit.setdefault(wake_up.unit, []).append(wake_up)
    failed: list[str] = []
    runs: dict[Unit, RunResult] = {}
    stuck: dict[Unit, Standstill] = {}
    for done, (unit, messages) in enumerate(by_unit.items()):
        position = max(message.position for message in messages)
        careful = any(message.careful for message in messages)
        stood = max(
            (message.standing for message in messages), key=lambda standing: (standing.at, standing.hops)
        )
        seconds = remaining() / (len(by_unit) - done)
        ran = None if seconds < WORTHWHILE_SECONDS else run(unit, seconds, careful)
        if ran is not None:
            runs[unit] = ran
            if ran.at_tail or ran.paused or ran.checkpoint >= position:
                continue
        standstill = stood.then(stood.at if ran is None else ran.checkpoint)
        if standstill.hops > MOST_HOPS:
            stuck[unit] = standstill
        elif ran is None or (ran.blocked is None and ran.moved):
            again(unit, position, standstill)
            continue
        # A wake-up sent aside has a twin in the partition's message group, which is delivered again.
        failed += [message.id for message in messages if not message.aside]
    return Woken(failed=tuple(failed), runs=runs, stuck=stuck)
