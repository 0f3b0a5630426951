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
from epochal.feed.history import PartitionTail
from epochal.hosting.indexer_state import IndexerState
from epochal.hosting.services import Measure
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.events import Claim
from epochal.plan.values import Key
from epochal.reactions.reaction import Reaction

LOOKS: Final = 150
"""That are kept of a group: five minutes of looks every two seconds."""


@dataclass(frozen=True, slots=True)
class Lags:
    """Looks at groups, the latest of each."""

    _looks: dict[str, deque[tuple[float, int]]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def groups(self) -> list[str]:
        """Groups that were looked at."""
        with self._lock:
            return list(self._looks)

    def add(self, group: str, seconds: float, behind: int) -> list[tuple[float, int]]:
        """Add a look, at a time since 1970; all that are kept of the group."""
        with self._lock:
            looks = self._looks.setdefault(group, deque(maxlen=LOOKS))
            looks.append((seconds, behind))
            return list(looks)


# What the console reaches beside the store: functions, CloudWatch, reactions of this machine, the time.

T = TypeVar("T")

KEPT: Final = 60 * 10**9
"""Nanoseconds for which what other services told is kept: a page that is live asks every two seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Each is optional: a page says what it lacks.

    Attributes:
        prefix: of the names of the deployment's functions.
        reactions: by name, those that replay here, with their own handlers.
        deployed: names of the reactions that are deployed.
        invoke: invokes a function by its name with a payload.
        wake: wakes a deployed reaction in partitions; whether there is one.
        measure: asks CloudWatch.
        sizes: bytes of tables, by their names, as DynamoDB tells them.
        indexer: looks whether the indexer works, by layout.
        lags: what the console has seen of the groups that it showed.
        now: nanoseconds since 1970.
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
        """The groups that are known without reading a table: deployed reactions, those given, those shown before."""
        deployed = self._told("deployed", self.deployed, list[str]())
        return sorted({*self.reactions, *deployed, *self.lags.groups()})

    def bytes_of_tables(self) -> Mapping[str, int]:
        """Bytes of tables, by their names; nothing where they cannot be told."""
        return self._told("sizes", self.sizes, {})

    def indexer_states(self, standing: Iterable[PartitionStanding]) -> tuple[dict[str, IndexerState], str]:
        """Whether the indexer works, by layout, and when that was looked at. A failure that `standing` has on record
        comes first, since it is newer.
        """
        looked: Mapping[str, IndexerState] = {}
        states = dict(self._told("indexer", self.indexer, looked))
        for each in standing:
            if each.indexer:
                states[each.source] = IndexerState(failure=each.indexer)
            states.setdefault(each.source, IndexerState(unknown="this console was not told how to find out"))
        return states, clock(self._kept["indexer"][0] / 1e9) if self.indexer is not None else ""

    def _told(self, name: str, ask: Callable[[], T] | None, otherwise: T) -> T:
        """What a service says, or said a moment ago. Who may read a table need not be allowed to describe it."""
        if ask is None:
            return otherwise
        at, told = self._kept.get(name, (-KEPT, otherwise))
        if self.now() - at >= KEPT:
            with suppress(Refused):
                told = ask()
            self._kept[name] = (self.now(), told)
        return cast("T", told)


# How values look on a page.

LONGEST: Final = 4_000
"""Characters of a body that a page shows."""


DEEPEST: Final = 50
"""Lists and objects in one another that are on lines of their own."""

DIGITS: Final = 20
"""Of a number in an address."""


def body(data: bytes | str | Claim) -> str:
    """A body as people read it: JSON on several lines, text as it is, the beginning of what is long."""
    if isinstance(data, Claim):
        return f"in the bucket: {data.key}, {data.size:,} bytes"
    text = data if isinstance(data, str) else data.decode("utf-8", "backslashreplace")
    with suppress(ValueError):  # not JSON: shown as it is
        text = _written(json.loads(text), "")
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"


def instant(timestamp: str) -> str:
    """A time without the digits that nobody compares."""
    date, _, rest = timestamp.partition("T")
    return f"{date} {rest[:12].rstrip('Z')}" if rest else timestamp


def moment(seconds: float) -> str:
    """Seconds since 1970 as a time, UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))


