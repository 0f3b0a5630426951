"""Bad input is refused with the field and the rule, and nothing is written (GUARANTEES G14)."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

import pytest

from epochal.http.event_fields import MAX_EVENTS, MAX_UNFOLDS
from epochal.http.routes import operations
from tests.support.api import Answer, Api, gateway_event

EVENT = {"type": "A"}
DIGEST = "0" * 64


@pytest.fixture
def api() -> Api:
    """A store that holds one stream, so that there is something to spoil."""
    api = Api()
    api.append("Cat-1", "A", unfolds=[{"type": "S", "data": 1}])
    return api


def refused(api: Api, answer: Answer, field: str, status: int = 400) -> None:
    assert (answer.status, answer.json.get("field")) == (status, field), answer.text
    assert answer.json["rule"]
    assert answer.json["detail"] == f"{field}: {answer.json['rule']}"
    fresh = Api()
    fresh.append("Cat-1", "A", unfolds=[{"type": "S", "data": 1}])
    assert len(api.stored) == len(fresh.stored)
    assert api.stored[0]["n"] == {"N": "1"}


NAMES = {
    "empty": "",
    "reserved": "$AppendsIndex-0",
    "reserved and hidden": "$",
    "a space": "Cat 1",
    "a slash that the gateway decoded": "Cat/../1",
    "a percent sign that the gateway left": "Cat%251",
    "a quote": 'Cat"1',
    "a hash": "Cat#1",
    "a question mark": "Cat?1",
    "a backslash": "Cat\\1",
    "a control character": "Cat\n1",
    "a null character": "Cat\x001",
    "letters beyond ASCII": "Kategorie-ä",
    "digits beyond ASCII": "Cat-١",
    "a replacement character": "Cat-�",
    "too long": "x" * 513,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if "slash that" not in name])
@pytest.mark.parametrize(
    "route", [route for route in operations() if "{stream}" in route.path], ids=lambda each: each.key
)
def test_a_malformed_stream_name_is_refused_by_every_operation(api: Api, route: Any, name: str) -> None:
    body = {"pruneStream": {"before": 1}, "appendEvents": {"events": [EVENT]}}.get(route.name)
    answer = api.call(route.method, route.path.replace("{stream}", NAMES[name]), body)
    refused(api, answer, "stream")


def test_a_slash_in_a_stream_name_meets_no_operation(api: Api) -> None:
    answer = api.call("GET", f"/streams/{NAMES['a slash that the gateway decoded']}")
    assert (answer.status, answer.problem) == (404, "route-not-found")


@pytest.mark.parametrize("name", [".", ".."])
def test_a_step_in_a_path_is_no_stream(api: Api, name: str) -> None:
    """A client that sends it as it is: most leave it out, and with it the segment before."""
    refused(api, api.append(name, "A"), "stream")
    several = {"appends": [{"stream": "Cat-2", "events": [EVENT]}, {"stream": name, "events": [EVENT]}]}
    refused(api, api.call("POST", "/streams", several), "appends[1].stream")


@pytest.mark.parametrize("length", [1, 512])
def test_the_shortest_and_the_longest_name_are_taken(length: int) -> None:
    assert Api().append("x" * length, "A").status == 201


@pytest.mark.parametrize("character", "-_.:~@+=")
def test_every_character_that_a_name_may_hold_is_taken_on_the_path(character: str) -> None:
    api = Api()
    assert api.append(f"Cat{character}1", "A").status == 201
    assert api.call("GET", f"/streams/Cat{character}1").json["stream"] == f"Cat{character}1"


BODIES: dict[str, tuple[object, str]] = {
    "nothing": ({}, "events"),
    "no events": ({"events": []}, "events"),
    "no events and no unfolds": ({"events": [], "unfolds": []}, "events"),
    "events that are null": ({"events": None}, "events"),
    "events that are an object": ({"events": {}}, "events"),
    "events that are text": ({"events": "A"}, "events"),
    "an event that is text": ({"events": [EVENT, "A"]}, "events[1]"),
    "an event that is null": ({"events": [None]}, "events[0]"),
    "an event that is a list": ({"events": [[]]}, "events[0]"),
    "too many events": ({"events": [EVENT] * (MAX_EVENTS + 1)}, "events"),
    "too many unfolds": ({"unfolds": [EVENT] * (MAX_UNFOLDS + 1)}, "unfolds"),
    "an unfold without a type": ({"unfolds": [{"data": 1}]}, "unfolds[0].type"),
    "an unfold with what only events have": (
        {"unfolds": [{**EVENT, "correlationId": "c"}]},
        "unfolds[0].correlationId",
    ),
    "unfolds that are null": ({"events": [EVENT], "unfolds": None}, "unfolds"),
    "an unknown field": ({"events": [EVENT], "expectedVersion": 1}, "expectedVersion"),
    "an unknown field of an event": ({"events": [EVENT, {**EVENT, "kind": 1}]}, "events[1].kind"),
    "an unknown field without a name": ({"events": [EVENT], "": 1}, "(empty)"),
    "an unknown field with a hostile name": ({"events": [EVENT], "\ud800\n": 1}, "\\ud800\n"),
    "no type": ({"events": [{"data": 1}]}, "events[0].type"),
    "a type that is null": ({"events": [{"type": None}]}, "events[0].type"),
    "a type that is a number": ({"events": [{"type": 1}]}, "events[0].type"),
    "an empty type": ({"events": [{"type": ""}]}, "events[0].type"),
    "a type too long": ({"events": [{"type": "é" * 257}]}, "events[0].type"),
    "a type with half a surrogate pair": ({"events": [{"type": "\ud800"}]}, "events[0].type"),
    "data with half a surrogate pair": ({"events": [{**EVENT, "data": ["\udfff"]}]}, "events[0].data"),
    "data twice": ({"events": [{**EVENT, "data": 1, "data64": ""}]}, "events[0].data64"),
    "meta twice": ({"events": [{**EVENT, "meta": 1, "meta64": ""}]}, "events[0].meta64"),
    "base64 that is null": ({"events": [{**EVENT, "data64": None}]}, "events[0].data64"),
    "base64 that is none": ({"events": [{**EVENT, "data64": "{}"}]}, "events[0].data64"),
    "base64 without its padding": ({"events": [{**EVENT, "data64": "YQ"}]}, "events[0].data64"),
    "base64 with a line break": ({"events": [{**EVENT, "meta64": "YWJj\n"}]}, "events[0].meta64"),
    "base64 for the web": ({"events": [{**EVENT, "data64": "-_-_"}]}, "events[0].data64"),
    "base64 beyond ASCII": ({"events": [{**EVENT, "data64": "é==="}]}, "events[0].data64"),
    "a time that is a number": ({"events": [{**EVENT, "timestamp": 0}]}, "events[0].timestamp"),
    "a time that is none": ({"events": [{**EVENT, "timestamp": "now"}]}, "events[0].timestamp"),
    "a day that is none": (
        {"events": [{**EVENT, "timestamp": "2013-02-30T00:00:00Z"}]},
        "events[0].timestamp",
    ),
    "a time before year 1": (
        {"events": [{**EVENT, "timestamp": "0001-01-01T00:00:00+14:00"}]},
        "events[0].timestamp",
    ),
    "an id that is a number": ({"events": [{**EVENT, "correlationId": 1}]}, "events[0].correlationId"),
    "an empty id": ({"events": [{**EVENT, "causationId": ""}]}, "events[0].causationId"),
    "an id too long": ({"events": [{**EVENT, "causationId": "x" * 1_025}]}, "events[0].causationId"),
    "a claim that is text": ({"events": [{**EVENT, "claim": "x"}]}, "events[0].claim"),
    "a claim without a hash": (
        {"events": [{**EVENT, "claim": {"key": "k", "bytes": 1}}]},
        "events[0].claim.sha256",
    ),
    "a claim of another key": (
        {"events": [{**EVENT, "claim": {"key": "states/secret", "sha256": DIGEST, "bytes": 1}}]},
        "events[0].claim.key",
    ),
    "a claim with a hash that is none": (
        {"events": [{**EVENT, "claim": {"key": "bodies/x", "sha256": "x", "bytes": 1}}]},
        "events[0].claim.sha256",
    ),
    "a claim of nothing": (
        {"events": [{**EVENT, "claim": {"key": f"bodies/{DIGEST}", "sha256": DIGEST, "bytes": 0}}]},
        "events[0].claim.bytes",
    ),
    "a negative version": ({"events": [EVENT], "expected": -1}, "expected"),
    "a version that is text": ({"events": [EVENT], "expected": "1"}, "expected"),
    "a version that is a fraction": ({"events": [EVENT], "expected": 1.5}, "expected"),
    "a version that is a whole fraction": ({"events": [EVENT], "expected": 1.0}, "expected"),
    "a version that is true": ({"events": [EVENT], "expected": True}, "expected"),
    "a version that is null": ({"events": [EVENT], "expected": None}, "expected"),
    "a version beyond all": ({"events": [EVENT], "expected": 2**31}, "expected"),
    "a token without its hash": ({"events": [EVENT], "expected": "1."}, "expected"),
    "a token with quotes": ({"events": [EVENT], "expected": f'"1.{DIGEST[:32]}.0.0.0.0.0"'}, "expected"),
    "a token of a version beyond all": (
        {"events": [EVENT], "expected": f"9999999999.{DIGEST[:32]}.0.0.0.0.0"},
        "expected",
    ),
    "an expectation that is none": ({"events": [EVENT], "expected": "ANY"}, "expected"),
    "an expectation that is a list": ({"events": [EVENT], "expected": [1]}, "expected"),
}
SIZES = {"too many events", "too many unfolds"}


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_a_malformed_append_is_refused_by_field(api: Api, name: str) -> None:
    body, field = copy.deepcopy(BODIES[name])
    # By the standard library, which writes half a surrogate pair and 1.0 as they are.
    answer = api.call("POST", "/streams/Cat-1/events", json.dumps(body).encode())
    refused(api, answer, field, status=413 if name in SIZES else 400)


CONTENTS = {
    "none": b"",
    "no JSON": b"events",
    "cut off": b'{"events":[',
    "two documents": b"{}{}",
    "single quotes": b"{'events':[]}",
    "a trailing comma": b'{"events":[],}',
    "a comment": b'{"events":[]}//',
    "NaN": b'{"events":[{"type":"A","data":NaN}]}',
    "infinity": b'{"events":[{"type":"A","data":-Infinity}]}',
    "a name twice": b'{"events":[{"type":"A"}],"events":[]}',
    "a name twice, deep inside": b'{"events":[{"type":"A","data":[{"a":1,"a":2}]}]}',
    "an exponent without end": b'{"events":[{"type":"A","data":1e99999999999999999999}]}',
    "digits without end": b'{"events":[{"type":"A","data":%s}]}' % (b"9" * 5000),
    "brackets without end": b"[" * 200_000,
    "an array": b"[]",
    "text": b'"events"',
    "null": b"null",
    "a control character in a name": b'{"events\n":[]}',
}


@pytest.mark.parametrize("name", CONTENTS)
def test_a_body_that_is_no_json_object_is_refused(api: Api, name: str) -> None:
    refused(api, api.call("POST", "/streams/Cat-1/events", CONTENTS[name]), "body")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cut off", "line 1 column 12"),
        ("a name twice, deep inside", "one object has a name twice: 'a'"),
        ("NaN", "NaN is not JSON"),
        ("digits without end", "4300 digits"),
    ],
)
def test_a_body_that_is_no_json_is_refused_with_what_is_wrong_and_where(
    api: Api, name: str, said: str
) -> None:
    answer = api.call("POST", "/streams/Cat-1/events", CONTENTS[name])
    assert said in answer.json["rule"]
    assert "sys." not in answer.text


def test_a_name_that_comes_twice_is_cut_in_the_answer(api: Api) -> None:
    body = b'{"%(name)s":1,"%(name)s":2}' % {b"name": b"x" * 100_000}
    assert len(api.call("POST", "/streams/Cat-1/events", body).text) < 2_000


def nested(levels: int) -> bytes:
    """A request whose arrays and objects nest so deep; three of the levels are the request's own."""
    return b'{"events":[{"type":"A","data":' + b"[" * (levels - 3) + b"]" * (levels - 3) + b"}]}"


