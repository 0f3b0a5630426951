"""Prices that change while carts are full: the old price holds for ten minutes, and no order slips between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epochal.deciders.on_queries import Decisions
from epochal.deciders.projections import Projection, projection
from epochal.model.events import Event, Recorded
from examples.dcb.store import event, memory_decisions

GRACE = 600

Prices = tuple[tuple[int, int], ...]
"""Each price with the moment from which it holds, oldest first."""


class WrongPrice(Exception):
    """The price shown is neither today's nor one that still holds."""


def prices(product: str) -> Projection[Prices]:
    """Every price a product has had."""

    def add(known: Prices, changed: Recorded) -> Prices:
        return (*known, (changed.json()["at"], changed.json()["price"]))

    return projection(
        tags=[f"product:{product}"], initial=(), on={"ProductDefined": add, "PriceChanged": add}
    )


def holds(known: Prices, price: int, now: int) -> bool:
    """Whether a price is the present one, or was until less than ten minutes ago."""
    ends = [since for since, _ in known[1:]] + [None]
    return any(
        price == each and (end is None or now <= end + GRACE)
        for (_, each), end in zip(known, ends, strict=True)
    )


def order(decisions: Decisions, basket: Mapping[str, int], now: int) -> None:
    """Order several products at the prices shown; raises `WrongPrice` naming the first that does not hold."""

    def rules(model: Mapping[str, Any]) -> list[Event]:
        for product, price in basket.items():
            if not holds(model[product], price, now):
                raise WrongPrice(f"{product} at {price}")
        return [event("Ordered", *(f"product:{product}" for product in basket), basket=dict(basket))]

    decisions.handle({product: prices(product) for product in basket}, rules)


def main() -> None:
    """Coffee gets dearer; a cart from before is honoured for a while."""
    decisions = memory_decisions()
    decisions.store.append([event("ProductDefined", "product:coffee", price=450, at=0)])
    decisions.store.append([event("ProductDefined", "product:milk", price=120, at=0)])
    decisions.store.append([event("PriceChanged", "product:coffee", price=480, at=1000)])
    for now, price in ((1300, 450), (1300, 480), (1700, 450), (1700, 400)):
        try:
            order(decisions, {"coffee": price, "milk": 120}, now)
            print(f"{now}: coffee at {price}: ordered")
        except WrongPrice as wrong:
            print(f"{now}: {wrong} does not hold")


if __name__ == "__main__":
    main()
