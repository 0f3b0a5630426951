"""An order is reserved, paid within half an hour, and confirmed; or what was reserved is released.

    Order-17    Placed ─────────────────────────────────────► Confirmed, or Abandoned
    Stock-4711     └─► Reserved ──────────┐                ┌─► Released
    Payment-17              └─► Requested ┴► Paid, or late ┘

Stock and payments have rules of their own: they are deciders, and know nothing of the process.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from epochal import Decider, after, json_codec, later
from epochal.contrib.processes import Append, CommandRefused, Done, Output, Send, Target, process


@dataclass(frozen=True)
class Placed:
    """An order for one thing."""

    order: str
    sku: str
    price: int


@dataclass(frozen=True)
class Confirmed:
    """It is paid, and can be sent."""


@dataclass(frozen=True)
class Abandoned:
    """It will never be sent."""

    reason: str


@dataclass(frozen=True)
class Reserved:
    """One of the things is an order's."""

    order: str


@dataclass(frozen=True)
class Released:
    """It is nobody's again."""

    order: str


@dataclass(frozen=True)
class Requested:
    """The customer has been asked for money."""

    price: int


@dataclass(frozen=True)
class Paid:
    """The customer has paid."""


@dataclass(frozen=True)
class GaveUp:
    """Nobody has paid in time."""


@dataclass(frozen=True)
class Reserve:
    """Keep one for an order."""

    order: str


@dataclass(frozen=True)
class Release:
    """Give it back."""

    order: str


@dataclass(frozen=True)
class Request:
    """Ask for money."""

    price: int


class SoldOut(Exception):
    """All that there were are reserved."""


THERE_ARE = 3
"""Of each thing."""

PATIENCE = after(minutes=float(os.environ.get("CHECKOUT_MINUTES", "30")))
"""How long a customer may take to pay."""

Holders = frozenset[str]
"""Orders that one of the things is reserved for."""


def hold(holders: Holders, event: Reserved | Released) -> Holders:
    """The orders after one more event."""
    return holders | {event.order} if isinstance(event, Reserved) else holders - {event.order}


def decide_stock(command: Reserve | Release, holders: Holders) -> Sequence[Reserved | Released]:
    """To reserve again, or release what is not reserved, is to do nothing."""
    match command:
        case Release(order=order):
            return [Released(order)] if order in holders else []
        case Reserve(order=order) if len(holders) < THERE_ARE or order in holders:
            return [] if order in holders else [Reserved(order)]
    raise SoldOut


STOCK = Target(
    decider=Decider(initial=Holders, evolve=hold, decide=decide_stock),
    codec=json_codec(Reserved, Released),
    refusals=(SoldOut,),
)
PAYMENT = Target(
    decider=Decider(
        initial=lambda: False,
        evolve=lambda _, __: True,
        decide=lambda command, known: [] if known else [Requested(command.price)],
    ),
    codec=json_codec(Requested, Paid),
)
CODEC = json_codec(
    Placed, Confirmed, Abandoned, Reserved, Released, Requested, Paid, GaveUp, Reserve, Release, Request
)


def order_of(stream: str, event: object) -> str | None:
    """Orders and payments have the order's id as their own; events of the stock say it."""
    return event.order if isinstance(event, Reserved | Released) else stream.partition("-")[2]


@process(
    name="checkout",
    categories=["Order", "Stock", "Payment"],
    key=order_of,
    begins=[Placed],
    codec=CODEC,
    targets={"Stock": STOCK, "Payment": PAYMENT},
)
@dataclass(frozen=True)
class Checkout:
    """What is remembered of an order."""

    order: str = ""
    sku: str = ""
    price: int = 0

    def evolve(self, event: object) -> Checkout:
        """What is known after one more event."""
        match event:
            case Placed(order=order, sku=sku, price=price):
                return replace(self, order=order, sku=sku, price=price)
        return self

    def react(self, event: object) -> Iterable[Output]:
        """What is done about an event."""
        match event:
            case Placed():
                yield Send(f"Stock-{self.sku}", Reserve(self.order))
            case CommandRefused(error=error):
                yield Append("Order", [Abandoned(error)])
                yield Done()
            case Reserved():
                yield Send("Payment", Request(self.price))
                yield later("GaveUp", [GaveUp()], at=PATIENCE)
            case Paid():
                yield Append("Order", [Confirmed()])
                yield Done()
            case GaveUp():
                yield Send(f"Stock-{self.sku}", Release(self.order))
                yield Append("Order", [Abandoned("nobody has paid")])
                yield Done()