def test_json_nests_100_levels_and_no_more(api: Api) -> None:
    assert Api().call("POST", "/streams/Cat-1/events", nested(100)).status == 201
    refused(api, api.call("POST", "/streams/Cat-1/events", nested(101)), "body")


def test_many_brackets_are_not_deep_ones() -> None:
    body = {"events": [{"type": "A", "data": [[n] for n in range(1000)]}]}
    assert Api().call("POST", "/streams/Cat-1/events", body).status == 201


def test_a_body_that_is_not_utf_8_is_refused(api: Api) -> None:
    event = gateway_event("POST", "/streams/Cat-1/events", b'{"events":[{"type":"\xff"}]}')
    event |= {"body": base64.b64encode(b'{"events":[{"type":"\xff"}]}').decode(), "isBase64Encoded": True}
    refused(api, api.send(event), "body")


def test_a_body_that_is_not_the_base64_it_was_announced_as_is_refused(api: Api) -> None:
    event = gateway_event("POST", "/streams/Cat-1/events", b"{}") | {"isBase64Encoded": True}
    refused(api, api.send(event), "body")


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Content-Type", "text/plain"),
        ("Content-Type", "application/jsonlines"),
        ("Content-Type", "application/json; charset=utf-16"),
        ("Content-Encoding", "gzip"),
    ],
)
def test_a_body_of_another_kind_is_415(api: Api, header: str, value: str) -> None:
    body = {"events": [EVENT]}
    answer = api.call("POST", "/streams/Cat-1/events", body, headers={header: value})
    refused(api, answer, header, status=415)


