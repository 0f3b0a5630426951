"""The HTTP API as it is deployed: through the gateway, signed, with what only a network shows."""

from __future__ import annotations

import hashlib
import json
import time
import urllib.request
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from epochal.contrib.local.deploy import LocalDeployment
from epochal.contrib.local.endpoint import KEY, SECRET

_numbers = count()


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


@dataclass(frozen=True, slots=True)
class Caller:
    """Signs and sends requests to one deployment."""

    deployment: LocalDeployment

    def __call__(
        self, method: str, path: str, body: object = None, *, signed: bool = True, **headers: str
    ) -> Answer:
        content = b"" if body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if content:
            named = {"Content-Type": "application/json", **named}
        request = AWSRequest(method, self.deployment.api_url + path, headers=named, data=content)
        if signed:
            region = self.deployment.endpoint.region
            SigV4Auth(Credentials(KEY, SECRET), "execute-api", region).add_auth(request)
        return send(method, request.url, content, dict(request.headers))


def send(method: str, url: str, content: bytes, headers: Mapping[str, str]) -> Answer:
    request = urllib.request.Request(url, content or None, dict(headers), method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return Answer(answer.status, answer.headers, answer.read())
    except HTTPError as error:
        with error:
            return Answer(error.code, error.headers, error.read())


@pytest.fixture
def call(deployment: LocalDeployment) -> Caller:
    return Caller(deployment)


@pytest.fixture
def stream() -> Iterator[str]:
    """A name that no other test uses."""
    return f"Http-{next(_numbers)}"


def test_what_is_appended_is_read_back_and_found_in_the_feed(call: Caller, stream: str) -> None:
    events = [{"type": "A", "data": {"n": 1.5, "text": "Zürich"}}, {"type": "B"}]
    appended = call("POST", f"/streams/{stream}/events", {"events": events})
    assert appended.status == 201, appended.content
    assert (appended.json["first"], appended.json["version"]) == (0, 2)
    page = call("GET", f"/streams/{stream}/events").json
    assert [(event["type"], event.get("data")) for event in page["events"]] == [
        ("A", {"n": 1.5, "text": "Zürich"}),
        ("B", None),
    ]
    assert ("B", 1) in found_in_feed(call, stream, "0", wait=20)


def found_in_feed(call: Caller, stream: str, start: str, *, wait: int) -> list[tuple[str, int]]:
    """The stream's items, waiting for them as a client would."""
    found: list[tuple[str, int]] = []
    for _ in range(20):
        page = call("GET", f"/feed/30000?from={start}&category=Http&wait={wait}").json
        found += [(item["type"], item["index"]) for item in page["items"] if item["stream"] == stream]
        if found:
            return found
        start = page["next"]
    return found


def test_etags_pass_through_the_gateway_both_ways(call: Caller, stream: str) -> None:
    first = call("POST", f"/streams/{stream}/events", {"events": [{"type": "A"}]})
    body = {"events": [{"type": "B"}]}
    assert call("POST", f"/streams/{stream}/events", body, If_Match=first.headers["ETag"]).status == 201
    stale = call("POST", f"/streams/{stream}/events", body, If_Match=first.headers["ETag"])
    assert (stale.status, stale.json["version"]) == (412, 2)
    state = call("GET", f"/streams/{stream}")
    assert state.headers["ETag"] == stale.headers["ETag"]
    again = call("GET", f"/streams/{stream}", If_None_Match=state.headers["ETag"])
    assert (again.status, again.content) == (304, b"")


def test_a_problem_passes_through_the_gateway_as_a_problem(call: Caller, stream: str) -> None:
    answer = call("POST", f"/streams/{stream}/events", {"events": []}, X_Correlation_Id="it-is-me")
    assert answer.status == 400
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert (answer.json["field"], answer.json["instance"]) == ("events", "urn:epochal:request:it-is-me")


@pytest.mark.parametrize("character", "-_.:~@+=")
def test_every_character_of_a_name_passes_encoded_or_not(call: Caller, stream: str, character: str) -> None:
    name = f"{stream}{character}x"
    body = {"events": [{"type": "A"}]}
    assert call("POST", f"/streams/{quote(name, safe='')}/events", body).status == 201
    assert call("GET", f"/streams/{name}").json["stream"] == name


@pytest.mark.parametrize("name", ["%24AppendsIndex-0", "%2524x", "a%20b", "a%22b", "%C3%A4", "a%23b"])
def test_a_malformed_name_is_refused_however_it_is_encoded(call: Caller, name: str) -> None:
    answer = call("GET", f"/streams/{name}")
    assert (answer.status, answer.json["field"]) == (400, "stream")


def test_a_body_of_another_media_type_arrives_in_base64_and_is_read(call: Caller, stream: str) -> None:
    body = {"events": [{"type": "Größe"}]}
    media = "application/vnd.example+json"
    assert call("POST", f"/streams/{stream}/events", body, Content_Type=media).status == 201


def test_a_large_body_goes_up_and_comes_down_by_signed_urls(call: Caller, stream: str) -> None:
    content = json.dumps("x" * 8_000_000).encode()
    digest = hashlib.sha256(content).hexdigest()
    upload = call("POST", "/bodies", {"sha256": digest, "bytes": len(content)}).json
    body = {"events": [{"type": "Large", "claim": upload["claim"]}]}
    early = call("POST", f"/streams/{stream}/events", body)
    assert (early.status, early.json["type"]) == (400, "urn:epochal:problem:invalid-input")
    put = send(upload["method"], upload["url"], content, upload["headers"])
    assert put.status == 200, put.content
    assert call("POST", f"/streams/{stream}/events", body).status == 201
    (event,) = call("GET", f"/streams/{stream}/events").json["events"]
    assert event["dataUrl"]["bytes"] == len(content)
    assert send("GET", event["dataUrl"]["url"], b"", {}).content == content


def test_a_tagged_event_claims_a_body_that_was_uploaded(call: Caller, stream: str) -> None:
    content = f"of {stream}".encode()
    digest = hashlib.sha256(content).hexdigest()
    upload = call("POST", "/bodies", {"sha256": digest, "bytes": len(content)}).json
    tag = f"uploaded:{stream}"
    body = {"events": [{"type": "Large", "claim": upload["claim"], "tags": [tag]}]}
    assert call("POST", "/events", body).json["field"] == "events.claim"
    assert send("PUT", upload["url"], content, upload["headers"]).status == 200
    assert call("POST", "/events", body).status == 201
    (event,) = call("POST", "/events/query", {"query": {"items": [{"tags": [tag]}]}}).json["events"]
    assert send("GET", event["dataUrl"]["url"], b"", {}).content == content


def test_a_body_is_shown_without_the_headers_that_it_was_uploaded_with(call: Caller, stream: str) -> None:
    content = f"<script>{stream}</script>".encode()
    digest = hashlib.sha256(content).hexdigest()
    upload = call("POST", "/bodies", {"sha256": digest, "bytes": len(content)}).json
    # No signature forbids a header that it does not name.
    hostile = {
        "content-encoding": "gzip",
        "content-disposition": "inline",
        "cache-control": "max-age=31536000",
    }
    assert send("PUT", upload["url"], content, {**upload["headers"], **hostile}).status == 200
    assert send("PUT", upload["url"], content, upload["headers"]).status == 412
    body = {"events": [{"type": "Large", "claim": upload["claim"]}]}
    assert call("POST", f"/streams/{stream}/events", body).status == 201
    (event,) = call("GET", f"/streams/{stream}/events").json["events"]
    shown = send("GET", event["dataUrl"]["url"], b"", {})
    assert shown.content == content
    headers = {name.lower(): value for name, value in shown.headers.items()}
    assert headers["content-type"] == "application/octet-stream"
    assert headers["content-disposition"] == "attachment"
    assert headers.get("content-encoding", "identity") == "identity"
    assert "cache-control" not in headers


def test_nobody_waits_at_the_tail_for_longer_than_the_stage_lets_him(call: Caller) -> None:
    tails = {each["partition"]: each["tail"] for each in call("GET", "/feed").json["partitions"]}
    quiet = next(partition for partition in tails if partition >= 10_000)
    before = time.monotonic()
    page = call("GET", f"/feed/{quiet}?from={tails[quiet]}&wait=20").json
    assert (page["items"], page["atTail"]) == ([], True)
    assert time.monotonic() - before < 20


def test_a_body_too_large_for_an_item_goes_to_the_bucket_by_itself(call: Caller, stream: str) -> None:
    content = b"".join(hashlib.sha256(b"%d" % n).digest() for n in range(20_000))
    body = {"events": [{"type": "Noise", "data64": b64encode(content).decode()}]}
    assert call("POST", f"/streams/{stream}/events", body).status == 201
    (event,) = call("GET", f"/streams/{stream}/events").json["events"]
    assert send("GET", event["dataUrl"]["url"], b"", {}).content == content


def test_an_unsigned_request_is_refused_by_every_route(call: Caller, stream: str) -> None:
    for method, path in (
        ("POST", f"/streams/{stream}/events"),
        ("POST", "/bodies"),
        ("POST", f"/streams/{stream}/prune"),
        ("DELETE", f"/streams/{stream}"),
        ("GET", f"/streams/{stream}"),
        ("GET", f"/streams/{stream}/events"),
        ("GET", "/health"),
        ("GET", "/feed"),
        ("GET", "/feed/0"),
    ):
        assert call(method, path, {} if method == "POST" else None, signed=False).status == 403, path


def test_the_rest_of_the_routes_answer(call: Caller, stream: str) -> None:
    call("POST", f"/streams/{stream}/events", {"events": [{"type": "A"}, {"type": "B"}]})
    assert call("GET", "/health").json == {"status": "ok"}
    assert call("GET", "/feed").json["partitions"][0]["partition"] == 0
    assert call("POST", f"/streams/{stream}/prune", {"before": 1}).json["lowWater"] == 1
    assert call("DELETE", f"/streams/{stream}").json["done"] is True
    assert call("GET", f"/streams/{stream}").status == 410
    assert call("GET", f"/streams/{stream}/events").status == 410
