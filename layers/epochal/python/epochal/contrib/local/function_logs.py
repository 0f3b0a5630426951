"""Logs of functions on the embedded AWS: prints, lines of loggers, and the traces of errors that handlers raise.

Each invocation has a log stream of its own, which exists when the invocation has ended. So a follower polls for lines
since a time and skips the lines that it has had; only those of the last seconds are remembered for that.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from epochal.codec import json
from epochal.contrib.local.endpoint import Endpoint
from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, field

LATE_MS: Final = 30_000
"""Milliseconds by which lines may appear late: an invocation's lines have the time at which it ended."""

_PLATFORM: Final = re.compile(r"(START|END|REPORT) RequestId: ")
_METRICS: Final = "_aws"
_DULL: Final = frozenset({"level", "message", "timestamp", "service", "location", "sampling_rate", "trace"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A line in the log of a function; `at` is its time in milliseconds since 1970."""

    at: int
    function: str
    text: str

    def lines(self) -> list[str]:
        """Return the line as text lines for people; none for Lambda's own lines and for metrics.

        JSON of a logger becomes level, message and fields, with a trace below. Lines of Lambda itself and of metrics
        become nothing.
        """
        if _PLATFORM.match(self.text):
            return []
        try:
            record = json.loads(self.text)
        except ValueError:
            return self.text.splitlines()
        if not isinstance(record, dict) or not {"level", "message"} <= record.keys():
            return [] if isinstance(record, dict) and _METRICS in record else [self.text]
        fields = "".join(f"  {name}={value}" for name, value in record.items() if name not in _DULL)
        return [f"{record['level']} {record['message']}{fields}", *str(record.get("trace", "")).splitlines()]


@dataclass(slots=True, kw_only=True)
class Logs:
    """Reader of the logs of functions, which returns the lines that are new since the last call.

    Attributes:
        groups: client of CloudWatch Logs, name of the function, and name of its log group, for each function.
    """

    groups: Sequence[tuple[Any, str, str]]
    _since: int = 0
    _had: Counter[tuple[str, str, int]] = field(default_factory=Counter)

    def more(self) -> list[LogLine]:
        """Return the lines that are new since the last call, by time; all lines at the first call."""
        lines = list(heapq.merge(*map(self._of, self.groups), key=lambda line: line.at))
        if lines:
            self._since = max(self._since, lines[-1].at - LATE_MS)
            self._had = Counter(
                {moment: had for moment, had in self._had.items() if moment[2] >= self._since}
            )
        return lines

    def _of(self, group: tuple[Any, str, str]) -> Iterator[LogLine]:
        """Yield the new lines of a log group, and note that they have been read."""
        client, function, name = group
        passed = Counter[tuple[str, str, int]]()
        try:
            pages = client.get_paginator("filter_log_events").paginate(
                logGroupName=name, startTime=self._since
            )
            events = [event for page in pages for event in page["events"]]
        except client.exceptions.ResourceNotFoundException:
            return  # it has not been invoked
        for event in events:
            moment = (name, event["logStreamName"], event["timestamp"])
            passed[moment] += 1
            if passed[moment] > self._had[moment]:
                self._had[moment] += 1
                yield LogLine(at=event["timestamp"], function=function, text=event["message"])


def logs_of(endpoints: Sequence[Endpoint], name: str = "") -> Logs:
    """Make a reader of the logs of functions with `name` in their names; raise if there are none.

    Raises:
        InvalidInput: there is no such function; lists the functions.
    """
    groups, names = [], []
    for endpoint in endpoints:
        lambdas, logs = endpoint.clients("lambda", "logs")
        for page in lambdas.get_paginator("list_functions").paginate():
            for function in page["Functions"]:
                names.append(function["FunctionName"])
                if name in names[-1]:
                    group = function.get("LoggingConfig", {}).get("LogGroup") or f"/aws/lambda/{names[-1]}"
                    groups.append((logs, names[-1], group))
    if not groups:
        raise InvalidInput(
            "NAME",
            f"must be part of a function's name; deployed functions: {', '.join(sorted(names)) or 'none'}",
        )
    return Logs(groups=groups)
