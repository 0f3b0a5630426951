"""Errors of S3, KMS and other services to what they mean: missing, denied, unavailable, misconfigured, malformed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,  # noqa: A004  botocore's own name
    HTTPClientError,
)

from epochal.dynamo.protocol.denials import advised
from epochal.errors import EpochalError, InvalidRequest, MissingBody, MissingBucket, Refused, Unavailable


class Codes(NamedTuple):
    """What the codes of a service's errors mean. Internal errors tell by their status that it is unavailable."""

    denied: frozenset[str]
    busy: frozenset[str]
    missing: frozenset[str] = frozenset()


S3: Final = Codes(
    missing=frozenset({"NoSuchKey", "NotFound", "404"}),
    denied=frozenset(
        {
            "AccessDenied",
            "403",
            "InvalidAccessKeyId",
            "InvalidClientTokenId",
            "SignatureDoesNotMatch",
            "ExpiredToken",
        }
    ),
    busy=frozenset({"SlowDown", "RequestTimeout", "Throttling", "TooManyRequestsException"}),
)


@contextmanager
def translated(action: str, key: str = "", codes: Codes = S3) -> Iterator[None]:
    """Raise what an error of the service means in its place: `MissingBody` of `key`, `MissingBucket`, `Refused`,
    `Unavailable`, `Misconfigured`, and for all else `InvalidRequest`.
    """
    try:
        yield
    except ClientError as error:
        raise _meaning(action, key, codes, error) from error
    except BotoCoreError as error:
        from epochal.dynamo.aws_configuration import cause_of, meaning_of  # noqa: PLC0415  rarely needed

        if isinstance(error, ConnectionError | HTTPClientError):
            raise Unavailable(cause_of(error)) from error
        raise meaning_of(error) from error


def check_stored(answer: Mapping[str, Any]) -> None:
    """Raise `Unavailable` where something between said that an object is stored: S3 says its ETag with it."""
    if "ETag" not in answer:
        raise Unavailable("an answer that is not S3's")


def _meaning(action: str, key: str, codes: Codes, error: ClientError) -> EpochalError:
    code = error.response["Error"]["Code"]
    if code == "NoSuchBucket":
        return MissingBucket(str(error.response["Error"].get("BucketName", "of the settings")))
    message = error.response["Error"].get("Message", "")
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if code in codes.missing:
        return MissingBody(key)
    if code in codes.denied:
        return Refused(action, advised(code, message))
    if code in codes.busy or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Unavailable(code)
    return InvalidRequest(action, code, message)
