"""`POST /bodies`, and the URLs that S3 is asked to honour."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from urllib.parse import parse_qs, urlsplit

import pytest

from epochal.dynamo.clients import s3_client
from epochal.dynamo.lazy_clients import lazily
from epochal.dynamo.signed_urls import S3Links
from epochal.model.events import Claim
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
