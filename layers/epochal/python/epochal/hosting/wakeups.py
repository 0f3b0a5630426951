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
from epochal.index.groups import Unit
from epochal.lazy_dataclasses import dataclass, field
from epochal.reactions.reactor import Ran

WORTHWHILE_SECONDS: Final = 0.5
"""With less time than this a partition is not begun: others of its batch took longer than they should have."""

CAREFUL_FROM: Final = 3
"""Receives of a message from which on processes are taken to have died over it: once may be a deployment."""

MOST_HOPS: Final = 500
"""Wake-ups of one's own in a row that find the group at one checkpoint. A page has some 11,000 events at most: 8 side
by side, with calls of 12 seconds each, it takes 350 runs of a function of a minute."""


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
        """The count for the next wake-up, of a group whose checkpoint is `checkpoint` by now."""
        return Standstill(checkpoint, self.hops + 1 if checkpoint <= self.at else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeUp:
    """A message of the queue.

    Attributes:
        id: the message's.
        position: the partition had got there.
        receives: how often the message has come, this time included.
        standing: of one that the reaction has sent itself.
        aside: whether it has come beside the others of its unit.
    """

    id: str
    unit: Unit
    position: Checkpoint
    receives: int = 1
    standing: Standstill = Standstill()
    aside: bool = False

    @property
    def partition(self) -> int:
        """Which."""
        return self.unit.partition

    @property
    def concerns_all_members(self) -> bool:
        """Whether it is meant for every member of its partition: notices and schedules know of partitions alone."""
        return not self.unit.share and not self.standing.hops

    @property
    def careful(self) -> bool:
        """Whether to find out what processes die over."""
        return self.receives >= CAREFUL_FROM


@dataclass(frozen=True, slots=True, kw_only=True)
class Woken:
    """What came of a batch: the messages that must come again, each partition's run, and where those stand that have
    not got on for too long.
    """

    failed: tuple[str, ...]
    runs: dict[Unit, Ran]
    stuck: dict[Unit, Standstill] = field(default_factory=dict)


Run = Callable[[Unit, float, bool], Ran]
"""Runs a partition, or a share of it, for so many seconds, carefully or not."""

Again = Callable[[Unit, Checkpoint, Standstill], None]
"""Wakes a partition up again: for a position, from where it stands."""


def wake(wake_ups: Iterable[WakeUp], remaining: Callable[[], float], run: Run, again: Again) -> Woken:
    """Run every partition that was woken, the time that remains divided among them."""
    by_unit: dict[Unit, list[WakeUp]] = {}
    for wake_up in wake_ups:
        by_unit.setdefault(wake_up.unit, []).append(wake_up)
    failed: list[str] = []
    runs: dict[Unit, Ran] = {}
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
        # What came aside has another one with the others, which comes again.
        failed += [message.id for message in messages if not message.aside]
    return Woken(failed=tuple(failed), runs=runs, stuck=stuck)
