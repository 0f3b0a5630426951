"""Metrics of functions as lines of their logs, in CloudWatch's embedded metric format; one line for many invocations.

Reactions that run without Lambda need none of it.

A log costs by its bytes, and of a line with one request's values nine tenths name the metrics. So an environment keeps
what it counts, and writes a line when

    its first value is a minute old, which the next value finds
    it has as many times as a line may hold
    something in it is urgent: an alarm looks at it
    Lambda ends the environment (`process_end`)

An environment that is frozen keeps its values, and they count for the minute in which the line began, however late it
is written. Values are lost only if an environment is killed without a warning, by its memory or its time limit: at most
a minute's values of that one. Where no warning would come, nothing is kept: each value is a line.

    times     every value, since CloudWatch makes percentiles of them
    counts    their sum; nothing where it is zero
    notes     sums that are in the line for queries of the log, and are no metrics: each of those costs by the month
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from epochal.hosting.process_end import at_end
from epochal.lazy_dataclasses import dataclass, field

NAMESPACE: Final = "Epochal"

KEPT_SECONDS: Final = 60
"""Seconds for which values are kept at most. CloudWatch shows a metric by the minute."""

MOST_TIMES: Final = 100
"""Most values of one metric in a line."""

_NONE: Final[Mapping[str, float]] = MappingProxyType({})


@dataclass(slots=True, kw_only=True)
class _Line:
    """The values of one operation since `began`, which become one line of the log."""

    began: float
    times: dict[str, list[float]] = field(default_factory=dict)
    counts: dict[str, float] = field(default_factory=dict)
    notes: dict[str, float] = field(default_factory=dict)

    def add(
        self, times: Mapping[str, float], counts: Mapping[str, float], notes: Mapping[str, float]
    ) -> None:
        """Add the times, counts and notes of one invocation."""
        for name, milliseconds in times.items():
            self.times.setdefault(name, []).append(round(milliseconds, 1))
        for sums, added in ((self.counts, counts), (self.notes, notes)):
            for name, value in added.items():
                if value:
                    sums[name] = sums.get(name, 0) + value

    def full(self) -> bool:
        return any(len(values) >= MOST_TIMES for values in self.times.values())

    def text(self, dimensions: Mapping[str, str]) -> str:
        """Return the line in CloudWatch's embedded metric format; empty without values."""
        units = dict.fromkeys(self.times, "Milliseconds") | dict.fromkeys(self.counts, "Count")
        if not units:
            return ""
        metrics = [{"Name": name, "Unit": unit} for name, unit in units.items()]
        directive = {"Namespace": NAMESPACE, "Dimensions": [list(dimensions)], "Metrics": metrics}
        about = {"Timestamp": int(self.began * 1000), "CloudWatchMetrics": [directive]}
        line: dict[str, Any] = {"_aws": about, **dimensions, **self.times, **self.counts, **self.notes}
        return json.dumps(line, separators=(",", ":"))


def _print(text: str) -> None:
    """Print a line and flush it, since a process that is ended writes no more."""
    print(text, flush=True)  # noqa: T201  a function's log is its output


class Metrics:
    """Collects what one function counts and times, and writes it to the log; threads may share it.

    Args:
        service: name of the function, a dimension of its metrics.
        kept: whether values are kept from one invocation to the next; `write_all` must be called before the end.
        now: the clock, in seconds since 1970.
        write: writes a line to the log.
    """

    def __init__(
        self,
        service: str,
        *,
        kept: bool = False,
        now: Callable[[], float] = time.time,
        write: Callable[[str], object] = _print,
    ) -> None:
        """Begin without any values."""
        self._service = service
        self._kept = kept
        self._now = now
        self._write = write
        self._lines: dict[str, _Line] = {}
        # Of the kind that one thread may take twice: Lambda's warning may come while the main thread adds a value.
        self._lock = threading.RLock()

    def keep(self) -> None:
        """Keep values from one invocation to the next from now on."""
        self._kept = True

    def add(
        self,
        *,
        operation: str = "",
        times: Mapping[str, float] = _NONE,
        counts: Mapping[str, float] = _NONE,
        notes: Mapping[str, float] = _NONE,
        urgent: bool = False,
    ) -> None:
        """Add values of one invocation, and write the lines that are due.

        Args:
            times: milliseconds.
            urgent: an alarm looks at them, so they are written at once.
        """
        now = self._now()
        with self._lock:
            for other, line in list(self._lines.items()):
                if now - line.began >= KEPT_SECONDS:
                    self._write_line(other)
            line = self._lines.setdefault(operation, _Line(began=now))
            line.add(times, counts, notes)
            if urgent or not self._kept or line.full():
                self._write_line(operation)

    def write_all(self) -> None:
        """Write all values that are kept."""
        with self._lock:
            for operation in list(self._lines):
                self._write_line(operation)

    def _write_line(self, operation: str) -> None:
        dimensions = {"service": self._service} | ({"operation": operation} if operation else {})
        if text := self._lines.pop(operation).text(dimensions):
            self._write(text)


def metrics_of(service: str, environment: Mapping[str, str] = os.environ) -> Metrics:
    """Make the metrics of a function, kept over its invocations where Lambda announces the process's end.

    Call it while the function's module is loaded: later Lambda takes no extension.
    """
    metrics = Metrics(service)
    if at_end(metrics.write_all, environment):
        metrics.keep()
    return metrics
