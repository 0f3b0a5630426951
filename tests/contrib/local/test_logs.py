"""What functions have logged, as people read it, each line once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from epochal.contrib.local.function_logs import LATE_MS, LogLine, Logs, logs_of
from epochal.errors import InvalidInput


class NotThere(Exception): ...


class Cloud:
    """Clients of both services; `groups` has what log streams have."""

    class exceptions:  # noqa: N801  # boto's own name
        ResourceNotFoundException = NotThere

    def __init__(self, *functions: dict[str, Any]) -> None:
        self.functions = functions
        self.groups: dict[str, list[tuple[str, int, str]]] = {}
        self.asked: list[int] = []

    def clients(self, *_: str) -> list[Any]:
        return [self, self]

    def get_paginator(self, operation: str) -> Any:
        self.operation = operation
        return self

    def paginate(self, **asked: Any) -> Iterator[dict[str, Any]]:
        if self.operation == "list_functions":
            yield {"Functions": list(self.functions)}
            return
        if asked["logGroupName"] not in self.groups:
            raise NotThere
        self.asked.append(asked["startTime"])
        found = [
            {"logStreamName": stream, "timestamp": at, "message": text}
            for stream, at, text in sorted(self.groups[asked["logGroupName"]], key=lambda line: line[1])
            if at >= asked["startTime"]
        ]
        yield {"events": found[:1]}
        yield {"events": found[1:]}


def logs(cloud: Cloud, name: str = "") -> Logs:
    return logs_of([cloud], name)  # type: ignore[list-item]


BOARD = {"FunctionName": "shop-reaction-board"}
FEED = {"FunctionName": "shop-feed", "LoggingConfig": {"LogGroup": "feeds"}}


def texts(lines: list[LogLine]) -> list[tuple[str, str]]:
    return [(each.function, each.text) for each in lines]


def test_lines_of_all_functions_come_in_their_order_and_each_once() -> None:
    cloud = Cloud(BOARD, FEED)
    found = logs(cloud)
    assert found.more() == []  # none has been invoked
    cloud.groups = {
        "/aws/lambda/shop-reaction-board": [("a", 1_000, "one"), ("a", 1_000, "two"), ("b", 3_000, "four")],
        "feeds": [("c", 2_000, "three")],
    }
    board, feed = "shop-reaction-board", "shop-feed"
    assert texts(found.more()) == [(board, "one"), (board, "two"), (feed, "three"), (board, "four")]
    assert found.more() == []
    cloud.groups["feeds"] += [("d", 3_000, "of the same moment"), ("c", 2_500, "late")]
    assert texts(found.more()) == [(feed, "late"), (feed, "of the same moment")]


def test_what_is_remembered_and_asked_again_is_of_the_last_seconds() -> None:
    cloud = Cloud(FEED)
    found = logs(cloud)
    for number in range(100):
        at = number * LATE_MS
        cloud.groups["feeds"] = [*cloud.groups.get("feeds", []), (f"stream-{number}", at, f"{number}")]
        assert [each.text for each in found.more()] == [f"{number}"]
    assert cloud.asked[-1] == 97 * LATE_MS


def test_a_name_is_part_of_those_of_the_functions_that_are_meant() -> None:
    cloud = Cloud(BOARD, FEED)
    assert [name for _, name, _ in logs(cloud, "board").groups] == ["shop-reaction-board"]
    with pytest.raises(
        InvalidInput, match="part of a function's name; deployed functions: shop-feed, shop-reaction-board"
    ):
        logs(cloud, "boards")
    with pytest.raises(InvalidInput, match="deployed functions: none"):
        logs(Cloud())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("seen Cart-1", ["seen Cart-1"]),
        ('{"a": 1}', ['{"a": 1}']),
        ("[1, 2]", ["[1, 2]"]),
        ("START RequestId: 1 Version: $LATEST", []),
        ("REPORT RequestId: 1\tDuration: 3 ms", []),
        (json.dumps({"_aws": {"Timestamp": 1}, "Reaction.handled": 3}), []),
        (
            json.dumps(
                {
                    "level": "WARNING",
                    "message": "a handler failed",
                    "attempt": 2,
                    "trace": "File\n  line",
                    "service": "s",
                }
            ),
            ["WARNING a handler failed  attempt=2", "File", "  line"],
        ),
    ],
    ids=["a print", "JSON of its own", "a list", "Lambda's", "Lambda's report", "metrics", "a logger's"],
)
def test_a_line_is_shown_as_people_read_it(text: str, shown: list[str]) -> None:
    assert LogLine(at=0, function="f", text=text).lines() == shown
