"""Errors of S3 and KMS to what they mean: missing, denied, unavailable; anything else is raised as it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final, NamedTuple

from botocore.exceptions import ClientError, ConnectionError, HTTPClientError  # noqa: A004  botocore's own name

from epochal.errors import EpochalError, MissingBody, Refused, Unavailable


class Codes(NamedTuple):
    """What the codes of a service's errors mean. Internal errors tell by their status that it is unavailable."""

    denied: frozenset[str]
    busy: frozenset[str]
    missing: frozenset[str] = frozenset()


S3: Final = Codes(
    missing=frozenset({"NoSuchKey", "NotFound", "404"}),
    denied=frozenset({"AccessDenied", "403", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken"}),
    busy=frozenset({"SlowDown", "RequestTimeout", "Throttling", "TooManyRequestsException"}),
)


@contextmanager
def translated(action: str, key: str = "", codes: Codes = S3) -> Iterator[None]:
    """Raise what an error of the service means in its place: `MissingBody` of `key`, `Refused` or `Unavailable`."""
    try:
        yield
    except ClientError as error:
        meaning = _meaning(action, key, codes, error)
        if meaning is None:
            raise
        raise meaning from error
    except (ConnectionError, HTTPClientError) as error:
        raise Unavailable(type(error).__name__) from error


def _meaning(action: str, key: str, codes: Codes, error: ClientError) -> EpochalError | None:
    code = error.response["Error"]["Code"]
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if code in codes.missing:
        return MissingBody(key)
    if code in codes.denied:
        return Refused(action, error.response["Error"].get("Message", code))
    if code in codes.busy or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Unavailable(code)
    return None
