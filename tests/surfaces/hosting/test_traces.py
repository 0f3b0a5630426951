"""A handler that raises says where: file, line and code, at every attempt, and for as long as its stream is parked."""

from __future__ import annotations

import io
import json
import logging
from typing import Any

import pytest
from aws_lambda_powertools import Logger

from epochal import Delivery, Event, reaction
from epochal.hosting.function_logs import log_attempt
from epochal.reactions.failures import Attempt
from epochal.reactions.traces import MAX_TRACE, code_location, trace_of
from epochal.testing.feeds import MemoryStore
from tests.core.reactions.world import Told, World

SECRET = "ann@example.com"


def price(item: dict[str, str]) -> str:
    return item["price"]


def sum_up(_delivery: Delivery) -> None:
    price({"name": SECRET})


def told_twice(_delivery: Delivery) -> None:
    try:
        int(SECRET)
    except ValueError as error:
        raise RuntimeError(SECRET) from error


def deep(_delivery: Delivery) -> None:
    def down(steps: int) -> None:
        try:
            down(steps - 1) if steps else int(SECRET)
        except ValueError as error:
            raise ValueError("between") from error

    try:
        down(40)
    except ValueError as last:
        raise KeyError("bottom") from last


async def sum_up_later(delivery: Delivery) -> None:
    sum_up(delivery)


def failed_by(handler: Any, **options: Any) -> tuple[MemoryStore, Any]:
    feed = MemoryStore()
    feed.streams.append("Cart-1", [Event(type="Opened")])
    made = reaction(name="carts", **options)(handler)
    feed.react(made)
    (found,) = feed.parking(made).streams(30_000)
    return feed, found


@pytest.mark.parametrize("handler", [sum_up, sum_up_later], ids=["plain", "async"])
def test_what_is_parked_has_the_trace_from_the_handler_on(handler: Any) -> None:
    _, found = failed_by(handler, attempts=1)
    lines = found.cause.trace.splitlines()
    assert lines[0].startswith(f'  File "{__file__}", line')
    assert lines[0].endswith(f"in {handler.__name__}")
    assert '    return item["price"]' in lines
    assert lines[-1] == "KeyError"
    assert "epochal/reactions" not in found.cause.trace


def test_a_trace_has_code_and_no_values_and_what_an_error_came_from() -> None:
    _, found = failed_by(told_twice, attempts=1)
    assert found.cause.text == f"RuntimeError: {SECRET}"
    assert SECRET not in found.cause.trace
    first, second = found.cause.trace.split("\n\n")
    assert first.endswith("ValueError")
    assert second.endswith("raise RuntimeError(SECRET) from error\nRuntimeError")


def test_of_a_long_trace_the_end_is_kept() -> None:
    _, found = failed_by(deep, attempts=1)
    assert len(found.cause.trace) == MAX_TRACE
    assert found.cause.trace.startswith("…")
    assert found.cause.trace.endswith('raise KeyError("bottom") from last\nKeyError')


def test_each_attempt_in_memory_is_logged_where_pytest_shows_it(caplog: pytest.LogCaptureFixture) -> None:
    failed_by(sum_up, attempts=3)
    assert [each.getMessage().splitlines()[0] for each in caplog.records] == [
        f"Cart-1 at 0, attempt {number}: KeyError: 'price'" for number in (1, 2, 3)
    ]
    assert all('return item["price"]' in each.getMessage() for each in caplog.records)


def test_each_attempt_is_told_of_also_those_of_a_replay() -> None:
    seen: list[Attempt] = []
    world = World(told=Told(fails=lambda call: any(each.index == 1 for each in call.events)))
    world.append("A-1", "x", "y")
    world.reactor(attempts=2, on_failed=seen.append).run(0, seconds=600)
    assert [(each.number, each.index, each.type, each.events) for each in seen] == [
        (1, 0, "x", 2),
        (1, 1, "y", 1),
        (2, 1, "y", 1),
    ]
    seen.clear()
    world.parking(attempts=2, on_failed=seen.append).replay(0, "A-1", seconds=600)
    assert [(each.stream, each.number) for each in seen] == [("A-1", 1), ("A-1", 2)]


@pytest.mark.parametrize("level", [logging.INFO, logging.DEBUG])
def test_the_log_has_stream_type_place_and_trace_and_words_only_where_all_is_logged(level: int) -> None:
    shown = io.StringIO()
    try:
        told_twice(None)  # type: ignore[arg-type]
    except RuntimeError as error:
        attempt = Attempt(partition=0, stream="Cart-1", index=7, type="Paid", events=1, number=2, error=error)
    log_attempt(Logger(service=f"log-{level}", level=level, stream=shown), "boards.departures", attempt)
    line = json.loads(shown.getvalue())
    assert (line["level"], line["message"]) == ("WARNING", "a handler failed")
    line_number = told_twice.__code__.co_firstlineno + 4
    assert line["place"] == f"test_traces.py:{line_number} in told_twice"
    assert (line["attempt"], line["partition"], line["index"]) == (2, 0, 7)
    assert (line["stream"], line["type"], line["handler"]) == ("Cart-1", "Paid", "boards.departures")
    assert line["error"] == "RuntimeError, from ValueError"
    assert "raise RuntimeError(SECRET)" in line["trace"]
    assert (SECRET in str(line)) == (level == logging.DEBUG)
    assert line.get("cause") == (f"RuntimeError: {SECRET}" if level == logging.DEBUG else None)


def test_an_error_without_a_trace_has_no_place() -> None:
    assert (code_location(ValueError("no")), trace_of(ValueError("no"))) == ("", "ValueError")


def test_a_place_is_in_the_handlers_own_code_also_where_others_raised() -> None:
    with pytest.raises(ValueError, match="Expecting") as raised:
        json.loads("no")
    assert code_location(raised.value).startswith("test_traces.py:")