@pytest.mark.parametrize(
    "media",
    [
        "application/json",
        "Application/JSON; charset=UTF-8",
        'application/json;charset="utf-8"',
        "application/x+json",
    ],
)
def test_json_by_any_of_its_names_is_taken(media: str) -> None:
    headers = {"Content-Type": media}
    assert Api().call("POST", "/streams/Cat-1/events", {"events": [EVENT]}, headers=headers).status == 201


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("If-Match", "1"),
        ("If-Match", '"one"'),
        ("If-Match", '"-1"'),
        ("If-Match", '"9999999999"'),
        ("If-Match", 'W/"1"'),
        ("If-Match", '"1", "2"'),
        ("If-Match", ""),
        ("If-Match", '"1.0123456789abcdef0123456789abcdef.1.1.1.1"'),
        ("If-None-Match", '"1"'),
        ("If-None-Match", ""),
        ("Idempotency-Key", ""),
        ("Idempotency-Key", "x" * 256),
        ("Idempotency-Key", "with space"),
        ("Idempotency-Key", "ключ"),
    ],
)
def test_a_malformed_header_is_refused(api: Api, header: str, value: str) -> None:
    answer = api.call("POST", "/streams/Cat-1/events", {"events": [EVENT]}, headers={header: value})
    refused(api, answer, header)


