"""The demo's steps, each a function of a store: send, wait for the index, verify the whole feed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from examples.flights.following import Follower, Lag
from examples.flights.happenings import Batch
from examples.flights.ledger import Ledger
from examples.flights.stores import Store, walk
from examples.flights.verification import Difference, Verification
from examples.flights.writers import Tally, Writer, write_all

WRITERS = 4
"""Several, and few enough for the two cores of a small machine: each needs a warm instance of every function."""

INDEX_PATIENCE = 60.0
"""Seconds without any progress of the index after which it is taken for dead."""

SHOWN = 20
"""Differences that are kept; the rest is counted."""

Tick = Callable[[int], object]
"""Hears how many events have passed so far."""


@dataclass(slots=True, kw_only=True)
class Sending:
    """What was sent, what it took, and how far the index followed."""

    ledger: Ledger = field(default_factory=Ledger)
    lag: Lag = field(default_factory=Lag)
    tally: Tally = field(default_factory=Tally)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the walk over the whole feed came to.

    Attributes:
        seen: items of the feed.
        differences: how many things were wrong with them.
        first: the first of those.
        tails: where each partition ended.
    """

    seen: int
    differences: int
    first: tuple[Difference, ...]
    tails: dict[int, str]
    seconds: float


def send(store: Store, batches: Iterable[Batch], *, sent: Tick, arrived: Tick) -> Sending:
    """Write all batches, follow the feed meanwhile, and return once it has everything."""
    sending = Sending()
    done = 0

    def acknowledged(stream: str, first: int, version: int) -> None:
        nonlocal done
        sending.lag.acknowledged(stream, first, version)
        done += version - first  # shown, not judged: two threads at once may lose a count
        sent(done)
        arrived(sending.lag.arrived)

    writers = [Writer(store=store, ledger=sending.ledger, acknowledged=acknowledged) for _ in range(WRITERS)]
    follower = Follower(store, sending.lag)
    started = time.monotonic()
    try:
        sending.tally = write_all(writers, batches)
        sending.seconds = time.monotonic() - started
        sent(sending.tally.events)
        follower.wait_for(
            sending.tally.events, patience=INDEX_PATIENCE, tick=lambda: arrived(sending.lag.arrived)
        )
        arrived(sending.lag.arrived)
    finally:
        follower.stop()
    return sending


def verify(store: Store, ledger: Ledger, *, seen: Tick) -> Verdict:
    """Walk every partition from its first epoch on, with data, against the ledger."""
    started = time.monotonic()
    verification = Verification(ledger=ledger)
    found: list[Difference] = []
    count = 0
    tails: dict[int, str] = {}

    def note(differences: Iterable[Difference]) -> None:
        nonlocal count
        for difference in differences:
            count += 1
            if count <= SHOWN:
                found.append(difference)

    for partition in store.tails():
        for page in walk(store, partition, data=True):
            for item in page.items:
                note(verification.check(item.stream, item.index, item.type, item.body))
            tails[partition] = page.next
            seen(verification.seen)
    note(verification.finish())
    return Verdict(
        seen=verification.seen,
        differences=count,
        first=tuple(found),
        tails=tails,
        seconds=time.monotonic() - started,
    )
