"""What S3 answers, and what that means for states of projections. Requests go to boto's own stubber."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError
from botocore.response import StreamingBody
from botocore.stub import Stubber

from epochal.dynamo.clients import s3_client
from epochal.dynamo.s3_objects import S3Objects
from epochal.errors import EpochalError, MissingBody, MissingBucket, Refused, Unavailable

KEY = "projections/Totals/00.bin"
WHERE = {"Bucket": "bucket", "Key": KEY}

CALLS: dict[str, Callable[[S3Objects], object]] = {
    "put_object": lambda objects: objects.put(KEY, io.BytesIO(b"state")),
    "get_object": lambda objects: objects.get(KEY),
    "delete_object": lambda objects: objects.delete(KEY),
    "list_objects_v2": lambda objects: list(objects.old_keys("projections/")),
}


@pytest.fixture
def s3() -> Iterator[Stubber]:
    with Stubber(s3_client(region="eu-central-1")) as stubber:
        yield stubber


def objects(s3: Stubber) -> S3Objects:
    return S3Objects(s3.client, "bucket")


@pytest.mark.slow
def test_a_state_is_sent_as_the_file_it_is_not_as_bytes(s3: Stubber) -> None:
    content = io.BytesIO(b"state")
    s3.add_response("put_object", {"ETag": "e"}, {**WHERE, "Body": content})

    objects(s3).put(KEY, content)

    s3.assert_no_pending_responses()


def test_what_something_in_between_says_of_a_state_is_not_that_it_is_stored(s3: Stubber) -> None:
    s3.add_response("put_object", {})
    with pytest.raises(Unavailable, match="not S3's"):
        objects(s3).put(KEY, io.BytesIO(b"state"))


def test_a_state_comes_in_chunks(s3: Stubber) -> None:
    content = bytes(600_000)
    s3.add_response("get_object", {"Body": StreamingBody(io.BytesIO(content), len(content))}, WHERE)

    chunks = list(objects(s3).get(KEY))

    assert len(chunks) == 3
    assert b"".join(chunks) == content


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("code", "status", "meaning"),
    [
        ("NoSuchKey", 404, MissingBody),
        ("NoSuchBucket", 404, MissingBucket),
        ("AccessDenied", 403, Refused),
        ("SlowDown", 503, Unavailable),
        ("RequestTimeout", 400, Unavailable),
        ("ThrottledException", 400, Unavailable),
        ("TooManyRequests", 429, Unavailable),
        ("InternalError", 500, Unavailable),
    ],
)
def test_an_error_is_raised_as_what_it_means(
    s3: Stubber, call: str, code: str, status: int, meaning: type[EpochalError]
) -> None:
    s3.add_client_error(call, code, http_status_code=status)

    with pytest.raises(meaning):
        CALLS[call](objects(s3))


@pytest.mark.parametrize("call", CALLS)
def test_a_bucket_that_cannot_be_reached_is_unavailable(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client = s3_client(region="eu-central-1")

    def unreachable(*_: object) -> None:
        raise EndpointConnectionError(endpoint_url="https://nowhere")

    monkeypatch.setattr(client, "_make_api_call", unreachable)
    with pytest.raises(Unavailable):
        CALLS[call](S3Objects(client, "bucket"))


class Broken(io.BytesIO):
    """A connection that ends in the middle."""

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell():
            raise ReadTimeoutError(endpoint_url="https://somewhere")
        return super().read(size)


def test_a_connection_that_breaks_in_the_middle_of_a_state_is_unavailable(s3: Stubber) -> None:
    s3.add_response("get_object", {"Body": StreamingBody(Broken(bytes(600_000)), 600_000)}, WHERE)
    chunks = objects(s3).get(KEY)
    next(chunks)

    with pytest.raises(Unavailable):
        next(chunks)


def test_only_what_is_older_than_a_day_is_old(s3: Stubber) -> None:
    now = datetime.now(UTC)
    ages = {"young": timedelta(hours=23), "old": timedelta(hours=25)}
    listed = [{"Key": key, "LastModified": now - age} for key, age in ages.items()]
    s3.add_response("list_objects_v2", {"Contents": listed}, {"Bucket": "bucket", "Prefix": "projections/"})

    assert list(objects(s3).old_keys("projections/")) == ["old"]
