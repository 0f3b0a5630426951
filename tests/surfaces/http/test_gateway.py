"""API Gateway's events in, its answers out, and what is logged and measured on the way."""

from __future__ import annotations

import base64
import copy
import json
import logging
from typing import Any

import pytest
from aws_lambda_powertools import Logger

from epochal.http.gateway_requests import request_of
from epochal.plan.ops import Execute, Op, Reply
from tests.support.api import Api, Context, gateway_event, url_event

REQUEST_ID = "JKJaXmPLvHcESHA="


@pytest.fixture
def api() -> Api:
    return Api()


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("media", ["application/json", "application/cloudevents+json"])
def test_a_body_arrives_as_text_or_in_base64(api: Api, media: str) -> None:
    body = '{"events":[{"type":"Größe","data":"✈"}]}'.encode()
    event = gateway_event("POST", "/streams/Cat-1/events", body, headers={"Content-Type": media})
    assert event["isBase64Encoded"] is (media != "application/json")
    assert api.send(event).status == 201
    (shown,) = api.call("GET", "/streams/Cat-1/events").json["events"]
    assert (shown["type"], shown["data"]) == ("Größe", "✈")


def test_a_body_without_a_media_type_is_taken_for_json(api: Api) -> None:
    body = b'{"events":[{"type":"A"}]}'
    event = gateway_event("POST", "/streams/Cat-1/events", body)
    del event["headers"]["content-type"]
    event |= {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}
    assert api.send(event).status == 201


def test_what_the_gateway_leaves_out_or_sends_as_null_is_absent(api: Api) -> None:
    api.append("Cat-1", "A")
    event = gateway_event("GET", "/streams/Cat-1")
    event |= {"rawQueryString": None, "headers": None, "body": None, "pathParameters": None}
    assert api.send(event).status == 200
    for name in ("rawQueryString", "headers", "body", "pathParameters"):
        del event[name]
    assert api.send(event).status == 200


def changed(event: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """The event with another value at a path; without it for `...`."""
    *above, last = path.split(".")
    made = copy.deepcopy(event)
    place = made
    for name in above:
        place = place[name]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return made


@pytest.mark.parametrize("value", [..., None, [], {}, 1], ids=repr)
@pytest.mark.parametrize(
    "path",
    [
        "rawPath", "requestContext", "requestContext.requestId", "requestContext.stage", "requestContext.http",
        "requestContext.http.method",
    ],
)  # fmt: skip
def test_what_is_no_request_of_the_gateways_is_refused_in_the_same_form(
    api: Api, capsys: pytest.CaptureFixture[str], path: str, value: object
) -> None:
    """Whoever may invoke a function sends it what he likes; a crash would be an error, and an alarm."""
    event = changed(gateway_event("GET", "/streams/Cat-1"), path, value)
    answer = api.hand("replay", event)
    assert (answer.status, answer.problem, answer.json["field"]) == (400, "invalid-input", "event")
    assert answer.headers["X-Correlation-Id"] == Context().aws_request_id
    refused, measured = lines(capsys)
    assert (refused["field"], refused["correlation_id"]) == ("event", Context().aws_request_id)
    assert measured["operation"] == "none"


@pytest.mark.parametrize(
    "event",
    [None, [], {}, "x", {"Records": []}, {"version": "1.0", "httpMethod": "GET", "path": "/health"}],
    ids=repr,
)
def test_an_event_of_another_kind_is_refused_likewise(api: Api, event: Any) -> None:
    assert api.hand("append", event).json["field"] == "event"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("rawQueryString", 1), ("body", {}), ("headers", 1), ("headers", {"x": None}), ("headers", {"x": ["a", "b"]}),
    ],
)  # fmt: skip
def test_parts_of_another_type_are_no_request_either(api: Api, path: str, value: object) -> None:
    event = changed(gateway_event("GET", "/streams/Cat-1", b"{}"), path, value)
    assert api.hand("replay", event).json["field"] == "event"


