"""What functions count and time, as CloudWatch reads it from their logs.

Who runs events without Lambda needs none of it.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from epochal.lazy_dataclasses import dataclass, field

if TYPE_CHECKING:
    from http.client import HTTPConnection

# Metrics as lines of a log, in CloudWatch's embedded metric format; one line for many invocations.
#
# A log costs by its bytes, and of a line with one request's values nine tenths name the metrics. So an environment
# keeps what it counts, and writes a line when
#
#     its first value is a minute old, which the next value finds
#     it has as many times as a line may hold
#     something in it is urgent: an alarm looks at it
#     Lambda ends the environment (`ending`)
#
# An environment that is frozen keeps its values, and they count for the minute in which the line began, however late
# it is written. What is lost is what an environment holds that is killed without a warning, by its memory or its time
# limit: at most a minute's values of that one. Where no warning would come, nothing is kept: each value is a line.
#
#     times     every value, since CloudWatch makes percentiles of them
#     counts    their sum; nothing where it is zero
#     notes     sums that are in the line for queries of the log, and are no metrics: each of those costs by the month

NAMESPACE: Final = "Epochal"

KEPT_SECONDS: Final = 60
"""CloudWatch shows a metric by the minute."""

MOST_TIMES: Final = 100
"""Values of one metric that a line may have."""

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
        """The line in CloudWatch's embedded metric format; empty where it has no values."""
        units = dict.fromkeys(self.times, "Milliseconds") | dict.fromkeys(self.counts, "Count")
        if not units:
            return ""
        metrics = [{"Name": name, "Unit": unit} for name, unit in units.items()]
        directive = {"Namespace": NAMESPACE, "Dimensions": [list(dimensions)], "Metrics": metrics}
        about = {"Timestamp": int(self.began * 1000), "CloudWatchMetrics": [directive]}
        line: dict[str, Any] = {"_aws": about, **dimensions, **self.times, **self.counts, **self.notes}
        return json.dumps(line, separators=(",", ":"))


def _print(text: str) -> None:
    """Print it at once: a process that is ended writes no more."""
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
        self._service = service
        self._kept = kept
        self._now = now
        self._write = write
        self._lines: dict[str, _Line] = {}
        # Of the kind that one thread may take twice: Lambda's warning may come while the main thread adds a value.
        self._lock = threading.RLock()

    def keep(self) -> None:
        """From now on values may be kept."""
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
        """Write whatever is kept."""
        with self._lock:
            for operation in list(self._lines):
                self._write_line(operation)

    def _write_line(self, operation: str) -> None:
        dimensions = {"service": self._service} | ({"operation": operation} if operation else {})
        if text := self._lines.pop(operation).text(dimensions):
            self._write(text)


# The warning that Lambda gives a process before it ends its environment.
#
# Lambda sends SIGTERM, half a second before it kills, to environments that have an extension; to others nothing. So
# the process registers one in its own name, which asks for no events: it holds up no invocation. It has to wait for
# its next event, or the start of the function would never be over; none comes, so a thread waits for good.
#
# Python's runtime takes the signal from 3.12 on: an older one waits for invocations in its main thread, where no
# handler runs.

RUNTIME: Final = "AWS_LAMBDA_RUNTIME_API"
"""The variable that says where Lambda's interface for a runtime and its extensions is; unset outside of Lambda."""

_FROM: Final = "/2020-01-01/extension"
_NAME: Final = "epochal"
_ANSWER_SECONDS: Final = 1.0
"""It is on the same machine, and a start waits for it."""


def metrics_of(service: str, environment: Mapping[str, str] = os.environ) -> Metrics:
    """Make the metrics of a function, kept over its invocations where Lambda announces the process's end.

    Call it while the function's module is loaded: later Lambda takes no extension.
    """
    metrics = Metrics(service)
    if at_end(metrics.write_all, environment):
        metrics.keep()
    return metrics


def at_end(act: Callable[[], object], environment: Mapping[str, str]) -> bool:
    """Have `act` called when Lambda ends this process; False where it would not announce that."""
    place = environment.get(RUNTIME, "")
    if not place or threading.current_thread() is not threading.main_thread():
        return False
    from http.client import HTTPConnection, HTTPException  # noqa: PLC0415  Lambda's runtime has it, nobody else needs it

    try:
        identity = _register(HTTPConnection(place, timeout=_ANSWER_SECONDS))
    except (OSError, HTTPException):
        return False
    if not identity:
        return False

    def end(*_: object) -> None:
        act()
        # An ordinary exit would wait for the threads that wait for Lambda.
        os._exit(0)

    def wait() -> None:
        connection = HTTPConnection(place)
        with suppress(OSError, HTTPException):
            connection.request(
                "GET", f"{_FROM}/event/next", headers={"Lambda-Extension-Identifier": identity}
            )
            connection.getresponse()

    signal.signal(signal.SIGTERM, end)
    threading.Thread(target=wait, daemon=True).start()
    return True


def _register(connection: HTTPConnection) -> str:
    """Register this process as an extension, and return its identifier; empty where that is refused."""
    try:
        headers = {"Lambda-Extension-Name": _NAME, "Content-Type": "application/json"}
        connection.request("POST", f"{_FROM}/register", body='{"events": []}', headers=headers)
        response = connection.getresponse()
        response.read()
        return response.headers.get("Lambda-Extension-Identifier", "") if response.status == 200 else ""  # noqa: PLR2004
    finally:
        connection.close()
