"""What is logged and measured: never a payload, a name, a token or a key, whatever becomes of the request.

Everything that a request can carry has a marker in it. The functions run at DEBUG, with success, every kind of refusal,
and crashes whose error holds the marker: what boto or AWS says of a failure may quote the request.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from aws_lambda_powertools import Logger
from botocore.exceptions import ClientError, ParamValidationError

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
    ("POST", "/events", {"events": [TAGGED], "failIf": QUERY}),
    ("POST", "/events", {"events": [TAGGED], "failIf": QUERY}),
    ("POST", "/events", {"events": [TAGGED], "failIf": QUERY, "after": MARK}),
    ("POST", "/events/query", {"query": QUERY}),
    ("GET", f"/tags/person:{MARK}", None),
    ("GET", f"/events/{MARK}", None),
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
    """The functions' logs at their most talkative, and afterwards as they begin: with the first line of a process."""
    for name in ("append", "replay", "feed"):
        Logger(service=name)
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


def crashes(error: Exception, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The lines of requests on tables that raise `error`, whose words are in no answer."""
    failing = Failing()
    api = Api(type_heads=True, around=failing.around)
    failing.error = error
    answers: list[Answer] = []
    everything(api, answers.append)
    assert failing.asked
    crashed = [answer for answer in answers if answer.status >= 500]
    assert len(crashed) > 10
    assert not [answer for answer in crashed if MARK in answer.text]
    logged = [json.loads(line) for line in lines(capsys)]
    found = [line for line in logged if line.get("level") == "ERROR"]
    assert len(found) == len(crashed)
    assert not [line for line in logged if line not in found and MARK in json.dumps(line)]
    return found


def quoting(what: str) -> Exception:
    """As `ValueError` from `KeyError`: each quotes."""
    error = ValueError(f"cannot read {what}")
    error.__cause__ = KeyError(what)
    return error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError(f"{MARK} broke"), "RuntimeError"),
        (KeyError(MARK), "KeyError"),
        (quoting(MARK), "ValueError, from KeyError"),
        (ParamValidationError(report=f"value: {MARK}, type: {MARK}"), "ParamValidationError"),
        (
            ClientError({"Error": {"Code": "ValidationException", "Message": MARK}}, "PutItem"),
            "ClientError: PutItem, ValidationException",
        ),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else "",
)
def test_of_a_crash_the_log_has_what_it_was_and_where_but_not_its_words(
    error: Exception, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """They quote what failed: boto the parameters that it would not send, which are bodies and names."""
    for line in crashes(error, capsys):
        assert line["error"].endswith(told)
        assert "in perform" in line["trace"]
        assert MARK not in json.dumps(line)


@pytest.mark.parametrize(
    "error", [Unavailable(MARK), CorruptData(MARK)], ids=lambda error: type(error).__name__
)
def test_words_of_our_own_are_in_the_line_of_the_crash(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    """They name what is broken, for it has to be found, and hold nothing of it."""
    for line in crashes(error, capsys):
        assert line.pop("error") == f"{type(error).__name__}: {error}"
        assert MARK not in json.dumps(line)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    out, err = capsys.readouterr()
    found = (out + err).splitlines()
    assert all(json.loads(line) for line in found if line.startswith("{"))
    return found
