"""Bodies in S3, under their content's hash: written before the append that claims them, never overwritten.

S3's errors are told apart as DynamoDB's are: missing, denied, unavailable; anything else is raised as it is. A body
written for an append that then failed does no harm: nothing claims it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError, ConnectionError, HTTPClientError  # noqa: A004  botocore's own name

from epochal.errors import EpochalError, MissingBody, Refused, Unavailable
from epochal.model.events import Claim
from epochal.store.bodies import verified

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

_MISSING: Final = frozenset({"NoSuchKey", "NotFound", "404"})
_DENIED: Final = frozenset(
    {"AccessDenied", "403", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken"}
)
_THROTTLED: Final = frozenset({"SlowDown", "RequestTimeout", "Throttling", "TooManyRequestsException"})


class S3Bodies:
    """The bucket of bodies too large for an item. Implements `store.bodies.Bodies`."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, claim: Claim, content: bytes) -> None:
        """Store `content` under the claim's key; doing so again changes nothing."""
        with _told("PutObject", claim):
            self._client.put_object(Bucket=self._bucket, Key=claim.key, Body=content)

    def get(self, claim: Claim) -> bytes:
        """The content a claim names.

        Raises:
            MissingBody: there is no such object.
            CorruptData: the object is not what was claimed.
        """
        with _told("GetObject", claim):
            content = self._client.get_object(Bucket=self._bucket, Key=claim.key)["Body"].read()
        return verified(claim, content)

    def has(self, claim: Claim) -> bool:
        """Whether an object of the claimed size is there."""
        try:
            with _told("HeadObject", claim):
                head = self._client.head_object(Bucket=self._bucket, Key=claim.key)
        except (MissingBody, Refused):
            # Who may not list a bucket is not told what it lacks: S3 denies an object that is not there.
            return False
        return head["ContentLength"] == claim.size


@contextmanager
def _told(action: str, claim: Claim) -> Iterator[None]:
    """Raise what an error of S3 means instead of it."""
    try:
        yield
    except ClientError as error:
        meaning = _meaning(action, claim, error)
        if meaning is None:
            raise
        raise meaning from error
    except (ConnectionError, HTTPClientError) as error:
        raise Unavailable(type(error).__name__) from error


def _meaning(action: str, claim: Claim, error: ClientError) -> EpochalError | None:
    code = error.response["Error"]["Code"]
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if code in _MISSING:
        return MissingBody(claim.key)
    if code in _DENIED:
        return Refused(action, error.response["Error"].get("Message", code))
    if code in _THROTTLED or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Unavailable(code)
    return None
