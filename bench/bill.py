"""What a million appends over HTTP cost: the whole bill, by component.

Requests, units and bytes are counted while the functions' own handlers append and index over tables in memory
(`bench.functions`); prices are AWS's list. Time alone is assumed (`MILLISECONDS`). An append is one event of 300 bytes
of JSON, on the ETag of the one before; it comes through the feed.

Two paces, since the feed's functions are invoked once a second at most, and metrics are written once a minute:

    steady    a hundred appends a second
    trickle   a million a month
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from bench.functions import Functions, Use, Used
from bench.report import Report

MILLION: Final = 1_000_000
APPENDS: Final = 300
"""Of which figures are taken."""

REGION: Final = "us-east-1, without free tiers, November 2025"
PRICES: Final[Mapping[str, tuple[float, str]]] = {
    "gateway": (1.00 / MILLION, "a request to an HTTP API, up to 512 KB"),
    "invocation": (0.20 / MILLION, "an invocation of a function"),
    "gigabyte-second": (0.0000133334, "of a function on arm64"),
    "write unit": (0.625 / MILLION, "DynamoDB on demand"),
    "read unit": (0.125 / MILLION, "DynamoDB on demand"),
    "publish": (0.30 / MILLION, "a request to an SNS FIFO topic"),
    "message": (2 * 0.50 / MILLION, "a message of an SQS FIFO queue, received and deleted"),
    "lease": (0.50 / MILLION, "a request to an SQS FIFO queue, for what an invocation was given of it"),
    "logged": (0.50 / 1e9, "a byte taken into CloudWatch Logs"),
    "seldom read": (0.25 / 1e9, "a byte taken into a log of infrequent access"),
    "sent": (0.09 / 1e9, "a byte to the internet"),
}

MILLISECONDS: Final = {"append": 10, "replay": 10, "indexer": 30, "reaction": 30}
"""An invocation that is warm: one to five requests to AWS of 3 to 5 ms, and the handler's own work on half a CPU."""

FURTHER: Final = 2
"""Milliseconds of each further append of a request: the handler's own work; requests to AWS are side by side."""

GIGABYTES: Final = 1.0

OWN_LINES: Final = sum(
    map(
        len,
        (
            "START RequestId: 6bc28136-1111-4365-b021-0ce6b2e64ab0 Version: $LATEST\n",
            "END RequestId: 6bc28136-1111-4365-b021-0ce6b2e64ab0\n",
            (
                "REPORT RequestId: 6bc28136-1111-4365-b021-0ce6b2e64ab0\tDuration: 10.47 ms\tBilled Duration: 11 ms\t"
                "Memory Size: 1024 MB\tMax Memory Used: 118 MB\t\n"
            ),
        ),
    )
)
"""Bytes of the lines that Lambda writes by itself for an invocation, where it is let."""

ACCESS_LINE: Final = {
    "id": "JKJaXmPLvHcESHA=",
    "route": "POST /streams/{stream}/events",
    "status": "201",
    "error": "-",
    "ms": "17",
    "caller": "arn:aws:sts::123456789012:assumed-role/flights/i-0123456789abcdef0",
    "ip": "192.0.2.1",
}
"""A line of the gateway's access log."""


LINES_ONCE: Final = {"append": 570, "indexer": 415}
"""Bytes of a line of metrics as it was once written for each invocation, by Powertools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The rate at which appends arrive."""

    name: str
    a_second: float