def ago(seconds: float | None) -> str:
    """How long something took or has waited, in the largest unit that it has two of."""
    if seconds is None:
        return ""
    for unit, name in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:,.0f} {name}"
    return f"{seconds:,.0f} s"


def size(count: int) -> str:
    """Bytes as people read them."""
    for unit, name in ((2**30, "GB"), (2**20, "MB"), (2**10, "KB")):
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return f"{count:,} bytes"


def whole(arguments: Any, name: str, default: int, most: int) -> int:
    """A number of the address; raises `InvalidInput` for what is none, or beyond `most`."""
    text = str(arguments.get(name, default))
    if not text.isascii() or not text.isdigit() or len(text) > DIGITS or int(text) > most:
        raise InvalidInput(name, f"must be a whole number of at most {most:,}")
    return int(text)


def _written(value: Any, margin: str) -> str:
    inner = f"{margin}  "
    if len(margin) > 2 * DEEPEST:
        return _text(value)
    if isinstance(value, dict) and value:
        members = (f"{inner}{_text(name)}: {_written(each, inner)}" for name, each in value.items())
        return "{\n" + ",\n".join(members) + f"\n{margin}}}"
    if isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        return "[\n" + ",\n".join(inner + _written(each, inner) for each in value) + f"\n{margin}]"
    return _text(value)


def _text(value: str | Decimal | Any) -> str:
    return json.dumps_again(value).decode()


# Plots as values, which a template writes as SVG: no browser draws anything.

WIDTH: Final = 720
HEIGHT: Final = 120
"""Of the area that is drawn in; labels are around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar: its left edge, its upper edge, and what it says."""

    x: float
    y: float
    label: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Values over time.

    Attributes:
        top: the value at the upper edge.
        thick: width of a bar.
        line: the same as points of a polyline, `x,y x,y`.
    """

    title: str
    bars: tuple[Bar, ...]
    top: float
    thick: float
    line: str

    @property
    def total(self) -> float:
        """The sum of all."""
        return sum(bar.value for bar in self.bars)


def plot(title: str, values: Sequence[tuple[str, float]]) -> Plot:
    """Values in order, each with its label."""
    top = max((value for _, value in values), default=0) or 1
    step = WIDTH / max(len(values), 1)
    bars = tuple(
        Bar(x=round(step * number, 1), y=round(HEIGHT - HEIGHT * value / top, 1), label=label, value=value)
        for number, (label, value) in enumerate(values)
    )
    line = " ".join(f"{bar.x + step / 2:.1f},{bar.y}" for bar in bars)
    return Plot(title=title, bars=bars, top=top, thick=round(max(step - 1, 1), 1), line=line)


def over_time(title: str, sums: Mapping[float, float], period: int, most: int) -> Plot:
    """Sums by the beginnings of periods, in seconds since 1970: the last `most` periods, with those of none between."""
    if not sums:
        return plot(title, [])
    last = int(max(sums)) // period * period
    first = max(int(min(sums)) // period * period, last - (most - 1) * period)
    by_period = {int(at) // period * period: value for at, value in sums.items()}
    return plot(title, [(clock(at), by_period.get(at, 0)) for at in range(first, last + period, period)])


def clock(seconds: float) -> str:
    """Hours and minutes, UTC."""
    return time.strftime("%H:%M", time.gmtime(seconds))


# Places in tables, in addresses of pages.

LOOKED_AT: Final = 200
"""Items of a table that are read to find names, or documents: nothing lists them."""

RULE: Final = "must be a place that a search came to"


def written_key(key: Key) -> str:
    """A key for an address."""
    return urlsafe_b64encode(json.dumps(key)).decode()


def read_key(text: str) -> Key:
    """A key from an address. Whether the table has such keys, DynamoDB tells."""
    try:
        key = json.loads(urlsafe_b64decode(text))
    except (ValueError, binascii.Error) as error:
        raise InvalidInput("after", RULE) from error
    if not isinstance(key, dict) or not all(map(_is_value, key.values())):
        raise InvalidInput("after", RULE)
    return key


def _is_value(value: Any) -> bool:
    return isinstance(value, dict) and [type(each) for each in value.values()] == [str]
