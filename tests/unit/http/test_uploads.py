"""`POST /bodies`, and the URLs that S3 is asked to honour."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from urllib.parse import parse_qs, urlsplit

import pytest

from epochal.dynamo.clients import s3_client
from epochal.dynamo.lazy import lazily
from epochal.dynamo.links import S3Links
from epochal.model.events import Claim
from tests.support.api import Api

CONTENT = b"a large body"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
CLAIM = Claim(key=f"bodies/{DIGEST}", sha256=DIGEST, size=len(CONTENT))


def test_an_upload_is_answered_with_a_url_its_headers_and_the_claim() -> None:
    answer = Api().call("POST", "/bodies", {"sha256": DIGEST, "bytes": len(CONTENT)})
    assert answer.status == 201
    assert answer.json == {
        "url": f"https://bucket.example/{CLAIM.key}?expires=900",
        "method": "PUT",
        "headers": {"content-length": str(len(CONTENT))},
        "expiresIn": 900,
        "claim": {"key": CLAIM.key, "sha256": DIGEST, "bytes": len(CONTENT)},
    }


def test_the_claim_of_an_upload_can_be_appended_as_it_is() -> None:
    api = Api()
    claim = api.call("POST", "/bodies", {"sha256": DIGEST, "bytes": len(CONTENT)}).json["claim"]
    api.bodies.objects[claim["key"]] = CONTENT
    body = {"events": [{"type": "Big", "claim": claim}]}
    assert api.call("POST", "/streams/Cat-1/events", body).status == 201


@pytest.mark.parametrize("region", ["us-east-1", "eu-central-1"])
def test_an_upload_is_signed_for_one_key_one_length_and_one_hash(region: str) -> None:
    url, headers = S3Links(s3_client(region=region), "a-bucket").upload(CLAIM, 60)
    assert headers == {
        "content-length": str(len(CONTENT)),
        "x-amz-checksum-sha256": b64encode(hashlib.sha256(CONTENT).digest()).decode(),
    }
    query = parse_qs(urlsplit(url).query)
    assert urlsplit(url).path.endswith(f"/bodies/{DIGEST}")
    assert query["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]
    assert set(query["X-Amz-SignedHeaders"][0].split(";")) == {"host", *headers}
    assert query["X-Amz-Expires"] == ["60"]


@pytest.mark.parametrize("region", ["us-east-1", "eu-central-1"])
def test_a_download_is_signed_for_one_key(region: str) -> None:
    url = S3Links(s3_client(region=region), "a-bucket").download(CLAIM, 60)
    query = parse_qs(urlsplit(url).query)
    assert urlsplit(url).path.endswith(f"/bodies/{DIGEST}")
    assert query["X-Amz-SignedHeaders"] == ["host"]
    assert query["X-Amz-Expires"] == ["60"]


def test_a_lazy_client_is_made_once_and_only_when_used() -> None:
    made: list[str] = []

    def make() -> str:
        made.append("client")
        return "client"

    stand_in = lazily(make)
    assert made == []
    assert (stand_in.upper(), stand_in.title()) == ("CLIENT", "Client")
    assert made == ["client"]
