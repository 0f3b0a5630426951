"""What a month of three services costs, beside the servers that would do the same.

Requests, units and stored bytes are counted as `bench.bill` counts them, with the functions' own handlers; prices are
AWS's list. Servers are assumed (`SERVERS`): nothing of theirs is measured here, nor the work of those who run them.

    a shop       one append a second over HTTP, each with a key and after a load, one reaction
    a fleet      1,000 a second over HTTP, ten in a request, two reactions, changes through Kinesis
    an archive   four a second over HTTP, kept for ten years in the class of storage that is seldom asked

And from when on it pays to keep a table in that class, or to move what is full to S3.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

from bench.bill import HOURS, MILLION, PRICES, Pace, Setup, bill, counted
from bench.functions import INDEX, Use
from bench.report import Report
from epochal.pages.items import read_page
from epochal.plan.values import Item, item_size

MONTH: Final = 30 * 24 * 3_600
EVENTS: Final = 1_000
"""Whose items are weighed."""

ITEM: Final = 100
"""Bytes that DynamoDB bills for each item besides its own."""

STORED: Final = 0.25 / 1e9
SELDOM: Final = 0.10 / 1e9
RESTORED: Final = 0.20 / 1e9
IN_S3: Final = 0.023 / 1e9
"""Dollars for a byte in a month: standard, Standard-IA, recovery to any second, S3."""

SELDOM_DEARER: Final = 1.25
"""Units of a table in Standard-IA against those of a standard one."""

REFERENCE: Final = 48
"""Bytes that a page would need to say where in S3 its frames are: a digest, a place, a length."""

ALARM: Final = 0.10
ALARMS: Final = 53
REACTION_ALARMS: Final = 9
DASHBOARD: Final = 3.0
POLLS: Final = 0.30
"""Of a reaction's queue, which Lambda polls."""

SHARD: Final = 10.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service, and what its monthly bill depends on.

    Attributes:
        a_second: appends per second, each of one event of 300 bytes of JSON.
        setup: configuration and use of its stage.
        months: number of months that events are kept; the bill is that of the last one.
        seldom: whether its streams are in Standard-IA.
        shards: number of Kinesis shards.
    """

    name: str
    a_second: float
    setup: Setup
    months: int
    seldom: bool = False
    shards: int = 0

    @property
    def millions(self) -> float:
        """Millions of appends in a month."""
        return self.a_second * MONTH / MILLION

    def month(self) -> dict[str, float]:
        """Dollars of the last month, by purpose."""
        components = bill(self.setup, Pace(name=self.name, a_second=self.a_second))
        stored = self.millions * MILLION * self.months * bytes_an_event(self.setup.together)
        reactions = self.setup.use.reactions
        writes = components.pop("DynamoDB: writes") * (SELDOM_DEARER if self.seldom else 1)
        feed = sum(dollars for name, dollars in components.items() if name.startswith("feed"))
        reacting = sum(dollars for name, dollars in components.items() if name.startswith("reaction"))
        return {
            "appends and loads": self.millions * (sum(components.values()) - feed - reacting + writes),
            "feed": self.millions * feed + self.shards * SHARD,
            "reactions": self.millions * reacting + reactions * POLLS,
            "storage": stored * (SELDOM if self.seldom else STORED),
            "recovery to any second": stored * RESTORED,
            "alarms and dashboard": (ALARMS + reactions * REACTION_ALARMS) * ALARM + DASHBOARD,
        }


SERVICES: Final = (
    Service(
        name="a shop",
        a_second=1,
        setup=Setup(name="a shop", use=Use(streams=30, keyed=True, loads=True, partitions=4, reactions=1)),
        months=12,
    ),
    Service(
        name="a fleet",
        a_second=1_000,
        setup=Setup(
            name="a fleet", access_log=False, window=10, together=10, use=Use(partitions=4, reactions=2)
        ),
        months=3,
        shards=4,
    ),
    Service(
        name="an archive",
        a_second=4,
        setup=Setup(name="an archive", access_log=False, window=10, use=Use(partitions=4)),
        months=120,
        seldom=True,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """An alternative store of the events: its machines, and the price of a gigabyte.

    Attributes:
        hour: dollars an hour for all machines, for each of the services.
        gigabyte: dollars a month for a gigabyte, including all copies.
        event: assumed number of bytes of an event of 300 bytes with its indexes.
    """

    name: str
    hour: tuple[float, ...]
    gigabyte: float
    event: int = 450

    def month(self, number: int, service: Service) -> float:
        """Dollars of the service's last month."""
        stored = service.millions * MILLION * service.months * self.event / 1e9
        return HOURS * self.hour[number] + stored * self.gigabyte


