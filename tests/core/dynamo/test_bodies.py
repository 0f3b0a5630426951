"""What S3 answers, and what that means for bodies. Requests go to boto's own stubber, which checks them."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError, EndpointConnectionError
from botocore.response import StreamingBody
from botocore.stub import Stubber
from moto import mock_aws

from epochal.dynamo.clients import s3_client
from epochal.dynamo.s3_bodies import S3Bodies
from epochal.errors import (
    CorruptData,
    DeniedBody,
    EpochalError,
    InvalidRequest,
    MissingBody,
    MissingBucket,
    Refused,
    Unavailable,
)
from epochal.model.bodies import Claim

CONTENT = b"content"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
CLAIM = Claim(key=f"bodies/{DIGEST}", sha256=DIGEST, size=len(CONTENT))
WHERE: dict[str, Any] = {"Bucket": "bucket", "Key": CLAIM.key}
UPLOADED: dict[str, Any] = {"Bucket": "bucket", "Key": f"uploads/{DIGEST}"}
COPYING: dict[str, Any] = {
    **WHERE,
    "CopySource": UPLOADED,
    "MetadataDirective": "REPLACE",
    "ContentType": "application/octet-stream",
}

CALLS: dict[str, Callable[[S3Bodies], object]] = {
    "put_object": lambda bodies: bodies.put(CLAIM, CONTENT),
    "get_object": lambda bodies: bodies.get(CLAIM),
    "head_object": lambda bodies: bodies.keep(CLAIM),
}


@pytest.fixture
def s3() -> Iterator[Stubber]:
    with Stubber(s3_client(region="eu-central-1")) as stubber:
        yield stubber


def bodies(s3: Stubber) -> S3Bodies:
    return S3Bodies(s3.client, "bucket")


def body(content: bytes) -> StreamingBody:
    return StreamingBody(io.BytesIO(content), len(content))


def test_a_body_is_put_under_its_key(s3: Stubber) -> None:
    asked = {**WHERE, "Body": CONTENT, "ContentType": "application/octet-stream"}
    s3.add_response("put_object", {"ETag": "e"}, asked)
    bodies(s3).put(CLAIM, CONTENT)
    s3.assert_no_pending_responses()


def test_what_something_in_between_says_of_a_body_is_not_that_it_is_stored(s3: Stubber) -> None:
    s3.add_response("put_object", {})
    with pytest.raises(Unavailable, match="not S3's"):
        bodies(s3).put(CLAIM, CONTENT)
    s3.add_client_error("head_object", "404", http_status_code=404)
    s3.add_response("head_object", {"ContentLength": len(CONTENT)}, UPLOADED)
    s3.add_response("copy_object", {})
    with pytest.raises(Unavailable, match="not S3's"):
        bodies(s3).keep(CLAIM)


def test_a_body_is_what_was_claimed(s3: Stubber) -> None:
    s3.add_response("get_object", {"Body": body(CONTENT)}, WHERE)
    assert bodies(s3).get(CLAIM) == CONTENT
    s3.add_response("get_object", {"Body": body(b"another")}, WHERE)
    with pytest.raises(CorruptData):
        bodies(s3).get(CLAIM)


def test_an_object_of_the_claimed_size_is_kept_by_one_request(s3: Stubber) -> None:
    s3.add_response("head_object", {"ContentLength": len(CONTENT)}, WHERE)
    assert bodies(s3).keep(CLAIM)
    s3.assert_no_pending_responses()


def test_an_object_of_another_size_is_not_the_one_that_was_claimed(s3: Stubber) -> None:
    for where in (WHERE, UPLOADED):
        s3.add_response("head_object", {"ContentLength": len(CONTENT) + 1}, where)
    assert not bodies(s3).keep(CLAIM)
    s3.assert_no_pending_responses()


def test_a_key_of_somebodys_own_has_no_upload(s3: Stubber) -> None:
    own = replace(CLAIM, key="kept/1")
    s3.add_client_error("head_object", "404", http_status_code=404, expected_params={**WHERE, "Key": own.key})
    assert not bodies(s3).keep(own)
    s3.assert_no_pending_responses()


@pytest.mark.parametrize("code", ["404", "403"])
def test_an_object_that_is_missing_is_denied_to_who_may_not_list(s3: Stubber, code: str) -> None:
    for where in (WHERE, UPLOADED):
        s3.add_client_error("head_object", code, http_status_code=int(code), expected_params=where)
    assert bodies(s3).keep(CLAIM) is False


def test_an_upload_is_copied_to_where_bodies_lie_with_nothing_but_its_content(s3: Stubber) -> None:
    s3.add_client_error("head_object", "404", http_status_code=404)
    s3.add_response("head_object", {"ContentLength": len(CONTENT)}, UPLOADED)
    s3.add_response("copy_object", {"CopyObjectResult": {"ETag": "e"}}, COPYING)
    assert bodies(s3).keep(CLAIM)
    s3.assert_no_pending_responses()


def test_an_upload_that_expires_while_it_is_claimed_was_not_there(s3: Stubber) -> None:
    s3.add_client_error("head_object", "404", http_status_code=404)
    s3.add_response("head_object", {"ContentLength": len(CONTENT)}, UPLOADED)
    s3.add_client_error("copy_object", "NoSuchKey", http_status_code=404)
    assert not bodies(s3).keep(CLAIM)


@pytest.mark.parametrize(
    ("code", "status", "meaning"), [("SlowDown", 503, Unavailable), ("AccessDenied", 403, Refused)]
)
def test_an_upload_that_cannot_be_copied_is_not_taken_for_kept(
    s3: Stubber, code: str, status: int, meaning: type[EpochalError]
) -> None:
    s3.add_client_error("head_object", "404", http_status_code=404)
    s3.add_response("head_object", {"ContentLength": len(CONTENT)}, UPLOADED)
    s3.add_client_error("copy_object", code, http_status_code=status)
    with pytest.raises(meaning):
        bodies(s3).keep(CLAIM)


@pytest.mark.slow
@mock_aws
def test_what_headers_an_upload_was_given_nobody_is_shown() -> None:
    client = s3_client(region="us-east-1")
    client.create_bucket(Bucket="bucket")
    client.put_object(
        **{**UPLOADED, "Body": CONTENT, "ContentEncoding": "gzip", "ContentType": "text/html"},
        CacheControl="max-age=31536000",
        ContentDisposition="inline",
        Metadata={"by": "somebody"},
    )
    assert S3Bodies(client, "bucket").keep(CLAIM)
    kept = client.head_object(**WHERE)
    assert kept["ContentType"] == "application/octet-stream"
    assert not {"ContentEncoding", "CacheControl", "ContentDisposition"} & kept.keys()
    assert kept["Metadata"] == {}
    assert S3Bodies(client, "bucket").get(CLAIM) == CONTENT


@pytest.mark.parametrize(
    ("key", "code", "meaning"),
    [
        ("exports/1", "AccessDenied", DeniedBody),
        ("exports/1", "ExpiredToken", Refused),
        (CLAIM.key, "AccessDenied", Refused),
    ],
)
def test_only_a_denial_of_an_object_outside_of_where_bodies_lie_is_of_that_object_alone(
    s3: Stubber, key: str, code: str, meaning: type[EpochalError]
) -> None:
    s3.add_client_error("get_object", code, http_status_code=403)
    with pytest.raises(Refused) as told:
        S3Bodies(s3.client, "bucket").get(replace(CLAIM, key=key))
    assert type(told.value) is meaning


@pytest.mark.parametrize(
    ("call", "code", "status", "meaning"),
    [
        ("get_object", "NoSuchKey", 404, MissingBody),
        ("get_object", "NoSuchBucket", 404, MissingBucket),
        ("put_object", "NoSuchBucket", 404, MissingBucket),
        ("get_object", "AccessDenied", 403, Refused),
        ("put_object", "AccessDenied", 403, Refused),
        ("put_object", "SlowDown", 503, Unavailable),
        ("get_object", "InternalError", 500, Unavailable),
        ("head_object", "503", 503, Unavailable),
    ],
)
def test_an_error_of_s3_is_told_by_its_meaning(
    s3: Stubber, call: str, code: str, status: int, meaning: type[EpochalError]
) -> None:
    s3.add_client_error(call, code, http_status_code=status)
    with pytest.raises(meaning):
        CALLS[call](bodies(s3))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "error", [EndpointConnectionError(endpoint_url="x"), ConnectTimeoutError(endpoint_url="x")]
)
def test_a_bucket_out_of_reach_is_unavailable(
    s3: Stubber, call: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(s3.client, call, fail)
    with pytest.raises(Unavailable):
        CALLS[call](bodies(s3))


def test_an_error_that_nobody_foresaw_keeps_its_code(s3: Stubber) -> None:
    s3.add_client_error("get_object", "NoSuchUpload", http_status_code=404)
    with pytest.raises(InvalidRequest, match="GetObject was refused as malformed: NoSuchUpload"):
        bodies(s3).get(CLAIM)
