"""What a million events cost on their way into a lake, beside the reaction that sends them.

The reaction is the real one, over a feed in memory: its records are counted as Firehose charges them, each by begun
5 KB. An event has 300 bytes of JSON; files are written every 300 seconds, as a lake does where nobody says otherwise.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import Final

from bench.bill import MILLION, REGION, STEADY, TRICKLE, Pace
from bench.corpus import body
from bench.report import Report
from epochal.contrib.publish.cloudevents import Message
from epochal.contrib.publish.publication import Publication, publisher
from epochal.contrib.publish.recipients import LIMITS
from epochal.model.events import Event
from epochal.testing.feeds import MemoryStore

STREAMS: Final = 15
EVENTS: Final = 300
SECONDS: Final = 300

CHARGED: Final = 5 * 1024
GIGABYTE: Final = 2**30
PRICES: Final = {
    "Firehose: taken in": 0.029,
    "Firehose: converted to Parquet": 0.018,
}
"""Dollars for a gigabyte, each record up to the next 5 KB."""

PUT: Final = 5.0 / MILLION
"""Dollars for a file that is put into S3."""


@cache
def charged(together: int) -> float:
    """Return the bytes of an event that Firehose charges, for a number of events per batch."""
    sizes: list[int] = []

    def send(messages: Sequence[Message]) -> None:
        sizes.extend(len(message.text.encode()) + 1 for message in messages)

    publication = Publication(name="lake", to="firehose", place="lake", source="bench", as_rows=True)
    sending = publisher(publication, None, "", send, LIMITS["firehose"])
    feed, rng = MemoryStore(), random.Random(1)
    for number in range(EVENTS):
        event = Event(type="Happened", data=body(rng, 300, "json"))
        feed.streams.append(f"Flight-{number % STREAMS}", [event])
        if number % together == together - 1:
            feed.react(sending)
    feed.react(sending)
    return sum(-(-size // CHARGED) * CHARGED for size in sizes) / EVENTS


def bill(pace: Pace) -> dict[str, float]:
    """Return the dollars for a million events, by component."""
    gigabytes = charged(max(1, round(pace.a_second))) * MILLION / GIGABYTE
    files = min(MILLION / pace.a_second / SECONDS, MILLION)
    return {name: price * gigabytes for name, price in PRICES.items()} | {"S3: files": files * PUT}


def rows() -> list[tuple[str, ...]]:
    """Return the rows of the table, with components at both paces."""
    bills = [bill(pace) for pace in (STEADY, TRICKLE)]
    component_rows = [(name, *(f"{bill_[name]:.2f}" for bill_ in bills)) for name in bills[0]]
    return [*component_rows, ("**together**", *(f"**{sum(bill_.values()):.2f}**" for bill_ in bills))]


def main() -> None:
    """Print the table."""
    title = f"Dollars for a million events in a lake, beside its reaction: {REGION}"
    Report(title=title, columns=["", STEADY.name, TRICKLE.name], rows=rows()).print()
