"""S3's errors to what they mean: missing, denied, unavailable; anything else is raised as it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

from botocore.exceptions import ClientError, ConnectionError, HTTPClientError  # noqa: A004  botocore's own name

from epochal.errors import EpochalError, MissingBody, Refused, Unavailable

_MISSING: Final = frozenset({"NoSuchKey", "NotFound", "404"})
_DENIED: Final = frozenset(
    {"AccessDenied", "403", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken"}
)
_THROTTLED: Final = frozenset({"SlowDown", "RequestTimeout", "Throttling", "TooManyRequestsException"})


@contextmanager
def translated(action: str, key: str) -> Iterator[None]:
    """Raise what an error of S3 means in its place: `MissingBody`, `Refused` or `Unavailable`."""
    try:
        yield
    except ClientError as error:
        meaning = _meaning(action, key, error)
        if meaning is None:
            raise
        raise meaning from error
    except (ConnectionError, HTTPClientError) as error:
        raise Unavailable(type(error).__name__) from error


def _meaning(action: str, key: str, error: ClientError) -> EpochalError | None:
    code = error.response["Error"]["Code"]
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if code in _MISSING:
        return MissingBody(key)
    if code in _DENIED:
        return Refused(action, error.response["Error"].get("Message", code))
    if code in _THROTTLED or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Unavailable(code)
    return None
