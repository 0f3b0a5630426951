"""Wake-ups: what a queue delivers to a reaction, and what becomes of each.

    the checkpoint has reached the position     done
    there was no time for more, or for any      done, and the partition wakes itself up: a long catch-up is no failure
    blocked, or not a step further              failed: it comes again later, and at last goes to a queue with an alarm

A wake-up that has come several times is handled carefully: a process may have died over it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from epochal.index.checkpoints import BEGINNING, Checkpoint
from epochal.reactions.reactor import Ran

WORTHWHILE_SECONDS: Final = 0.5
"""With less time than this a partition is not begun: others of its batch took longer than they should have."""

CAREFUL_FROM: Final = 3
"""Receives of a message from which on processes are taken to have died over it: once may be a deployment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeUp:
    """A message of the queue.

    Attributes:
        id: the message's.
        position: the partition had got there.
        receives: how often the message has come, this time included.
    """

    id: str
    partition: int
    position: Checkpoint
    receives: int = 1

    @property
    def careful(self) -> bool:
        """Whether to find out what processes die over."""
        return self.receives >= CAREFUL_FROM


@dataclass(frozen=True, slots=True, kw_only=True)
class Woken:
    """What came of a batch: the messages that must come again, and each partition's run."""

    failed: tuple[str, ...]
    runs: dict[int, Ran]


Run = Callable[[int, float, bool], Ran]
"""Runs a partition for so many seconds, carefully or not."""

Again = Callable[[int, Checkpoint, Checkpoint], None]
"""Wakes a partition up again: for a position, at a checkpoint."""


def wake(wake_ups: Iterable[WakeUp], remaining: Callable[[], float], run: Run, again: Again) -> Woken:
    """Run every partition that was woken, the time that remains divided among them."""
    by_partition: dict[int, list[WakeUp]] = {}
    for each in wake_ups:
        by_partition.setdefault(each.partition, []).append(each)
    failed: list[str] = []
    runs: dict[int, Ran] = {}
    for done, (partition, messages) in enumerate(by_partition.items()):
        position = max(message.position for message in messages)
        careful = any(message.careful for message in messages)
        seconds = remaining() / (len(by_partition) - done)
        if seconds < WORTHWHILE_SECONDS:
            again(partition, position, BEGINNING)
            continue
        ran = run(partition, seconds, careful)
        runs[partition] = ran
        if ran.at_tail or ran.checkpoint >= position:
            continue
        if ran.blocked is None and ran.moved:
            again(partition, position, ran.checkpoint)
        else:
            failed += [message.id for message in messages]
    return Woken(failed=tuple(failed), runs=runs)
