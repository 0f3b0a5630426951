"""What functions of the embedded AWS have logged: prints, lines of loggers, and the trace of what a handler raises.

Each invocation has a log stream of its own, which is there when the invocation has ended. So whoever follows asks again
for what has come since, and passes over what he has had; what is remembered for that is of the last seconds alone.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from epochal.codec import json
from epochal.errors import InvalidInput
from epochal.local.endpoint import Endpoint

POLL_SECONDS: Final = 0.5
"""Between looks of whoever follows."""

LATE_MS: Final = 30_000
"""An invocation's lines have the time at which it ended, and may be seen this much later."""

_PLATFORM: Final = re.compile(r"(START|END|REPORT) RequestId: ")
_METRICS: Final = "_aws"
_DULL: Final = frozenset({"level", "message", "timestamp", "service", "location", "sampling_rate", "trace"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """What a function said: `at` is in milliseconds since 1970."""

    at: int
    function: str
    text: str

    def lines(self) -> list[str]:
        """As people read it. JSON of a logger is its level, its message and its fields, with a trace below; what Lambda
        itself and metrics say is nothing.
        """
        if _PLATFORM.match(self.text):
            return []
        try:
            told = json.loads(self.text)
        except ValueError:
            return self.text.splitlines()
        if not isinstance(told, dict) or not {"level", "message"} <= told.keys():
            return [] if isinstance(told, dict) and _METRICS in told else [self.text]
        fields = "".join(f"  {name}={value}" for name, value in told.items() if name not in _DULL)
        return [f"{told['level']} {told['message']}{fields}", *str(told.get("trace", "")).splitlines()]


@dataclass(slots=True, kw_only=True)
class Logs:
    """The logs of functions, read from the oldest line on, and again for what has come.

    Attributes:
        groups: names of log groups, by those of functions, in each place.
    """

    groups: Sequence[tuple[Any, str, str]]
    _since: int = 0
    _had: Counter[tuple[str, str, int]] = field(default_factory=Counter)

    def more(self) -> list[LogLine]:
        """What has come since the last time, in its order."""
        found = list(heapq.merge(*map(self._of, self.groups), key=lambda line: line.at))
        if found:
            self._since = max(self._since, found[-1].at - LATE_MS)
            self._had = Counter(
                {moment: had for moment, had in self._had.items() if moment[2] >= self._since}
            )
        return found

    def _of(self, group: tuple[Any, str, str]) -> Iterator[LogLine]:
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
    """The logs of the functions that are deployed, or of those whose names have `name` in them.

    Raises:
        InvalidInput: there is no such function; says which there are.
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
            "NAME", f"must be in the name of a function: {', '.join(sorted(names)) or 'none is deployed'}"
        )
    return Logs(groups=groups)
