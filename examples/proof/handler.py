"""Takes as long over an event as the event says, so that a few events are work for many invocations."""

from __future__ import annotations

import time

from epochal import Delivery, lambda_handler, reaction


@reaction(name="proof", categories=["EpochalProof"], types=["Slow"], max_events=1)
def proof(delivery: Delivery) -> None:
    """Rest, and be done."""
    for event in delivery.each():
        if event.gone is None:
            time.sleep(event.json()["seconds"])


handler = lambda_handler(proof)
