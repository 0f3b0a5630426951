"""`POST /bodies`, and the URLs that S3 is asked to honour."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from urllib.parse import parse_qs, urlsplit

import pytest

from epochal.dynamo.clients import s3_client
from epochal.dynamo.lazy_clients import lazily
from epochal.dynamo.s3_links import S3Links
from epochal.model.bodies import Claim
from epochal.settings import UPLOAD_BYTES
from tests.support.api import Api

CONTENT = b"a large body"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
CLAIM = Claim(key=f"bodies/{DIGEST}", sha256=DIGEST, size=len(CONTENT))


def test_an_upload_is_answered_with_a_url_its_headers_and_the_claim() -> None:
    answer = Api().call("POST", "/bodies", {"sha256": DIGEST, "bytes": len(CONTENT)})
    assert answer.status == 201
    assert answer.json == {
        "url": f"https://bucket.example/uploads/{DIGEST}?expires=900",
        "method": "PUT",
        "headers": {"content-length": str(len(CONTENT))},
        "expiresIn": 900,
        "claim": {"key": CLAIM.key, "sha256": DIGEST, "bytes": len(CONTENT)},
    }


def test_the_claim_of_an_upload_can_be_appended_as_it_is() -> None:
    api = Api()
    claim = api.call("POST", "/bodies", {"sha256": DIGEST, "bytes": len(CONTENT)}).json["claim"]
    api.bodies.objects[f"uploads/{DIGEST}"] = CONTENT
    body = {"events": [{"type": "Big", "claim": claim}]}
    assert api.call("POST", "/streams/Cat-1/events", body).status == 201
    del api.bodies.objects[f"uploads/{DIGEST}"]
    (event,) = api.call("GET", "/streams/Cat-1/events").json["events"]
    assert event["dataUrl"]["sha256"] == DIGEST
    assert api.bodies.objects == {claim["key"]: CONTENT}


def claimed(api: Api) -> dict[str, object]:
    """The claim of a body that has been uploaded."""
    claim: dict[str, object] = api.call("POST", "/bodies", {"sha256": DIGEST, "bytes": len(CONTENT)}).json[
        "claim"
    ]
    api.bodies.objects[f"uploads/{DIGEST}"] = CONTENT
    return claim


def test_a_tagged_event_takes_the_claim_of_an_upload_for_its_data_and_its_repeat_is_known() -> None:
    api = Api()
    event = {
        "id": "1f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a11",
        "type": "Big",
        "claim": claimed(api),
        "meta": {"by": "ann"},
        "tags": ["a:1", "b:1"],
    }
    made = api.call("POST", "/events", {"events": [event]})
    assert made.status == 201
    assert api.bodies.objects.pop(f"uploads/{DIGEST}") == CONTENT
    repeated = api.call("POST", "/events", {"events": [event]})
    assert (repeated.status, repeated.json["replayed"]) == (201, True)
    assert api.bodies.objects == {f"bodies/{DIGEST}": CONTENT}
    for tag in ("a:1", "b:1"):
        (shown,) = api.call("POST", "/events/query", {"query": {"items": [{"tags": [tag]}]}}).json["events"]
        assert (shown["dataUrl"]["sha256"], shown["dataUrl"]["bytes"]) == (DIGEST, len(CONTENT))
        assert (shown["meta"], "data" in shown, "data64" in shown) == ({"by": "ann"}, False, False)
    other = {name: value for name, value in event.items() if name != "claim"} | {"data64": "YQ=="}
    assert api.call("POST", "/events", {"events": [other]}).json["field"] == "events"


def test_a_claim_is_part_of_a_conditional_append_like_any_body() -> None:
    api = Api()
    event = {"type": "Big", "claim": claimed(api), "tags": ["a:1"]}
    fail_if = {"items": [{"tags": ["a:1"]}]}
    first = api.call("POST", "/events", {"events": [event], "failIf": fail_if})
    assert first.status == 201
    refused = api.call("POST", "/events", {"events": [event], "failIf": fail_if})
    assert (refused.status, refused.problem) == (409, "condition-failed")
    assert refused.json["events"][0]["dataUrl"]["sha256"] == DIGEST
    body = {"events": [event], "failIf": fail_if, "after": first.json["position"]}
    assert api.call("POST", "/events", body).status == 201


KEY = f"bodies/{DIGEST}"
SIZE = len(CONTENT)
OF_NO_USE = {
    "text": ("x", "events[0].claim"),
    "without a hash": ({"key": KEY, "bytes": SIZE}, "events[0].claim.sha256"),
    "of a hash that is none": ({"key": KEY, "sha256": "x", "bytes": SIZE}, "events[0].claim.sha256"),
    "of somebody else's object": (
        {"key": "states/secret", "sha256": DIGEST, "bytes": SIZE},
        "events[0].claim.key",
    ),
    "of what expires": ({"key": f"uploads/{DIGEST}", "sha256": DIGEST, "bytes": SIZE}, "events[0].claim.key"),
    "of nothing": ({"key": KEY, "sha256": DIGEST, "bytes": 0}, "events[0].claim.bytes"),
    "larger than any object": (
        {"key": KEY, "sha256": DIGEST, "bytes": 5 * 1024**3 + 1},
        "events[0].claim.bytes",
    ),
    "of another size": ({"key": KEY, "sha256": DIGEST, "bytes": SIZE + 1}, "events.claim"),
    "of another body": ({"key": f"bodies/{'0' * 64}", "sha256": "0" * 64, "bytes": SIZE}, "events.claim"),
}


@pytest.mark.parametrize("path", ["/streams/Cat-1/events", "/events"])
@pytest.mark.parametrize("name", OF_NO_USE)
def test_a_claim_that_is_malformed_forged_or_missing_is_refused_and_nothing_is_written(
    path: str, name: str
) -> None:
    api = Api()
    claimed(api)
    claim, field = OF_NO_USE[name]
    answer = api.call("POST", path, {"events": [{"type": "Big", "claim": claim}]})
    assert (answer.status, answer.problem, answer.json["field"]) == (400, "invalid-input", field)
    assert api.stored == []
    assert api.bodies.objects == {f"uploads/{DIGEST}": CONTENT}


@pytest.mark.parametrize("path", ["/streams/Cat-1/events", "/events"])
@pytest.mark.parametrize("other", [{"data": 1}, {"data64": ""}])
def test_a_claim_beside_another_body_is_refused(path: str, other: dict[str, object]) -> None:
    api = Api()
    answer = api.call("POST", path, {"events": [{"type": "Big", "claim": claimed(api), **other}]})
    assert (answer.status, answer.json["field"]) == (400, "events[0].claim")
    assert api.stored == []


def test_sekibans_tables_refer_to_no_bucket_so_they_take_no_claim() -> None:
    api = Api()
    answer = api.call("POST", "/dcb/events", {"events": [{"type": "Big", "claim": claimed(api)}]})
    assert (answer.status, answer.json["field"]) == (400, "events[0].claim")
    assert api.stored == []


@pytest.mark.parametrize("size", [UPLOAD_BYTES + 1, 5 * 1024**3])
def test_an_upload_that_is_larger_than_the_deployment_takes_is_refused_before_it_is_signed(size: int) -> None:
    answer = Api().call("POST", "/bodies", {"sha256": DIGEST, "bytes": size})
    assert (answer.status, answer.problem) == (413, "too-large")
    assert (answer.json["field"], answer.json["limit"]) == ("bytes", UPLOAD_BYTES)
    assert Api().call("POST", "/bodies", {"sha256": DIGEST, "bytes": UPLOAD_BYTES}).status == 201


@pytest.mark.parametrize("region", ["us-east-1", "eu-central-1"])
def test_an_upload_is_signed_for_one_key_one_length_one_hash_and_one_type_and_to_be_the_first(
    region: str,
) -> None:
    url, headers = S3Links(s3_client(region=region), "a-bucket").upload(CLAIM, 60)
    assert headers == {
        "content-length": str(len(CONTENT)),
        "content-type": "application/octet-stream",
        "if-none-match": "*",
        "x-amz-checksum-sha256": b64encode(hashlib.sha256(CONTENT).digest()).decode(),
    }
    query = parse_qs(urlsplit(url).query)
    assert urlsplit(url).path.endswith(f"/uploads/{DIGEST}")
    assert query["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]
    assert set(query["X-Amz-SignedHeaders"][0].split(";")) == {"host", *headers}
    assert query["X-Amz-Expires"] == ["60"]


@pytest.mark.parametrize("region", ["us-east-1", "eu-central-1"])
def test_a_download_is_signed_for_one_key_and_comes_as_bytes_to_be_saved(region: str) -> None:
    url = S3Links(s3_client(region=region), "a-bucket").download(CLAIM, 60)
    query = parse_qs(urlsplit(url).query)
    assert urlsplit(url).path.endswith(f"/bodies/{DIGEST}")
    assert query["X-Amz-SignedHeaders"] == ["host"]
    assert query["X-Amz-Expires"] == ["60"]
    assert query["response-content-type"] == ["application/octet-stream"]
    assert query["response-content-disposition"] == ["attachment"]
    assert query["response-content-encoding"] == ["identity"]


def test_a_lazy_client_is_made_once_and_only_when_used() -> None:
    made: list[str] = []

    def make() -> str:
        made.append("client")
        return "client"

    stand_in = lazily(make)
    assert made == []
    assert (stand_in.upper(), stand_in.title()) == ("CLIENT", "Client")
    assert made == ["client"]