def test_a_stage_before_the_path_is_no_part_of_it(api: Api) -> None:
    api.append("Cat-1", "A")
    event = gateway_event("GET", "/streams/Cat-1")
    event["requestContext"]["stage"] = "live"
    sent = api.handlers["replay"](event | {"rawPath": "/live/streams/Cat-1"}, Context())  # type: ignore[arg-type]
    assert sent["statusCode"] == 200


def test_a_path_that_only_begins_like_the_stage_is_left_as_it_is(api: Api) -> None:
    event = gateway_event("GET", "/health")
    event["requestContext"]["stage"] = "heal"
    assert api.send(event).status == 200


@pytest.mark.parametrize(("remaining", "seconds"), [(28.0, 25.0), (10.0, 9.0), (0.5, 0.0)])
def test_a_request_is_given_a_second_less_than_its_function_has_left(
    remaining: float, seconds: float
) -> None:
    """To write down the answer: a function that is stopped meanwhile answers 500, and says nothing."""
    assert request_of(gateway_event("GET", "/health"), {}, remaining).seconds == seconds


def test_a_path_is_decoded_no_further_than_the_gateway_did(api: Api) -> None:
    """`%2541` reaches a function as `%41`: another spelling of a name that a policy may refuse."""
    api.append("A", "A")
    assert api.call("GET", "/streams/%41").json["field"] == "stream"


def test_a_functions_own_url_brings_the_path_as_it_was_sent(api: Api) -> None:
    body = b'{"events":[{"type":"A"}]}'
    sent = "/streams/Road%3Awest%401/events"
    event = url_event(gateway_event("POST", sent, body), sent)
    assert api.hand("append", event).status == 201
    assert api.call("GET", "/streams/Road:west@1").json["version"] == 1


@pytest.mark.parametrize(
    ("sent", "field"), [("/streams/%2541", "stream"), ("/streams/%25", "stream"), ("/streams/%FF", "stream")]
)
def test_a_path_has_no_second_spelling_behind_a_functions_url_either(api: Api, sent: str, field: str) -> None:
    api.append("A", "A")
    answer = api.hand("replay", url_event(gateway_event("GET", sent), sent))
    assert (answer.status, answer.json["field"]) == (400, field)


def test_a_domain_that_only_looks_like_a_functions_is_the_gateways(api: Api) -> None:
    """Its path has been decoded once."""
    api.append("A", "A")
    event = gateway_event("GET", "/streams/%41")
    event["requestContext"]["domainName"] = "x.lambda-url.example.com"
    assert api.hand("replay", event).json["field"] == "stream"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/streams", "POST, GET"),
        ("PUT", "/streams/Cat-1", "DELETE, GET"),
        ("PATCH", "/streams/Cat-1/events", "POST, GET"),
        ("HEAD", "/health", "GET"),
        ("GET", "/bodies", "POST"),
        ("PUT", "/events/query", "POST"),
        ("GET", "/events/query", "POST"),
        ("PUT", "/events/b2c5", "GET"),
    ],
)
def test_a_method_that_a_path_has_not_is_405_and_says_which_it_has(
    api: Api, method: str, path: str, allowed: str
) -> None:
    answer = api.call(method, path)
    assert (answer.status, answer.problem, answer.headers["Allow"]) == (405, "method-not-allowed", allowed)


@pytest.mark.parametrize(
    "path", ["/", "/tips", "/streams/", "/streams/Cat-1/", "/feeds", "/Streams/Cat-1/events/1"]
)
def test_a_path_that_is_none_is_a_404_or_names_the_rule(api: Api, path: str) -> None:
    answer = api.call("GET", path)
    if path == "/streams/":
        assert answer.json["rule"] == "must not be empty"
    else:
        assert (answer.status, answer.problem) == (404, "route-not-found")


def test_a_function_refuses_what_another_one_serves(api: Api) -> None:
    event = gateway_event("POST", "/streams/Cat-1/events", b'{"events":[{"type":"A"}]}')
    sent = api.handlers["replay"](event, Context())  # type: ignore[arg-type]
    assert sent["statusCode"] == 404
    assert api.stored == []