@pytest.mark.parametrize(
    ("headers", "expected", "field"),
    [
        ({"If-Match": '"1"'}, 1, "expected"),
        ({"If-None-Match": "*"}, "any", "expected"),
        ({"If-Match": '"1"', "If-None-Match": "*"}, None, "If-None-Match"),
    ],
)
def test_an_expectation_stands_in_one_place(
    api: Api, headers: dict[str, str], expected: object, field: str
) -> None:
    body = {"events": [EVENT]} | ({} if expected is None else {"expected": expected})
    refused(api, api.call("POST", "/streams/Cat-1/events", body, headers=headers), field)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        ("/streams/Cat-1/events", "from=-1", "from"),
        ("/streams/Cat-1/events", "from=", "from"),
        ("/streams/Cat-1/events", "from=one", "from"),
        ("/streams/Cat-1/events", "from=1.0", "from"),
        ("/streams/Cat-1/events", "from=01", "from"),
        ("/streams/Cat-1/events", "from=%D9%A1", "from"),
        ("/streams/Cat-1/events", "from=2147483647", "from"),
        ("/streams/Cat-1/events", f"from={'9' * 5000}", "from"),
        ("/streams/Cat-1/events", "from=1&from=2", "from"),
        ("/streams/Cat-1/events", "limit=0", "limit"),
        ("/streams/Cat-1/events", "limit=10001", "limit"),
        ("/streams/Cat-1/events", "limit=1e3", "limit"),
        ("/streams/Cat-1/events", "direction=back", "direction"),
        ("/streams/Cat-1/events", "direction=", "direction"),
        ("/streams/Cat-1/events", "Limit=1", "Limit"),
        ("/streams/Cat-1/events", "page=1", "page"),
        ("/streams/Cat-1/events", "&".join(["limit=1"] * 101), "query"),
        ("/streams/Cat-1/events", "from=%ff", "query"),
        ("/streams/Cat-1", "events=yes", "events"),
        ("/streams/Cat-1", "limit=1", "limit"),
        ("/health", "deep=true", "deep"),
        ("/feed", "from=0", "from"),
        ("/feed/0", "from=1@", "from"),
        ("/feed/0", "from=0@1048576", "from"),
        ("/feed/0", "from=99999999999999999999", "from"),
        ("/feed/0", "from=end", "from"),
        ("/feed/0", "limit=0", "limit"),
        ("/feed/0", "data=1", "data"),
        ("/feed/0", "wait=21", "wait"),
        ("/feed/0", "wait=-1", "wait"),
        ("/feed/0", "category=", "category"),
        ("/feed/0", "category=Cat-1", "category"),
        ("/feed/0", "category=Cat&category=%24", "category"),
        ("/feed/-1", "", "partition"),
        ("/feed/one", "", "partition"),
        ("/feed/00", "", "partition"),
        ("/feed/9999999999", "", "partition"),
    ],
)
def test_a_malformed_parameter_is_refused(api: Api, path: str, query: str, field: str) -> None:
    refused(api, api.call("GET", path, query=query), field)


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/streams/Cat-1/prune", {}, "before"),
        ("/streams/Cat-1/prune", {"before": None}, "before"),
        ("/streams/Cat-1/prune", {"before": -1}, "before"),
        ("/streams/Cat-1/prune", {"before": "1"}, "before"),
        ("/streams/Cat-1/prune", {"before": True}, "before"),
        ("/streams/Cat-1/prune", {"before": 2**31}, "before"),
        ("/streams/Cat-1/prune", {"before": 1, "after": 0}, "after"),
        ("/streams/Cat-1/prune", [1], "body"),
        ("/bodies", {}, "sha256"),
        ("/bodies", {"sha256": DIGEST}, "bytes"),
        ("/bodies", {"sha256": "F" * 64, "bytes": 1}, "sha256"),
        ("/bodies", {"sha256": 1, "bytes": 1}, "sha256"),
        ("/bodies", {"sha256": DIGEST, "bytes": 0}, "bytes"),
        ("/bodies", {"sha256": DIGEST, "bytes": 5 * 1024**3 + 1}, "bytes"),
        ("/bodies", {"sha256": DIGEST, "bytes": 1, "key": "x"}, "key"),
    ],
)
def test_a_malformed_command_is_refused(api: Api, path: str, body: object, field: str) -> None:
    refused(api, api.call("POST", path, body), field)


@pytest.mark.parametrize("query", ["leaveOpen=1", "leaveOpen=TRUE", "leaveOpen=true&leaveOpen=true"])
def test_a_malformed_deletion_is_refused(api: Api, query: str) -> None:
    refused(api, api.call("DELETE", "/streams/Cat-1", query=query), "leaveOpen")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/streams/Cat-1"),
        ("GET", "/streams/Cat-1"),
        ("GET", "/streams/Cat-1/events"),
        ("GET", "/health"),
        ("GET", "/feed"),
        ("GET", "/feed/0"),
    ],
)
def test_a_body_where_none_has_a_meaning_is_refused(api: Api, method: str, path: str) -> None:
    refused(api, api.call(method, path, {"before": 1}), "body")


@pytest.mark.parametrize("path", ["/streams/Cat-1/events", "/streams/Cat-1/prune", "/bodies"])
def test_a_parameter_where_none_has_a_meaning_is_refused(api: Api, path: str) -> None:
    refused(api, api.call("POST", path, {"events": [EVENT]}, query="dryRun=true"), "dryRun")
