"""Reactions that only wait, one stream at a time, as those that ask a service do, with 1, 4 and 16 members."""

from __future__ import annotations

import time

from epochal import Delivery, reaction

SECONDS = 0.02
"""For each event."""


@reaction(name="members-1", categories=["Member"], parallel=1)
def one(delivery: Delivery) -> None:
    """One member."""
    time.sleep(SECONDS * len(delivery.events))


@reaction(name="members-4", categories=["Member"], parallel=1, members=4)
def four(delivery: Delivery) -> None:
    """Four."""
    time.sleep(SECONDS * len(delivery.events))


@reaction(name="members-16", categories=["Member"], parallel=1, members=16)
def sixteen(delivery: Delivery) -> None:
    """Sixteen."""
    time.sleep(SECONDS * len(delivery.events))