@pytest.mark.parametrize("given", ["abc-123", "x" * 128])
def test_the_callers_correlation_id_is_in_answers_problems_and_logs(
    api: Api, given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = api.call("GET", "/streams/Cat-1", headers={"X-Correlation-ID": given})
    assert answer.headers["X-Correlation-Id"] == given
    assert answer.json["instance"] == f"urn:epochal:request:{given}"
    refused, _ = lines(capsys)
    assert refused["correlation_id"] == given


@pytest.mark.parametrize("given", [None, "", "x" * 129, "two words", "line\nbreak", "é"])
def test_a_correlation_id_that_could_forge_logs_is_replaced_by_the_gateways(
    api: Api, given: str | None
) -> None:
    headers = {} if given is None else {"X-Correlation-Id": given}
    assert api.call("GET", "/health", headers=headers).headers["X-Correlation-Id"] == REQUEST_ID


def test_an_append_is_measured_in_one_line_of_embedded_metrics(
    api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    api.append("Cat-1", "A", "B")
    (line,) = lines(capsys)
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert {metric["Name"]: metric["Unit"] for metric in directive["Metrics"]} == {
        "Latency": "Milliseconds",
        "Events": "Count",
    }
    assert (line["service"], line["operation"]) == ("append", "appendEvents")
    assert (line["Appends"], line["Events"], line["ReadUnits"], line["WriteUnits"]) == (1, 2, 1, 1)
    assert line["Latency"][0] > 0


def test_a_fault_is_counted_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(_: Execute) -> Execute:
        def execute(_: Op) -> Reply:
            raise RuntimeError

        return execute

    Api(around=broken).call("GET", "/streams/Cat-1")
    _, line = lines(capsys)
    assert line["Faults"] == 1


def test_each_request_is_logged_where_the_stage_logs_everything(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    Logger(service="append")  # which sets the logger's own level, to which `caplog` returns
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "DEBUG")
    with caplog.at_level(logging.DEBUG, logger="append"):
        Api().append("Cat-1", "A")
    answered = next(line for line in lines(capsys) if line.get("message") == "answered")
    assert (answered["operation"], answered["status"]) == ("appendEvents", 201)
    assert answered["correlation_id"] == REQUEST_ID


def test_a_conflict_is_counted_and_costs_what_it_cost(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    stale = api.append("Cat-1", "A").etag
    api.append("Cat-1", "B")
    capsys.readouterr()
    api.call("POST", "/streams/Cat-1/events", {"events": [{"type": "C"}]}, headers={"If-Match": stale})
    refusal, line = lines(capsys)
    assert (refusal["level"], refusal["message"], refusal["problem"]) == (
        "INFO",
        "refused",
        "precondition-failed",
    )
    assert (line["Conflicts"], line["WriteUnits"]) == (1, 1)
    assert "Faults" not in line
    assert "Appends" not in line


def test_a_replayed_append_is_not_counted_twice(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        api.call(
            "POST", "/streams/Cat-1/events", {"events": [{"type": "A"}]}, headers={"Idempotency-Key": "k"}
        )
    first, second = lines(capsys)
    assert first["Appends"] == 1
    assert "Appends" not in second


def test_names_of_streams_and_contents_are_not_logged(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    api.append("Person-secret", "A", correlationId="x")
    api.append("Person-secret", "A", expected=7)
    api.call("POST", "/streams/Person-secret/events", {"events": [{"type": "A", "secret": "secret"}]})
    api.call("GET", "/streams/Person-other-secret")
    assert "Person" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/streams/Cat-1\n", 400),
        ("/streams/Cat-1/events\n", 404),
        ("/aggregates/order/1\n", 400),
        ("/health\n", 404),
    ],
)
def test_a_line_break_at_the_end_of_a_path_is_part_of_it(path: str, status: int) -> None:
    """Or a policy that denies a path would be evaded by another spelling of it."""
    api = Api()
    api.append("Cat-1", "A")
    assert api.call("GET", path).status == status