STEADY: Final = Pace(name="steady", a_second=100)
TRICKLE: Final = Pace(name="trickle", a_second=MILLION / (30 * 24 * 3_600))


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How a stage is configured and used, as far as it affects cost.

    Attributes:
        layout: layout of the streams, as the API names it.
        joined: whether metrics are aggregated over several invocations.
        own_lines: whether Lambda writes its own three log lines.
        window: length of the indexer's batching window in seconds.
        together: number of events of an append, all in one stream.
        bulk: number of independent appends in a request.
        use: how the stage is used.
        before: number of appends that are made first and not counted.
        counted: number of appends that are measured.
    """

    name: str
    layout: str = "streams"
    gateway: bool = True
    access_log: bool = True
    joined: bool = True
    own_lines: bool = False
    window: int = 1
    together: int = 1
    bulk: int = 1
    use: Use = field(default_factory=Use)
    before: int = 0
    counted: int = APPENDS

    def batch(self, pace: Pace) -> int:
        """Events that are indexed at once."""
        return max(self.together * self.bulk, round(pace.a_second * self.window))


ONCE: Final = Setup(name="tips, a line for each request", layout="tips", joined=False, own_lines=True)
DEPLOYED: Final = Setup(name="pages: as deployed")
LEAST: Final = Setup(name="own addresses", gateway=False, access_log=False, window=10)
SETUPS: Final = (
    ONCE,
    Setup(name="metrics joined", layout="tips", own_lines=True),
    Setup(name="Lambda's lines off", layout="tips"),
    DEPLOYED,
    Setup(name="a window of 10 s", window=10),
    Setup(name="no access log", access_log=False, window=10),
    LEAST,
    Setup(name="ten events a request", gateway=False, access_log=False, window=10, together=10),
)


UNCONDITIONAL: Final = Setup(name="without an expected version", use=Use(unconditional=True))
BULK: Final = Setup(name="in bulk of ten", bulk=10, before=90)
"""Appends side by side may each look for the seal, which a process keeps; those that look are not counted."""
BULK_OF_ONE: Final = Setup(name="in bulk of ten to one stream", bulk=10, use=Use(streams=1))
REACTING_SELDOM: Final = Setup(name="one reaction, a window of 20 s", window=20, use=Use(reactions=1))
USES: Final = (
    Setup(name="15 streams"),
    Setup(name="each with a key", use=Use(keyed=True)),
    UNCONDITIONAL,
    BULK,
    BULK_OF_ONE,
    Setup(name="one reaction", use=Use(reactions=1)),
    REACTING_SELDOM,
    Setup(name="four partitions, one reaction", use=Use(partitions=4, reactions=1)),
    Setup(name="four shards, one reaction", use=Use(shards=4, reactions=1)),
)
WIDE: Final = Setup(
    name="a million streams, one reaction, keys",
    use=Use(streams=MILLION, keyed=True, reactions=1),
    before=10_000,
    counted=5_000,
)
"""Nearly every event is of a stream that the index has not seen lately. The first epochs close before it is counted."""


def bill(setup: Setup, pace: Pace) -> dict[str, float]:
    """Return the dollars for a million appends, by component."""
    used = counted(setup, pace).used
    append, feed, reaction = used["append"], used["indexer"], used.get("reaction", Used())

    def dollars(what: str, quantity: float) -> float:
        return PRICES[what][0] * quantity * MILLION / setup.counted

    def running(name: str) -> float:
        invocations = used.get(name, Used()).invocations
        further = FURTHER * (setup.bulk - 1) if name == "append" else 0
        seconds = invocations * (MILLISECONDS[name] + further) / 1000
        return dollars("invocation", invocations) + dollars("gigabyte-second", seconds * GIGABYTES)

    def logged(name: str) -> float:
        invocations = used[name].invocations
        lines = used[name].logged if setup.joined else LINES_ONCE[name] * invocations
        return dollars("logged", lines + (OWN_LINES * invocations if setup.own_lines else 0))

    loads = used.get("replay", Used())
    access = sum(len(name) + len(value) + 6 for name, value in ACCESS_LINE.items()) + 1
    return {
        "API Gateway": dollars("gateway", append.invocations if setup.gateway else 0),
        "Lambda: append": running("append"),
        "DynamoDB: writes": dollars("write unit", append.units.write),
        "DynamoDB: reads": dollars("read unit", append.units.read),
        "logs and metrics": logged("append"),
        "access log": dollars("seldom read", access * append.invocations if setup.access_log else 0),
        "answers": dollars("sent", append.answered),
        "loads": (dollars("gateway", loads.invocations) if setup.gateway else 0)
        + running("replay")
        + dollars("read unit", loads.units.read)
        + dollars("logged", loads.logged)
        + dollars("seldom read", access * loads.invocations if setup.access_log else 0)
        + dollars("sent", loads.answered),
        "feed: Lambda": running("indexer"),
        "feed: DynamoDB": dollars("write unit", feed.units.write) + dollars("read unit", feed.units.read),
        "feed: notices": dollars("publish", feed.published),
        "feed: logs and metrics": logged("indexer"),
        "reaction: Lambda": running("reaction"),
        "reaction: queue": dollars("message", reaction.messages) + dollars("lease", reaction.leases),
        "reaction: DynamoDB": dollars("write unit", reaction.units.write)
        + dollars("read unit", reaction.units.read),
    }


def counted(setup: Setup, pace: Pace) -> Functions:
    """Return a stage's functions after all its appends; they count only the measured ones."""
    return _functions(
        _Run(
            layout=setup.layout,
            use=setup.use,
            pace=pace.a_second,
            batch=setup.batch(pace),
            together=setup.together,
            bulk=setup.bulk,
            before=setup.before,
            counted=setup.counted,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Arguments of a run of the functions; setups with equal arguments share the run."""

    layout: str
    use: Use
    pace: float
    batch: int
    together: int
    bulk: int
    before: int
    counted: int


@cache
def _functions(run: _Run) -> Functions:
    functions = Functions(layout=run.layout, use=run.use)
    take = functions.follower()
    for count in (run.before, run.counted):
        functions.used = {name: Used() for name in functions.used}
        functions.append(
            count, pace=run.pace, together=run.together, take=take, every=run.batch, bulk=run.bulk
        )
    functions.end()
    return functions


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """An alternative to the stage: PostgreSQL, and a program that serves HTTP.

    Attributes:
        month: dollars a month, by list price.
        a_second: appends per second that the server is assumed to handle.
    """

    name: str
    month: float
    a_second: float

    def cheaper_above(self, million: float) -> float:
        """Return the millions of appends a month above which the server is cheaper."""
        return self.month / million

    def used(self, million: float) -> float:
        """Return the share of the server's capacity that these appends use."""
        return self.cheaper_above(million) * MILLION / (self.a_second * 30 * 24 * 3_600)


HOURS: Final = 730
SERVERS: Final = (
    # An instance with 20 GB and an address; nothing takes over from it.
    Server(name="one t4g.small", month=HOURS * (0.0168 + 0.005) + 20 * 0.08, a_second=500),
    # A database in two zones with 20 GB, two instances, a balancer.
    Server(
        name="two zones",
        month=HOURS * (0.129 + 2 * 0.0168 + 0.0225 + 0.008) + 20 * 0.23,
        a_second=1_000,
    ),
)


def main() -> None:
    """Print the bill at both paces, and the number of appends above which a server is cheaper."""
    Report(
        title=f"List prices: {REGION}",
        columns=["", "dollars a million", "of"],
        rows=[(name, f"{price * MILLION:.6g}", about) for name, (price, about) in PRICES.items()],
    ).print()
    sums = {pace: _print("by setup", SETUPS, pace) for pace in (STEADY, TRICKLE)}
    _print("as deployed, by use", USES, STEADY)
    _print("as deployed, by use", (*USES, WIDE), TRICKLE)
    Report(
        title="A server with PostgreSQL is cheaper above",
        columns=[
            "server",
            "dollars a month",
            "than",
            "million appends a month",
            "a second",
            "of what it takes",
        ],
        rows=[
            (
                server.name,
                f"{server.month:.0f}",
                setup.name,
                f"{server.cheaper_above(million):.0f}",
                f"{server.used(million) * server.a_second:.1f}",
                f"{server.used(million):.1%}",
            )
            for server in SERVERS
            for setup in (DEPLOYED, LEAST)
            for million in [sums[STEADY][setup.name]]
        ],
    ).print()


def _print(what: str, setups: Sequence[Setup], pace: Pace) -> dict[str, float]:
    """Print a table with a column for each setup, with sums."""
    bills = [bill(setup, pace) for setup in setups]
    sums = {setup.name: sum(bill_.values()) for setup, bill_ in zip(setups, bills, strict=True)}
    rows = [(name, *(f"{bill_[name]:.2f}" for bill_ in bills)) for name in bills[0]]
    Report(
        title=f"Dollars for a million appends, {what}, {pace.name}: {pace.a_second:.2g} a second",
        columns=["", *sums],
        rows=[*rows, ("in all", *(f"{total:.2f}" for total in sums.values()))],
    ).print()
    return sums


if __name__ == "__main__":
    main()
