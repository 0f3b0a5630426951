"""What a million appends over HTTP cost: the whole bill, by component.

Requests, units and bytes are counted while the functions' own handlers append, index and notify over tables in memory
(`bench.functions`); prices are AWS's list. Time alone is assumed (`MILLISECONDS`). An append is one event of 300 bytes
of JSON, on the ETag of the one before; it comes through the feed.

Two paces, since the feed's functions are invoked once a second at most, and metrics are written once a minute:

    steady    a hundred appends a second
    trickle   a million a month
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from bench.functions import Functions
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
    "logged": (0.50 / 1e9, "a byte taken into CloudWatch Logs"),
    "sent": (0.09 / 1e9, "a byte to the internet"),
}

MILLISECONDS: Final = {"append": 10, "indexer": 20, "notifier": 20}
"""An invocation that is warm: two to three requests to AWS of 3 to 5 ms, and the handler's own work on half a CPU."""

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
    "requestId": "JKJaXmPLvHcESHA=",
    "requestTime": "12/Mar/2026:19:03:58 +0000",
    "routeKey": "POST /streams/{stream}/events",
    "status": "201",
    "error": "-",
    "responseLength": "105",
    "responseLatency": "17",
    "integrationLatency": "14",
    "caller": "arn:aws:sts::123456789012:assumed-role/flights/i-0123456789abcdef0",
    "subject": "-",
    "ip": "192.0.2.1",
}
"""A line of the gateway's access log."""


LINES_ONCE: Final = {"append": 570, "indexer": 415, "notifier": 208}
"""Bytes of a line of metrics as it was once written for each invocation, by Powertools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast appends come."""

    name: str
    a_second: float


STEADY: Final = Pace(name="steady", a_second=100)
TRICKLE: Final = Pace(name="trickle", a_second=MILLION / (30 * 24 * 3_600))


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How a stage is set up and used, as far as it costs.

    Attributes:
        layout: of streams, as the API calls it.
        joined: metrics are joined over invocations.
        own_lines: Lambda writes its three lines.
        window: seconds for which the indexer gathers appends.
        together: events of a request, of one stream.
    """

    name: str
    layout: str = "streams"
    gateway: bool = True
    access_log: bool = True
    joined: bool = True
    own_lines: bool = False
    window: int = 1
    together: int = 1

    def batch(self, pace: Pace) -> int:
        """Events that are indexed at once."""
        return max(self.together, round(pace.a_second * self.window))


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


def bill(setup: Setup, pace: Pace) -> dict[str, float]:
    """Dollars for a million appends, by component."""
    used = _functions(setup.layout, pace, setup.batch(pace), setup.together).used
    append, feed = used["append"], [used["indexer"], used["notifier"]]

    def dollars(what: str, quantity: float) -> float:
        return PRICES[what][0] * quantity * MILLION / APPENDS

    def running(name: str) -> float:
        invocations = used[name].invocations
        seconds = invocations * MILLISECONDS[name] / 1000
        return dollars("invocation", invocations) + dollars("gigabyte-second", seconds * GIGABYTES)

    def logged(name: str) -> float:
        invocations = used[name].invocations
        lines = used[name].logged if setup.joined else LINES_ONCE[name] * invocations
        return dollars("logged", lines + (OWN_LINES * invocations if setup.own_lines else 0))

    access = sum(len(name) + len(value) + 6 for name, value in ACCESS_LINE.items()) + 1
    return {
        "API Gateway": dollars("gateway", append.invocations if setup.gateway else 0),
        "Lambda: append": running("append"),
        "DynamoDB: writes": dollars("write unit", append.units.write),
        "DynamoDB: reads": dollars("read unit", append.units.read),
        "logs and metrics": logged("append"),
        "access log": dollars("logged", access * append.invocations if setup.access_log else 0),
        "answers": dollars("sent", append.answered),
        "feed: Lambda": running("indexer") + running("notifier"),
        "feed: DynamoDB": sum(
            dollars("write unit", each.units.write) + dollars("read unit", each.units.read) for each in feed
        ),
        "feed: notices": dollars("publish", used["notifier"].published),
        "feed: logs and metrics": logged("indexer") + logged("notifier"),
    }


@cache
def _functions(layout: str, pace: Pace, batch: int, together: int) -> Functions:
    functions = Functions(layout=layout)
    functions.append(APPENDS, pace=pace.a_second, together=together, take=functions.follower(), every=batch)
    functions.end()
    return functions


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What would do the same: PostgreSQL, and a program before it that speaks HTTP.

    Attributes:
        month: dollars, by list price.
        a_second: appends that it is assumed to take.
    """

    name: str
    month: float
    a_second: float

    def cheaper_above(self, million: float) -> float:
        """Millions of appends a month above which it is the cheaper one."""
        return self.month / million

    def used(self, million: float) -> float:
        """How much of it these are."""
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
    """Print the bill at both paces, step by step, and above which use a server is cheaper."""
    Report(
        title=f"List prices: {REGION}",
        columns=["", "dollars a million", "of"],
        rows=[(name, f"{price * MILLION:.6g}", about) for name, (price, about) in PRICES.items()],
    ).print()
    sums = dict[tuple[str, str], float]()
    for pace in (STEADY, TRICKLE):
        bills = [bill(setup, pace) for setup in SETUPS]
        rows = [(name, *(f"{each[name]:.2f}" for each in bills)) for name in bills[0]]
        rows.append(("in all", *(f"{sum(each.values()):.2f}" for each in bills)))
        Report(
            title=f"Dollars for a million appends, {pace.name}: {pace.a_second:.2g} a second",
            columns=["", *(setup.name for setup in SETUPS)],
            rows=rows,
        ).print()
        sums |= {
            (setup.name, pace.name): sum(each.values()) for setup, each in zip(SETUPS, bills, strict=True)
        }
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
            for million in [sums[setup.name, STEADY.name]]
        ],
    ).print()


if __name__ == "__main__":
    main()
