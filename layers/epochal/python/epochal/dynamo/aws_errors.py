"""Translates errors of S3, KMS and other services into the library's errors.

botocore is imported where one of its errors is translated: functions that never meet one start without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from epochal.dynamo.protocol.denials import explain_denial
from epochal.dynamo.protocol.faults import DENIED
from epochal.dynamo.wire.http import is_busy
from epochal.errors import (
    EpochalError,
    InvalidRequest,
    MissingBody,
    MissingBucket,
    Refused,
    Unavailable,
)

if TYPE_CHECKING:
    from botocore import exceptions

_MISSING: Final = frozenset({"NoSuchKey", "NotFound", "404"})
_DENIED: Final = DENIED | {
    "AccessDenied",
    "403",
    "DecryptionFailure",
    "DisabledException",
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "KMSInvalidStateException",
    "NotFoundException",  # KMS's own: of a key that is not there
    "SignatureDoesNotMatch",
}
"""What codes of services mean: no two mean different things by one. Internal errors tell it by their status."""


@contextmanager
def translate_errors(action: str, key: str = "") -> Iterator[None]:
    """Run a block, and translate errors that AWS services raise in it into the library's errors.

    These are `MissingBody` of `key`, `MissingBucket`, `Refused`, `Unavailable`, `Misconfigured`, and for all else
    `InvalidRequest`.
    """
    try:
        yield
    # Python evaluates these only once there is an error.
    except _botocore_errors().ClientError as error:
        raise _translate_client_error(action, key, error) from error
    except _botocore_errors().BotoCoreError as error:
        raise _translate_boto_error(error) from error


def check_stored(answer: Mapping[str, Any]) -> None:
    """Raise `Unavailable` unless the answer to an upload has S3's ETag, so did not come from a proxy."""
    if "ETag" not in answer:
        raise Unavailable("an answer that is not S3's")


def _botocore_errors() -> ModuleType:
    """Import the errors of botocore."""
    from botocore import exceptions  # noqa: PLC0415  functions start without

    return exceptions


def _translate_boto_error(error: exceptions.BotoCoreError) -> EpochalError:
    """Return the library's error for an error of botocore that is no answer of a service."""
    from epochal.dynamo.aws_configuration import describe_failure, translate_boto_error  # noqa: PLC0415  as above

    errors = _botocore_errors()
    if isinstance(error, errors.ConnectionError | errors.HTTPClientError):
        return Unavailable(describe_failure(error))
    return translate_boto_error(error)


def _translate_client_error(action: str, key: str, error: exceptions.ClientError) -> EpochalError:
    """Return the library's error for an error answer of an AWS service, by its code and status."""
    code = error.response["Error"]["Code"]
    if code == "NoSuchBucket":
        return MissingBucket(str(error.response["Error"].get("BucketName", "of the settings")))
    message = error.response["Error"].get("Message", "")
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if key and code in _MISSING:
        return MissingBody(key)
    if code in _DENIED:
        return Refused(action, explain_denial(code, message))
    if is_busy(status, code):
        return Unavailable(code)
    return InvalidRequest(action, code, message)