SERVERS: Final = (
    # t4g.medium, m7g.xlarge and m7g.large, with gp3 volumes.
    Server(name="KurrentDB, one server", hour=(0.0336, 0.1632, 0.0816), gigabyte=0.08),
    Server(name="KurrentDB, three servers", hour=(3 * 0.0336, 3 * 0.1632, 3 * 0.0816), gigabyte=3 * 0.08),
    # db.t4g.small, db.m7g.xlarge and db.m7g.large in two zones, with gp3 volumes.
    Server(name="PostgreSQL on RDS, two zones", hour=(0.065, 0.674, 0.337), gigabyte=0.23),
)


@cache
def _kept(together: int) -> tuple[Item, ...]:
    """Append `EVENTS` events to ten streams, `together` in an append; return the items of the tables."""
    setup = Setup(name="kept", use=Use(streams=10), together=together, counted=EVENTS)
    tables = counted(setup, Pace(name="kept", a_second=100)).tables
    return tuple(item for table in ("streams", INDEX) for item in tables.items(table))


def bytes_an_event(together: int = 1) -> float:
    """Return the billed bytes of an event in all tables."""
    return _billed(_kept(together)) / EVENTS


def _billed(items: Iterable[Item]) -> int:
    return sum(item_size(item) + ITEM for item in items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to store pages: its monthly cost relative to a standard table, and the months after which it pays off."""

    left: float
    pays_after: float


def ways_to_keep() -> dict[str, Way]:
    """In Standard-IA units are dearer, and no item moves. In S3 a page leaves a stub, since a writer that holds a token
    of it may begin the next one only where there is none; taking its frames away is a write. A request to S3 is shared
    by a thousand pages.
    """
    pages = [item for item in _kept(1) if "f" in item and read_page(item).full]
    events, unit = sum(read_page(item).count for item in pages), PRICES["write unit"][0]
    bare = [{name: value for name, value in item.items() if name != "f"} for item in pages]
    whole, stubs = _billed(pages), _billed(bare) + REFERENCE * len(pages)
    in_s3 = stubs * STORED + (whole - _billed(bare)) * IN_S3
    moving = len(pages) * (unit + PRICES["read unit"][0])
    return {
        "in Standard-IA": Way(
            left=SELDOM / STORED,
            pays_after=events * unit * (SELDOM_DEARER - 1) / (whole * (STORED - SELDOM)),
        ),
        "in S3": Way(left=in_s3 / (whole * STORED), pays_after=moving / (whole * STORED - in_s3)),
    }


def main() -> None:
    """Print the monthly bill of each service beside servers, and when other ways to store pages pay off."""
    months = {service.name: service.month() for service in SERVICES}
    first = next(iter(months.values()))
    Report(
        title="Dollars a month",
        columns=["", *months],
        rows=[
            *((name, *(f"{month[name]:,.2f}" for month in months.values())) for name in first),
            ("in all", *(f"{sum(month.values()):,.2f}" for month in months.values())),
            *(
                (server.name, *(f"{server.month(n, service):,.2f}" for n, service in enumerate(SERVICES)))
                for server in SERVERS
            ),
        ],
    ).print()
    ways = ways_to_keep()
    Report(
        title="Pages that are kept otherwise than in a standard table",
        columns=["", *ways],
        rows=[
            ("of what they cost a month", *(f"{way.left:.0%}" for way in ways.values())),
            ("pays after months", *(f"{way.pays_after:.1f}" for way in ways.values())),
        ],
    ).print()


if __name__ == "__main__":
    main()
