"""Seats of a flight: a snapshot beside the events, a cache, and two counters that sell the same seats.

Prints:

    4A is taken
    counters sold 60 seats to 60 passengers
    the plan is loaded in 1 request
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from epochal.deciders.access import snapshot
from epochal.deciders.cache import Cache
from epochal.deciders.codecs import EventCodec, json_codec
from epochal.deciders.loading import AllowStale
from epochal.deciders.on_streams import Decider, Deciders
from epochal.testing.scenarios import given
from epochal.testing.stores import memory_streams

# ------------------------------------------------------------------------------------------------------------- events


@dataclass(frozen=True)
class Sold:
    """A seat is a passenger's."""

    seat: str
    passenger: str


@dataclass(frozen=True)
class Cancelled:
    """A seat is free again."""

    seat: str


@dataclass(frozen=True)
class Plan:
    """Who sits where; the snapshot."""

    sold: dict[str, str]


Event = Sold | Cancelled | Plan

# --------------------------------------------------------------------------------------------------------------- fold


@dataclass(frozen=True)
class Flight:
    """Passengers by seat."""

    sold: dict[str, str]


def initial() -> Flight:
    """Every seat is free."""
    return Flight({})


def evolve(flight: Flight, event: Event) -> Flight:
    """A new state each time: the old one may be in a cache."""
    match event:
        case Sold(seat=seat, passenger=passenger):
            return Flight(flight.sold | {seat: passenger})
        case Cancelled(seat=seat):
            return Flight({taken: who for taken, who in flight.sold.items() if taken != seat})
        case Plan(sold=sold):
            return Flight(sold)


# ------------------------------------------------------------------------------------------------------------- decide


@dataclass(frozen=True)
class Sell:
    """Sell a seat."""

    seat: str
    passenger: str


@dataclass(frozen=True)
class Cancel:
    """Give a seat back."""

    seat: str


class Taken(Exception):
    """The seat is another's."""


def decide(command: Sell | Cancel, flight: Flight) -> Sequence[Event]:
    """Sell no seat twice. Selling it to whoever has it, or freeing a free one, is nothing to do."""
    holder = flight.sold.get(command.seat)
    match command:
        case Sell(seat=seat, passenger=passenger) if holder is None:
            return [Sold(seat, passenger)]
        case Sell(seat=seat, passenger=passenger) if holder != passenger:
            raise Taken(f"{seat} is taken")
        case Cancel(seat=seat) if holder is not None:
            return [Cancelled(seat)]
        case _:
            return []


# ------------------------------------------------------------------------------------------------------------ service


def is_plan(event: Event) -> bool:
    """Whether a state can begin with this."""
    return isinstance(event, Plan)


def to_plan(flight: Flight) -> Event:
    """A state as a snapshot."""
    return Plan(flight.sold)


codec: EventCodec[Event] = json_codec(Sold, Cancelled, Plan)
rules = Decider(initial=initial, evolve=evolve, decide=decide)
streams = memory_streams()
flights = Deciders(
    streams=streams,
    decider=rules,
    codec=codec,
    access=snapshot(is_plan, to_plan),
    cache=Cache(entries=1000),
    attempts=100,
)


def sell_what_is_free(counter: str) -> int:
    """Sell one seat after another, whoever else does."""
    sold = 0
    for row in range(1, 31):
        for letter in "AB":
            try:
                flights.handle(
                    "Flight-2", Sell(f"{row}{letter}", f"{counter}{row}{letter}"), load=AllowStale()
                )
                sold += 1
            except Taken:
                continue
    return sold


def main() -> None:
    """Show the rules by themselves, then on a store."""
    given(rules, Sold("4A", "Ada"), codec=codec).when(Cancel("4A")).then(Cancelled("4A"))
    print(given(rules, Sold("4A", "Ada")).when(Sell("4A", "Bob")).then_raises(Taken))

    with ThreadPoolExecutor(2) as pool:
        sold = sum(pool.map(sell_what_is_free, ["left", "right"]))
    print(
        f"counters sold {sold} seats to {flights.query('Flight-2', lambda flight: len(flight.sold))} passengers"
    )

    before = streams.driver.meter.requests
    flights.query("Flight-2", lambda flight: flight.sold)
    print(f"the plan is loaded in {streams.driver.meter.requests - before} request")


if __name__ == "__main__":
    main()
