"""What is logged and measured: never a payload, a name, a token or a key, whatever becomes of the request.

Everything that a request can carry has a marker in it. The functions run at DEBUG, with success, every kind of refusal,
and crashes whose error holds the marker: what AWS says of a failure may quote the request.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from epochal.errors import CorruptData, Unavailable
from epochal.plan.ops import Execute, Op, Reply
from tests.support.api import Answer, Api

MARK: Final = "marker4711"
TOKEN: Final = f"Bearer {MARK}.{MARK}.{MARK}"
STREAM: Final = f"Person-{MARK}"
EVENT: Final = {
    "type": f"Type{MARK}",
    "data": {MARK: MARK},
    "meta": {"by": MARK},
    "correlationId": MARK,
    "causationId": MARK,
}
TAGGED: Final = {
    "type": f"Type{MARK}",
    "data": {MARK: MARK},
    "tags": [f"person:{MARK}"],
    "executedUser": MARK,
}
QUERY: Final = {"items": [{"tags": [f"person:{MARK}"], "types": [f"Type{MARK}"]}]}
STATE: Final = {"eventsProcessed": 0, "safeWindow": MARK, "state": {MARK: MARK}}

REQUESTS: Final[tuple[tuple[str, str, Any], ...]] = (
    ("POST", f"/streams/{STREAM}/events", {"events": [EVENT], "unfolds": [{"type": MARK, "data": MARK}]}),
    ("POST", f"/streams/{STREAM}/events", {"events": [EVENT], "expected": 7}),
    ("POST", f"/streams/{STREAM}/events", {"events": [{**EVENT, MARK: MARK}]}),
    ("POST", f"/streams/{STREAM}/events", {"events": [{**EVENT, "timestamp": MARK}]}),
    ("POST", f"/streams/{STREAM}/events", {"events": [{**EVENT, "data64": MARK}]}),
    ("POST", f"/streams/{STREAM}/events", f'{{"{MARK}'.encode()),
    ("POST", f"/streams/ {MARK}/events", {"events": [EVENT]}),
    ("POST", f"/streams/${MARK}/events", {"events": [EVENT]}),
    ("POST", "/bodies", {"sha256": MARK, "bytes": 1}),
    ("GET", f"/streams/{STREAM}", None),
    ("GET", f"/streams/{STREAM}/events", None),
    ("GET", f"/streams/{STREAM}x/events", None),
    (
        "POST",
        f"/aggregates/order/{MARK}/events",
        {"events": [{"type": MARK, "data": MARK}], "snapshot": MARK},
    ),
    ("POST", f"/aggregates/{MARK}/1/events", {"events": [{"type": MARK, "data": MARK}], "snapshot": MARK}),
    ("GET", f"/aggregates/order/{MARK}", None),
    ("POST", "/dcb/events", {"events": [TAGGED], "failIf": QUERY}),
    ("POST", "/dcb/events", {"events": [TAGGED], "failIf": QUERY}),
    ("POST", "/dcb/events", {"events": [TAGGED], "failIf": QUERY, "after": MARK}),
    ("POST", "/dcb/query", {"query": QUERY}),
    ("GET", f"/dcb/tags/person:{MARK}", None),
    ("GET", f"/dcb/events/{MARK}", None),
    ("PUT", f"/projections/{MARK}/{MARK}", STATE),
    ("GET", f"/projections/{MARK}/{MARK}", None),
    ("DELETE", f"/projections/{MARK}/{MARK}", None),
    ("POST", f"/streams/{STREAM}/prune", {"before": 1}),
    ("DELETE", f"/streams/{STREAM}", None),
    ("GET", "/feed/0", None),
    ("GET", f"/{MARK}", None),
    ("PUT", f"/streams/{STREAM}", None),
)


@dataclass
class Failing:
    """Tables on which every request fails with `error`, once they are told to."""

    error: Exception | None = None
    asked: int = field(default=0)

    def around(self, execute: Execute) -> Execute:
        def perform(op: Op) -> Reply:
            self.asked += 1
            if self.error is not None:
                raise self.error
            return execute(op)

        return perform


@pytest.fixture(autouse=True)
def at_debug() -> Iterator[None]:
    """The functions' logs at their most talkative; they begin with the first API of a process."""
    Api()
    loggers = [logging.getLogger(name) for name in ("append", "replay", "feed")]
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


def everything(api: Api, keep: Callable[[Answer], object]) -> None:
    for name in ("append", "replay", "feed"):
        logging.getLogger(name).setLevel(logging.DEBUG)
    headers = {
        "Authorization": TOKEN,
        "Cookie": MARK,
        "X-Amz-Security-Token": MARK,
        "Idempotency-Key": MARK,
    }
    for method, path, body in REQUESTS:
        taken = path.startswith("/streams/") and method == "POST" and path.endswith("/events")
        sent = headers if taken else {name: headers[name] for name in headers if name != "Idempotency-Key"}
        keep(
            api.call(
                method,
                path,
                body,
                query=f"{MARK}={MARK}" if method == "PUT" and body is None else "",
                headers=sent,
            )
        )


def test_names_payloads_and_tokens_are_in_no_line_of_a_success_or_a_refusal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answers: list[Answer] = []
    everything(Api(type_heads=True), answers.append)
    assert {answer.status for answer in answers} >= {200, 201, 400, 404, 405, 409}
    logged = lines(capsys)
    assert len(logged) >= len(REQUESTS)
    assert not [line for line in logged if MARK in line]


@pytest.mark.parametrize(
    "error",
    [RuntimeError(f"{MARK} broke"), KeyError(MARK), ValueError(MARK), Unavailable(MARK), CorruptData(MARK)],
    ids=lambda error: type(error).__name__,
)
def test_what_a_crash_says_is_in_its_line_of_the_log_and_in_no_answer(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = Failing()
    api = Api(type_heads=True, around=failing.around)
    failing.error = error
    answers: list[Answer] = []
    everything(api, answers.append)
    assert failing.asked
    crashed = [answer for answer in answers if answer.status >= 500]
    assert len(crashed) > 10
    assert not [answer for answer in crashed if MARK in answer.text]
    marked = [json.loads(line) for line in lines(capsys) if MARK in line]
    assert len(marked) == len(crashed)
    for line in marked:
        assert line["level"] == "ERROR"
        quoting = {"exception", "stack_trace"}
        assert MARK not in json.dumps({name: line[name] for name in line if name not in quoting})


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    out, err = capsys.readouterr()
    found = (out + err).splitlines()
    assert all(json.loads(line) for line in found if line.startswith("{"))
    return found
