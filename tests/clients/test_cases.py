"""The cases are what the API may answer, and the scripted server plays them as they say."""

from __future__ import annotations

import json
import re
import time
import uuid
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import pytest
from jsonschema import Draft202012Validator

from epochal.http.openapi import documents
from tests.clients.cases import Case, Matcher, read_cases, with_run
from tests.clients.scripted import Script, ScriptedServer

CASES: Final = read_cases()
DOCUMENT: Final = json.loads(documents()["openapi.json"])

OF_NO_OPERATION: Final = {"/body": "the bucket answers it"}
"""Paths that are not the API's."""

NOT_OF_THE_API: Final = {502, 504}
"""Statuses that only the network answers with."""


def operation_of(request: dict[str, Any]) -> dict[str, Any]:
    """The operation of the document that a request is for; the path with the fewest parameters wins."""
    paths = sorted(DOCUMENT["paths"], key=lambda path: path.count("{"))
    for path in paths:
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), request["path"]):
            found: dict[str, Any] = DOCUMENT["paths"][path][request["method"].lower()]
            return found
    raise LookupError(request["path"])


def fits(schema: dict[str, Any], value: Any) -> None:
    Draft202012Validator({**schema, "components": DOCUMENT["components"]}).validate(value)


def test_names_are_the_claims_of_one_case_each() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert len(names) >= 60


def test_requests_and_answers_are_those_of_the_document() -> None:
    for case in CASES:
        for exchange in case.of_run("1").exchanges:
            if exchange["request"]["path"] in OF_NO_OPERATION:
                continue
            operation = operation_of(exchange["request"])
            parameters = {each["name"] for each in operation.get("parameters", ())}
            assert exchange["request"].get("query", {}).keys() <= parameters, case.name
            if "body" in exchange["request"]:
                fits(
                    operation["requestBody"]["content"]["application/json"]["schema"],
                    exchange["request"]["body"],
                )
            answer = exchange.get("answer")
            if answer is None or answer["status"] in NOT_OF_THE_API or "body" not in answer:
                continue
            response = operation["responses"][str(answer["status"])]
            if "$ref" in response:
                response = DOCUMENT["components"]["responses"][response["$ref"].rpartition("/")[2]]
            fits(response["content"][answer["headers"]["Content-Type"]]["schema"], answer["body"])


def send(script: Script, request: dict[str, Any], key: str) -> HTTPResponse | None:
    """Send a request as a case has it, whose placeholders are filled; None where no answer arrived."""
    address = urlsplit(script.url)
    connection = HTTPConnection(address.netloc, timeout=1)
    pairs = [(name, part) for name, value in request.get("query", {}).items() for part in value.split(",")]
    target = address.path + quote(request["path"]) + ("?" + urlencode(pairs) if pairs else "")
    headers = {name: value for name, value in request.get("headers", {}).items() if value is not None}
    filled = json.loads(re.sub(r"\$uuidv7(:\w+)?", key, json.dumps([headers, request.get("body")])))
    try:
        connection.request(
            request["method"],
            target,
            json.dumps(filled[1]).encode() if filled[1] is not None else None,
            filled[0],
        )
        answer = connection.getresponse()
        answer.read()
    except (HTTPException, OSError):
        return None
    else:
        return answer
    finally:
        connection.close()


def uuid7() -> str:
    """A UUIDv7 of now."""
    value = (int(time.time() * 1000) << 80) | (uuid.uuid4().int & ((1 << 80) - 1))
    return str(uuid.UUID(int=value & ~(0xF << 76) & ~(0x3 << 62) | 7 << 76 | 2 << 62))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_server_plays_a_case_and_cuts_where_it_says(case: Case) -> None:
    with ScriptedServer() as server:
        script = server.play(case.of_run("1"))
        key = uuid7()
        for exchange in case.of_run("1").exchanges:
            time.sleep(exchange.get("after", 0))
            answer = send(script, dict(exchange["request"]), key)
            if "cut" in exchange or exchange.get("silence"):
                assert answer is None
            else:
                assert answer is not None
                assert answer.status == exchange["answer"]["status"]
        if not needs_two_keys(case):
            script.finish()


def needs_two_keys(case: Case) -> bool:
    """Whether the requests of a case have several keys, which this test does not make."""
    return len(set(re.findall(r"\$uuidv7:\w+", json.dumps(case.exchanges)))) > 1


FIRST: Final = CASES[0].of_run("1")
FIRST_HEADERS: Final = FIRST.exchanges[0]["request"]["headers"]


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"method": "PUT"}, "method is 'PUT'"),
        ({"path": "/streams/Order-2/events"}, "path is '/streams/Order-2/events'"),
        ({"query": {"limit": "1"}}, "query has ['limit'] besides"),
        ({"body": {"events": []}}, "body.events is []"),
        (
            {"headers": {**FIRST_HEADERS, "Idempotency-Key": "order-1"}},
            "the header Idempotency-Key is 'order-1'",
        ),
        ({"headers": {}}, "the header Content-Type is None"),
    ],
)
def test_a_request_that_differs_fails_the_case(change: dict[str, Any], difference: str) -> None:
    with ScriptedServer() as server:
        script = server.play(FIRST)
        answer = send(script, {**FIRST.exchanges[0]["request"], **change}, uuid7())
        assert answer is not None
        assert answer.status == 400
        with pytest.raises(AssertionError, match=re.escape(difference)):
            script.finish()


def test_requests_too_few_too_many_and_too_early_fail_the_case() -> None:
    waiting = next(case.of_run("1") for case in CASES if "after" in case.exchanges[-1])
    with ScriptedServer() as server:
        none, many, early = (server.play(case) for case in (FIRST, FIRST, waiting))
        with pytest.raises(AssertionError, match="0 requests of 1"):
            none.finish()
        for script, case in ((many, FIRST), (early, waiting)):
            key = uuid7()
            for _ in range(2):
                send(script, dict(case.exchanges[0]["request"]), key)
        with pytest.raises(AssertionError, match="a request too many"):
            many.finish()
        with pytest.raises(AssertionError, match="request 1 came after"):
            early.finish()


def test_a_repeat_with_another_key_fails_the_case() -> None:
    repeated = next(case.of_run("1") for case in CASES if "cut" in case.exchanges[0])
    with ScriptedServer() as server:
        script = server.play(repeated)
        for exchange in repeated.exchanges:
            send(script, dict(exchange["request"]), uuid7())
        with pytest.raises(AssertionError, match="request 1: the header Idempotency-Key"):
            script.finish()


@pytest.mark.parametrize(
    ("expected", "value", "same"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1, "b": 2}, {"a": 1}, False),
        ([1], [1, 2], False),
        ("$text", "", False),
        ("$text", "a", True),
        ("$number", 1.5, True),
        ("$number", True, False),
        (1, True, False),
        ("$uuidv7", uuid7, True),
        ("$uuidv7", str(uuid.uuid4()), False),
        ("$uuidv7", lambda: "0193" + uuid7()[4:], False),
        (None, None, True),
    ],
    ids=range(12),  # keys of now have other names in each process
)
def test_values_are_compared_as_the_format_says(expected: Any, value: Any, same: bool) -> None:
    value = (
        value() if callable(value) else value
    )  # a key is made when it is compared: it must be of the last minute
    assert (Matcher().difference(expected, value, exact=False) is None) is same


def test_further_fields_are_a_difference_only_in_requests() -> None:
    assert Matcher().difference({"a": 1}, {"a": 1, "b": 2}, exact=True) == "it has ['b'] besides"
    assert with_run({"a{run}": ["{run}"]}, "7") == {"a7": ["7"]}
