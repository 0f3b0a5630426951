"""Sums up what is in each cart. It does not know what to do about an item without a price, so such carts are parked."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal

from epochal import Delivery, reaction
from epochal.codec import json

totals: defaultdict[str, Decimal] = defaultdict(Decimal)


@reaction(name="prices", categories=["Cart"], types=["ItemAdded"], attempts=2)
def prices(delivery: Delivery) -> None:
    """Add the prices of a delivery to its cart's total."""
    total = Decimal()
    for event in delivery.events:
        if isinstance(event.data, bytes):
            total += json.loads(event.data)["price"]
    totals[delivery.stream] += total
