"""How many appends a second one tag takes: a model of DynamoDB's transactions, not a measurement.

    python -m bench.hot_tag

An append under several tags, or under a tag and a type, is a transaction on the head of each. The model is of one head
that all of them have, of what AWS says, and of what it is known to do:

    a transaction     takes two phases, 10 to 20 ms together, in which the items that it writes are locked
    a rival           is refused at once with a TransactionConflict while they are; the library's driver sends it again
    a stale head      is refused by its condition; the writer pauses and decides anew, on a head that it reads
    a key             takes 1,000 write and 3,000 read units a second; a write in a transaction takes two units a KB,
                      refused or not; what is above that is throttled, and sent again like a conflict

Writers decide as fast as they can, each one decision after another, which begins with a read. Pauses are those of the
library.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field
from itertools import count
from math import ceil
from typing import Final

from epochal.layout.giving_way import pause_after
from epochal.store.driver import DEFAULT

READ_SECONDS: Final = 0.004
"""A strongly consistent read of one item, from a function in the same region."""

WRITE_UNITS: Final = 1_000
READ_UNITS: Final = 3_000
"""Units that one key takes in a second."""

PHASES: Final = (0.010, 0.020)
WRITERS: Final = (1, 2, 4, 8, 16, 32)
SECONDS: Final = 60


@dataclass(slots=True)
class Head:
    """The head of the tag: its version, the time until which it is locked, and the units that are left."""

    version: int = 0
    locked: float = 0.0
    units: dict[str, float] = field(default_factory=lambda: {"read": READ_UNITS, "write": WRITE_UNITS})
    refilled: float = 0.0

    def takes(self, kind: str, units: float, now: float) -> bool:
        """Consume units of a kind, and return whether the key had them."""
        since, self.refilled = now - self.refilled, now
        for name, most in (("read", READ_UNITS), ("write", WRITE_UNITS)):
            self.units[name] = min(most, self.units[name] + since * most)
        if self.units[kind] < units:
            return False
        self.units[kind] -= units
        return True


@dataclass(slots=True)
class Writer:
    """A writer that makes one decision after another.

    Attributes:
        known: version of the head that the writer has read; None if it has to read it.
        failures: requests of this attempt that conflicted or were throttled.
        refusals: number of times that this decision's condition was refused.
        begun: time at which the decision began.
    """

    known: int | None = None
    failures: int = 0
    refusals: int = 0
    begun: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Modelled:
    """Figures of a number of writers in the model.

    Attributes:
        appends: appends per second.
        attempts: transactions sent per append.
        slowest: 99th percentile of the duration of a decision, in seconds.
    """

    appends: float
    attempts: float
    slowest: float


def model(
    writers: int, phases: float, kilobytes: float = 1.0, seconds: int = SECONDS, seed: int = 1
) -> Modelled:
    """Run the model for some simulated seconds.

    Args:
        phases: seconds of both phases of a transaction.
        kilobytes: size of the head.
    """
    luck, head, order = random.Random(seed), Head(), count()
    queue: list[tuple[float, int, Writer]] = [
        (luck.random() * phases, next(order), Writer()) for _ in range(writers)
    ]
    heapq.heapify(queue)
    sent, took = 0, list[float]()
    while True:
        now, _, writer = heapq.heappop(queue)
        if now > seconds:
            break
        if writer.known is None:
            passes = head.takes("read", ceil(kilobytes / 4), now)
            writer.known = head.version if passes else None
            wait = READ_SECONDS if passes else DEFAULT.wait(1, luck.random())
        else:
            sent += 1
            if not head.takes("write", 2 * ceil(kilobytes), now) or now < head.locked:
                writer.failures += 1
                wait = READ_SECONDS + DEFAULT.wait(writer.failures, luck.random())
            elif writer.known != head.version:
                writer.refusals, writer.failures, writer.known = writer.refusals + 1, 0, None
                pause = pause_after(writer.refusals)
                times = 0.0 if pause is None else pause.least + (pause.most - pause.least) * luck.random()
                wait = phases / 2 + phases * times
            else:
                head.version, head.locked, wait = head.version + 1, now + phases, phases
                took.append(now + phases - writer.begun)
                writer.known, writer.failures, writer.refusals = None, 0, 0
                writer.begun = now + phases
        heapq.heappush(queue, (now + wait, next(order), writer))
    took += [seconds - writer.begun for _, _, writer in queue]  # those that are still at it
    slowest = sorted(took)[int(0.99 * len(took))]
    return Modelled(appends=head.version / seconds, attempts=sent / head.version, slowest=slowest)


def main() -> bool:
    """Print the model's figures for each number of writers."""
    print("| writers | appends a second, 10 ms | 20 ms | attempts an append | slowest 1 % of decisions |")
    print("|---:|---:|---:|---:|---:|")
    for writers in WRITERS:
        quick, slow = (model(writers, phases) for phases in PHASES)
        print(
            f"| {writers} | {quick.appends:.0f} | {slow.appends:.0f} | {quick.attempts:.1f} to {slow.attempts:.1f} "
            f"| {quick.slowest:.2f} to {slow.slowest:.2f} s |"
        )
    return True


if __name__ == "__main__":
    main()
