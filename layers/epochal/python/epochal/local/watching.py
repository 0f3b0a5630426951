"""What goes on while a developer works: which files change, and what functions log."""

from __future__ import annotations

import heapq
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from epochal.codec import json
from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, field
from epochal.local.endpoint import Endpoint
from epochal.local.errors import TooManyFiles

# Which files of a project change, by their times and sizes: what editors, `git` and generators do all the same.
#
# Nothing is looked into that is no source: hidden folders, virtual environments, what npm, CDK and Python make.

POLL_SECONDS: Final = 0.5
"""Between looks, each of some microseconds a file; changes are told once a look finds no more of them."""

MOST_FILES: Final = 20_000
"""Of a project; more would keep a processor busy with looking."""

_MADE: Final = frozenset({"node_modules", "__pycache__", "cdk.out"})
_ENVIRONMENT: Final = "pyvenv.cfg"

Seen = Mapping[str, tuple[int, int]]


def changes(root: Path, *, sleep: Callable[[float], object] = time.sleep) -> Iterator[tuple[str, ...]]:
    """Files that have changed, come or gone since this call or the last time, for ever; names within `root`.

    What changes while the caller does something about it comes next.

    Raises:
        TooManyFiles: that is no project.
    """
    return _changes(root, _seen(root), sleep)


def _changes(root: Path, before: Seen, sleep: Callable[[float], object]) -> Iterator[tuple[str, ...]]:
    while True:
        sleep(POLL_SECONDS)
        now = _seen(root)
        if now == before:
            continue
        sleep(POLL_SECONDS)
        while (again := _seen(root)) != now:
            now = again
            sleep(POLL_SECONDS)
        changed = tuple(sorted(name for name in {*before, *now} if before.get(name) != now.get(name)))
        before = now
        if changed:  # not what was put back
            yield changed


def _seen(root: Path) -> Seen:
    found: dict[str, tuple[int, int]] = {}
    for path, at, size in _files(root):
        found[os.path.relpath(path, root)] = (at, size)
        if len(found) > MOST_FILES:
            raise TooManyFiles(str(root), MOST_FILES)
    return found


def _files(folder: str | Path) -> Iterator[tuple[str, int, int]]:
    try:
        with os.scandir(folder) as listed:
            entries = [each for each in listed if not each.name.startswith(".") and each.name not in _MADE]
    except (FileNotFoundError, NotADirectoryError):
        return  # gone since it was listed
    if any(each.name == _ENVIRONMENT for each in entries):
        return
    for each in entries:
        try:
            if each.is_dir(follow_symlinks=False):
                yield from _files(each.path)
            else:
                stat = each.stat()
                yield each.path, stat.st_mtime_ns, stat.st_size
        except FileNotFoundError:
            continue


# What functions of the embedded AWS have logged: prints, lines of loggers, and the trace of what a handler raises.
#
# Each invocation has a log stream of its own, which is there when the invocation has ended. So whoever follows asks
# again for what has come since, and passes over what he has had; what is remembered for that is of the last seconds
# alone.

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
