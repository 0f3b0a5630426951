"""Values of many invocations in one line, and when it is written."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from epochal.hosting.metrics import KEPT_SECONDS, MOST_TIMES, Metrics


class Log:
    """Metrics at a time that the test sets, and the lines they have written."""

    def __init__(self, *, kept: bool = True) -> None:
        self.now = 1_000.0
        self.texts: list[str] = []
        self.metrics = Metrics("append", kept=kept, now=lambda: self.now, write=self.texts.append)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(text) for text in self.texts]

    def told(self, name: str) -> float:
        """The sum of a count over all lines."""
        return sum(line.get(name, 0) for line in self.lines)


@pytest.fixture
def log() -> Log:
    return Log()


def test_a_line_has_every_time_and_the_sum_of_each_count(log: Log) -> None:
    for latency, events in ((3.14159, 1), (2.0, 3)):
        log.metrics.add(
            operation="appendEvents",
            times={"Latency": latency},
            counts={"Events": events, "Faults": 0},
            notes={"WriteUnits": 1.5},
        )
    log.metrics.write_all()
    assert log.lines == [
        {
            "_aws": {
                "Timestamp": 1_000_000,
                "CloudWatchMetrics": [
                    {
                        "Namespace": "Epochal",
                        "Dimensions": [["service", "operation"]],
                        "Metrics": [
                            {"Name": "Latency", "Unit": "Milliseconds"},
                            {"Name": "Events", "Unit": "Count"},
                        ],
                    }
                ],
            },
            "service": "append",
            "operation": "appendEvents",
            "Latency": [3.1, 2.0],
            "Events": 4,
            "WriteUnits": 3.0,
        }
    ]


def test_values_stay_for_a_minute_and_count_for_the_time_when_their_line_began(log: Log) -> None:
    log.metrics.add(counts={"Events": 1})
    log.now += KEPT_SECONDS - 1
    log.metrics.add(counts={"Events": 1})
    assert log.lines == []
    log.now += 3_600
    log.metrics.add(counts={"Events": 4})
    (line,) = log.lines
    assert (line["Events"], line["_aws"]["Timestamp"]) == (2, 1_000_000)
    log.metrics.write_all()
    assert (log.told("Events"), log.lines[1]["_aws"]["Timestamp"]) == (6, int(log.now * 1_000))


def test_an_old_line_is_written_by_a_value_of_another_operation(log: Log) -> None:
    log.metrics.add(operation="readStream", counts={"Events": 1})
    log.now += KEPT_SECONDS
    log.metrics.add(operation="appendEvents", counts={"Events": 1})
    assert [line["operation"] for line in log.lines] == ["readStream"]


def test_a_line_has_no_more_times_than_cloudwatch_takes(log: Log) -> None:
    for _ in range(MOST_TIMES + 1):
        log.metrics.add(times={"Latency": 1.0})
    (line,) = log.lines
    assert len(line["Latency"]) == MOST_TIMES
    log.metrics.write_all()
    assert len(log.lines[1]["Latency"]) == 1


def test_what_an_alarm_looks_at_is_written_at_once_with_what_was_kept(log: Log) -> None:
    log.metrics.add(counts={"Indexed.events": 5})
    log.metrics.add(counts={"Indexed.setAside": 1}, urgent=True)
    (line,) = log.lines
    assert (line["Indexed.events"], line["Indexed.setAside"]) == (5, 1)


def test_where_no_end_is_told_nothing_is_kept() -> None:
    log = Log(kept=False)
    for _ in range(2):
        log.metrics.add(counts={"Events": 1})
    assert [line["Events"] for line in log.lines] == [1, 1]
    log.metrics.keep()
    log.metrics.add(counts={"Events": 1})
    assert len(log.lines) == 2


def test_nothing_is_written_of_nothing_and_nothing_twice(log: Log) -> None:
    log.metrics.add(counts={"Events": 0}, notes={"ReadUnits": 1.0}, urgent=True)
    log.metrics.write_all()
    assert log.lines == []
    log.metrics.add(counts={"Events": 1})
    log.metrics.write_all()
    log.metrics.write_all()
    assert log.told("Events") == 1


@pytest.mark.parametrize("kept", [True, False])
def test_values_that_threads_add_at_once_are_all_counted(kept: bool) -> None:
    log = Log(kept=kept)
    rounds, members, interval = 2_000, 8, sys.getswitchinterval()

    def add(member: int) -> None:
        for _ in range(rounds):
            log.metrics.add(operation="o", times={"Latency": 1.0}, counts={"Events": member})

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(members) as pool:
            list(pool.map(add, range(members)))
    finally:
        sys.setswitchinterval(interval)
    log.metrics.write_all()
    assert log.told("Events") == rounds * sum(range(members))
    assert sum(len(line["Latency"]) for line in log.lines) == rounds * members


def test_values_that_are_added_while_a_line_is_written_go_into_another() -> None:
    texts: list[str] = []

    def write(text: str) -> None:
        texts.append(text)
        if len(texts) == 1:
            metrics.add(operation="o", counts={"Events": 2}, urgent=True)

    metrics = Metrics("append", kept=True, write=write)
    metrics.add(operation="o", counts={"Events": 1})
    metrics.write_all()
    assert [json.loads(text)["Events"] for text in texts] == [1, 2]
