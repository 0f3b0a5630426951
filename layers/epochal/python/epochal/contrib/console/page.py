"""What pages are made of: the services that they ask, how values look, and plots as values."""

from __future__ import annotations

import binascii
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from threading import Lock
from typing import Any, Final, TypeVar, cast

from epochal.care.status import PartitionStanding
from epochal.codec import json
from epochal.errors import InvalidInput, Refused
from epochal.feed.results import PartitionTail
from epochal.hosting.indexer_state import IndexerState
from epochal.hosting.services import Measure
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.bodies import Claim
from epochal.plan.values import Key
from epochal.reactions.definition import Reaction

LOOKS: Final = 150
"""Lags that are kept of a group: five minutes of refreshes every two seconds."""


@dataclass(frozen=True, slots=True)
class Lags:
    """Lags of groups that the console has seen, the latest `LOOKS` of each group."""

    _looks: dict[str, deque[tuple[float, int]]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def groups(self) -> list[str]:
        """Return the names of the groups with recorded lags."""
        with self._lock:
            return list(self._looks)

    def add(self, group: str, seconds: float, behind: int) -> list[tuple[float, int]]:
        """Record a group's lag at a time in seconds since 1970; return all recorded lags of the group."""
        with self._lock:
            looks = self._looks.setdefault(group, deque(maxlen=LOOKS))
            looks.append((seconds, behind))
            return list(looks)


# Services that the console uses beside the store: functions, CloudWatch, reactions of this machine, the time.

T = TypeVar("T")

KEPT: Final = 60 * 10**9
"""Nanoseconds for which answers of other services are cached: a live page asks every two seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Services that the console uses beside the store; each is optional.

    A page says which service it lacks.

    Attributes:
        prefix: prefix of the names of the deployment's functions.
        reactions: reactions by name that replay on this machine, with their own handlers.
        deployed: function that returns the names of the deployed reactions.
        invoke: function that invokes a Lambda function by its name with a payload.
        wake: function that wakes a deployed reaction in partitions; returns whether there is one.
        measure: function that asks CloudWatch for metrics.
        sizes: function that returns the bytes of tables by their names, from DynamoDB.
        indexer: function that returns the state of the indexer by layout.
        lags: lags of groups that the console has shown.
        now: clock in nanoseconds since 1970.
    """

    prefix: str = ""
    reactions: Mapping[str, Reaction] = field(default_factory=dict)
    deployed: Callable[[], list[str]] | None = None
    invoke: Callable[[str, dict[str, Any]], dict[str, Any]] | None = None
    wake: Callable[[str, Sequence[PartitionTail]], bool] | None = None
    measure: Measure | None = None
    sizes: Callable[[], Mapping[str, int]] | None = None
    indexer: Callable[[], Mapping[str, IndexerState]] | None = None
    lags: Lags = field(default_factory=Lags)
    now: Callable[[], int] = time.time_ns
    _kept: dict[str, tuple[int, Any]] = field(default_factory=dict)

    def groups(self) -> list[str]:
        """Return the names of groups known without reading a table, sorted.

        They are deployed reactions, the reactions of this machine, and groups shown before.
        """
        deployed = self.once_a_minute("deployed", self.deployed, list[str]())
        return sorted({*self.reactions, *deployed, *self.lags.groups()})

    def bytes_of_tables(self) -> Mapping[str, int]:
        """Return the bytes of each table by its name; empty where they are unknown."""
        return self.once_a_minute("sizes", self.sizes, {})

    def indexer_states(self, standing: Iterable[PartitionStanding]) -> tuple[dict[str, IndexerState], str]:
        """Return the indexer's state by layout, and the time of the check as hours and minutes.

        A failure that `standing` has on record takes precedence, since it is newer.
        """
        looked: Mapping[str, IndexerState] = {}
        states = dict(self.once_a_minute("indexer", self.indexer, looked))
        for partition in standing:
            if partition.indexer:
                states[partition.source] = IndexerState(failure=partition.indexer)
            states.setdefault(partition.source, IndexerState(unknown="this console cannot check it"))
        return states, clock(self._kept["indexer"][0] / 1e9) if self.indexer is not None else ""

    def once_a_minute(self, name: str, ask: Callable[[], T] | None, otherwise: T) -> T:
        """Return a service's answer, cached for a minute; `otherwise` without a service or permission.

        Whoever may read a table need not be allowed to describe it.
        """
        if ask is None:
            return otherwise
        asked_at, answer = self._kept.get(name, (-KEPT, otherwise))
        if self.now() - asked_at >= KEPT:
            with suppress(Refused):
                answer = ask()
            self._kept[name] = (self.now(), answer)
        return cast("T", answer)


# How values look on a page.

LONGEST: Final = 4_000
"""Characters of a body that a page shows."""


DEEPEST: Final = 50
"""Levels of nested lists and objects that are written on lines of their own."""

DIGITS: Final = 20
"""Digits of a number in an address, at most."""


def body(data: bytes | str | Claim) -> str:
    """Return a body for people: its place in the bucket, indented JSON or text, cut at `LONGEST`."""
    if isinstance(data, Claim):
        return f"in the bucket: {data.key}, {data.size:,} bytes"
    text = data if isinstance(data, str) else data.decode("utf-8", "backslashreplace")
    with suppress(ValueError):  # not JSON: shown as it is
        text = _written(json.loads(text), "")
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"


def instant(timestamp: str) -> str:
    """Format an event's timestamp as date and time down to milliseconds."""
    date, _, rest = timestamp.partition("T")
    return f"{date} {rest[:12].rstrip('Z')}" if rest else timestamp


def moment(seconds: float) -> str:
    """Format seconds since 1970 as date and time, UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))


def ago(seconds: float | None) -> str:
    """Format a duration in the largest unit of which it has at least two; empty for None."""
    if seconds is None:
        return ""
    for unit, name in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:,.0f} {name}"
    return f"{seconds:,.0f} s"


def size(count: int) -> str:
    """Format a number of bytes in KB, MB or GB."""
    for unit, name in ((2**30, "GB"), (2**20, "MB"), (2**10, "KB")):
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return f"{count:,} bytes"


def whole(arguments: Any, name: str, default: int, most: int) -> int:
    """Return an argument as a whole number, `default` if missing; raise if invalid or above `most`.

    Raises:
        InvalidInput: the argument is no whole number, or is larger.
    """
    text = str(arguments.get(name, default))
    if not text.isascii() or not text.isdigit() or len(text) > DIGITS or int(text) > most:
        raise InvalidInput(name, f"must be a whole number of at most {most:,}")
    return int(text)


def _written(value: Any, margin: str) -> str:
    """Write a JSON value on several indented lines; lists of plain values are on one line."""
    inner = f"{margin}  "
    if len(margin) > 2 * DEEPEST:
        return _text(value)
    if isinstance(value, dict) and value:
        members = (f"{inner}{_text(name)}: {_written(member, inner)}" for name, member in value.items())
        return "{\n" + ",\n".join(members) + f"\n{margin}}}"
    if isinstance(value, list) and any(isinstance(member, dict | list) for member in value):
        return "[\n" + ",\n".join(inner + _written(member, inner) for member in value) + f"\n{margin}]"
    return _text(value)


def _text(value: str | Decimal | Any) -> str:
    return json.dumps_again(value).decode()


# Plots as values, which a template writes as SVG: no browser draws anything.

WIDTH: Final = 720
HEIGHT: Final = 120
"""Size of the area that bars are drawn in; labels are around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar of a plot: its left edge, upper edge, label and value."""

    x: float
    y: float
    label: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A plot of values over time: its title, bars, scale and line.

    Attributes:
        top: value at the upper edge.
        thick: width of a bar.
        line: the same values as points of a polyline, `x,y x,y`.
    """

    title: str
    bars: tuple[Bar, ...]
    top: float
    thick: float
    line: str

    @property
    def total(self) -> float:
        """Sum of all values."""
        return sum(bar.value for bar in self.bars)


def plot(title: str, values: Sequence[tuple[str, float]]) -> Plot:
    """Make a plot of values in order, each with its label."""
    top = max((value for _, value in values), default=0) or 1
    step = WIDTH / max(len(values), 1)
    bars = tuple(
        Bar(x=round(step * number, 1), y=round(HEIGHT - HEIGHT * value / top, 1), label=label, value=value)
        for number, (label, value) in enumerate(values)
    )
    line = " ".join(f"{bar.x + step / 2:.1f},{bar.y}" for bar in bars)
    return Plot(title=title, bars=bars, top=top, thick=round(max(step - 1, 1), 1), line=line)


def over_time(title: str, sums: Mapping[float, float], period: int, most: int) -> Plot:
    """Plot sums by the start of their period, in seconds since 1970, for the last `most` periods.

    Periods without a sum between others count as 0.
    """
    if not sums:
        return plot(title, [])
    last = int(max(sums)) // period * period
    first = max(int(min(sums)) // period * period, last - (most - 1) * period)
    by_period = {int(second) // period * period: value for second, value in sums.items()}
    return plot(
        title, [(clock(second), by_period.get(second, 0)) for second in range(first, last + period, period)]
    )


def clock(seconds: float) -> str:
    """Format seconds since 1970 as hours and minutes, UTC."""
    return time.strftime("%H:%M", time.gmtime(seconds))


# Keys of items, in addresses of pages.

LOOKED_AT: Final = 200
"""Items of a table that are read to find names or documents, which no index lists."""

RULE: Final = "must be the position that an earlier search reached"


def written_key(key: Key) -> str:
    """Encode the key of an item for an address."""
    return urlsafe_b64encode(json.dumps(key)).decode()


def read_key(text: str) -> Key:
    """Return an item's key, decoded from an argument of a URL; raise `InvalidInput` if it is none.

    Whether the table has such keys is left to DynamoDB.

    Raises:
        InvalidInput: the text is no key.
    """
    try:
        key = json.loads(urlsafe_b64decode(text))
    except (ValueError, binascii.Error) as error:
        raise InvalidInput("after", RULE) from error
    if not isinstance(key, dict) or not all(map(_is_value, key.values())):
        raise InvalidInput("after", RULE)
    return key


def _is_value(value: Any) -> bool:
    """Whether a value is an attribute value of DynamoDB with one text."""
    return isinstance(value, dict) and [type(member) for member in value.values()] == [str]
