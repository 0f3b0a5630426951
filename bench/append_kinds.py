"""What kinds of appends cost: units and requests of an append, exactly, by tags, keys and what is written with it.

Units are what memory charges by AWS's rules, transactions twice. An append is one event of 300 bytes of JSON, on the
token of the one before, unless its kind says otherwise. The clock is simulated: `RATE` appends a second.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from bench.bill import MILLION, PRICES
from bench.corpus import body
from bench.report import Report
from bench.services import ALARM, ALARMS, DASHBOARD
from epochal.model.events import Event
from epochal.model.expected_version import ANY, NO_STREAM, ExpectedVersion
from epochal.model.outcomes import Appended
from epochal.model.stream_append import StreamAppend
from epochal.model.tags import Query, QueryItem
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams

APPENDS: Final = 200
COUNTED: Final = 100
"""Of the appends, the last ones."""

STREAM: Final = "Account-1"
TYPE: Final = "Happened"
RATE: Final = 10
WRITE: Final = PRICES["write unit"][0] * MILLION
"""Dollars of a million write units."""

_BEGIN: Final = 1_767_225_600 * 10**9


@dataclass(slots=True)
class Appends:
    """A store in memory, its clock, and the number of appends made so far.

    Attributes:
        rate: appends per second.
    """

    streams: Streams
    rate: float = RATE
    number: int = 0
    expected: ExpectedVersion = NO_STREAM

    @property
    def now(self) -> int:
        """Nanoseconds since 1970."""
        return _BEGIN + int(self.number * 1e9 / self.rate)

    def event(self, *tags: str) -> Event:
        """Return the event of the current append."""
        return Event(type=TYPE, data=body(random.Random(self.number), 300, "json"), tags=tags)

    def key(self, age: float) -> str:
        """Return a UUIDv7 that was generated `seconds` ago."""
        dice, milliseconds = random.Random(self.number), (self.now - int(age * 1e9)) // 10**6
        number = milliseconds << 80 | 7 << 76 | 2 << 62 | dice.getrandbits(62)
        return str(uuid.UUID(int=number | dice.getrandbits(12) << 64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of append.

    Attributes:
        append: function that makes one append.
        rate: appends per second.
    """

    name: str
    append: Callable[[Appends], Appended]
    rate: float = RATE


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Units and requests of one append."""

    write: float
    read: float
    requests: float


def _on_token(appends: Appends, *tags: str) -> Appended:
    return appends.streams.append(STREAM, [appends.event(*tags)], expected=appends.expected)


def _tagged(tags: int) -> Callable[[Appends], Appended]:
    names = [f"group{number}:1" for number in range(tags)]
    return lambda appends: _on_token(appends, *names)


def _keyed(age: float) -> Callable[[Appends], Appended]:
    return lambda appends: appends.streams.append(
        STREAM, [appends.event()], expected=appends.expected, idempotency_key=appends.key(age)
    )


def _at_any_version(appends: Appends) -> Appended:
    return appends.streams.append(STREAM, [appends.event()], expected=ANY)


def _with_a_plain_key(appends: Appends) -> Appended:
    key = f"order-{appends.number}"
    return appends.streams.append(STREAM, [appends.event()], expected=appends.expected, idempotency_key=key)


def _to_two_streams(appends: Appends) -> Appended:
    return appends.streams.append_all(
        [StreamAppend(stream=f"Account-{number}", events=[appends.event()]) for number in (1, 2)]
    )


KINDS: Final = (
    Kind(name="with a token", append=_on_token),
    Kind(name="without an expected version", append=_at_any_version),
    Kind(name="with a key that is not a UUIDv7", append=_with_a_plain_key),
    Kind(name="the event has 1 tag", append=_tagged(1)),
    Kind(name="the event has 2 tags", append=_tagged(2)),
    Kind(name="the event has 3 tags", append=_tagged(3)),
    Kind(name="to two streams at once, without expected versions", append=_to_two_streams),
)

KEYS: Final = tuple(
    Kind(name=f"{rate:,}", append=_keyed(age), rate=rate)
    for rate, age in ((1, 0.05), (1, 2.0), (10, 0.5), (100, 0.05), (1_000, 0.05))
)
"""UUIDv7 keys on a busy stream: by the rate of its appends and the age of the key."""

AGES: Final = (0.05, 2.0, 0.5, 0.05, 0.05)


def cost(kind: Kind) -> Cost:
    """Measure a kind of append on a stream of its own."""
    appends = Appends(streams=memory_streams(), rate=kind.rate)
    appends.streams = replace(appends.streams, now=lambda: appends.now)
    write = read = requests = 0.0
    for number in range(APPENDS):
        appends.number = number
        done = kind.append(appends)
        if STREAM not in done.streams:
            appends.expected = done.token
        if number >= APPENDS - COUNTED:
            capacity = done.capacity
            write, read = write + capacity.write, read + capacity.read
            requests += capacity.requests
    return Cost(write=write / COUNTED, read=read / COUNTED, requests=requests / COUNTED)


def declared_type(types: tuple[str, ...], tags: int = 1) -> float:
    """Write units of an event with tags and without a stream, by the types that queries may name without a tag."""
    names = tuple(f"group{number}:1" for number in range(tags))
    store = replace(memory_streams(), types=types).tagged
    query = Query(items=(QueryItem(tags=frozenset(names)),))
    appends, position, write = Appends(streams=memory_streams()), store.read(query).position, 0.0
    for number in range(APPENDS):
        appends.number = number
        done = store.append([appends.event(*names)], fail_if=query, after=position)
        position = done.position
        if number >= APPENDS - COUNTED:
            write += done.capacity.write
    return write / COUNTED


CELL: Final = 20_000
"""Appends a second of a cell: half of the write units a second that a table may have without a higher quota."""

SECONDS: Final = 30 * 24 * 3_600
"""Seconds of a month."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Several stores that share the streams of one application.

    Attributes:
        a_second: appends per second, over all cells.
    """

    a_second: int

    @property
    def count(self) -> int:
        """Number of cells."""
        return -(-self.a_second // CELL)

    @property
    def row(self) -> str:
        """Row of the table of cells on the page on cost: cells, dollars a month for appends, and for cells."""
        appends = self.a_second * SECONDS / MILLION * WRITE
        fixed = self.count * (ALARMS * ALARM + DASHBOARD)
        return f"| {self.a_second:,} | {self.count} | {appends:,.0f} | {fixed:,.2f} |"


CELLS: Final = (Cells(a_second=20_000), Cells(a_second=100_000), Cells(a_second=1_000_000))


def row(kind: Kind, *before: str) -> str:
    """Return the row of a kind in the table of the page on cost."""
    found = cost(kind)
    figures = (f"{found.write:.2f}", f"{found.read:.2f}", f"{found.requests:.2f}")
    return f"| {' | '.join((kind.name, *before, *figures))} |"


def key_rows() -> list[str]:
    """Return the rows of the table of keys."""
    return [row(kind, f"{age:g} s") for kind, age in zip(KEYS, AGES, strict=True)]


def main() -> None:
    """Print the tables of the page on cost."""
    Report(
        title="An append of one event of 300 bytes",
        columns=["append", "write units", "read units", "requests"],
        rows=[row(kind).strip("| ").split(" | ") for kind in KINDS],
    ).print()
    types = [("1", 1, ()), ("1", 1, (TYPE,)), ("2", 2, ()), ("2", 2, (TYPE,))]
    Report(
        title="A tagged event without a stream",
        columns=["tags", "types", "write units"],
        rows=[
            (name, ", ".join(declared), f"{declared_type(declared, tags):.2f}")
            for name, tags, declared in types
        ],
    ).print()
    Report(
        title="Cells",
        columns=["appends a second", "cells", "dollars a month for writes", "for alarms and dashboards"],
        rows=[cells.row.strip("| ").split(" | ") for cells in CELLS],
    ).print()
    Report(
        title="An append with a UUIDv7 key to a busy stream",
        columns=["appends a second", "age of the key", "write units", "read units", "requests"],
        rows=[line.strip("| ").split(" | ") for line in key_rows()],
    ).print()


if __name__ == "__main__":
    main()
