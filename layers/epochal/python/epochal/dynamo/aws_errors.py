"""Translates errors of S3, KMS and other services into the library's errors, and decides what of an error may be
logged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from traceback import format_tb
from typing import Any, Final
from urllib.parse import urlsplit

from botocore import exceptions

from epochal.dynamo.protocol.denials import LOG_IN, explain_denial
from epochal.dynamo.protocol.faults import DENIED, DynamoFault
from epochal.dynamo.wire.http import is_busy
from epochal.errors import (
    EpochalError,
    InvalidRequest,
    Misconfigured,
    MissingBody,
    MissingBucket,
    Refused,
    Unavailable,
    chain,
)

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
    except exceptions.ClientError as error:
        raise _translate_client_error(action, key, error) from error
    except exceptions.BotoCoreError as error:
        if isinstance(error, exceptions.ConnectionError | exceptions.HTTPClientError):
            raise Unavailable(describe_failure(error)) from error
        raise translate_boto_error(error) from error


def check_stored(answer: Mapping[str, Any]) -> None:
    """Raise `Unavailable` unless the answer to an upload has S3's ETag, so did not come from a proxy."""
    if "ETag" not in answer:
        raise Unavailable("an answer that is not S3's")


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


# What is wrong with the caller's own AWS configuration, said with what to do about it.
#
# It is imported where it is needed: a function that works never does.

_REGION: Final = (
    "set AWS_DEFAULT_REGION (boto3 does not read AWS_REGION), or pass --region or place=Place(region=…)"
)
_MEND: Final = "correct ~/.aws/config, or the file that AWS_CONFIG_FILE names"

_HOW: Final[Mapping[type[exceptions.BotoCoreError], str]] = {
    exceptions.NoRegionError: _REGION,
    exceptions.InvalidRegionError: _REGION,
    exceptions.NoCredentialsError: "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or log in",
    exceptions.PartialCredentialsError: "give all of them, or none of them",
    exceptions.ProfileNotFound: "set AWS_PROFILE to a profile that `aws configure list-profiles` lists",
    exceptions.CredentialRetrievalError: LOG_IN,
    exceptions.SSOError: LOG_IN,
    exceptions.TokenRetrievalError: LOG_IN,
    exceptions.MetadataRetrievalError: "the machine's role could not be read; set AWS_PROFILE, or try again",
    exceptions.UnknownCredentialError: _MEND,
    exceptions.ConfigNotFound: _MEND,
    exceptions.ConfigParseError: _MEND,
    exceptions.InvalidConfigError: _MEND,
    exceptions.InfiniteLoopConfigError: _MEND,
}


def translate_boto_error(error: exceptions.BotoCoreError) -> EpochalError:
    """Return the library's error for one that botocore raised before it sent a request."""
    for kind, how in _HOW.items():
        if isinstance(error, kind):
            return Misconfigured(str(error).rstrip("."), how)
    return InvalidRequest("the request", type(error).__name__, " ".join(str(error).split()))


def address_of(error: exceptions.BotoCoreError) -> str:
    """Return where a broken connection went, without secrets in the URL; empty if boto does not say."""
    url = urlsplit(str(error.kwargs.get("endpoint_url") or error.kwargs.get("proxy_url") or ""))
    port = f":{url.port}" if url.port else ""
    return f"{url.scheme}://{url.hostname}{port}" if url.hostname else ""


def describe_failure(error: exceptions.BotoCoreError) -> str:
    """Describe a broken connection in a few words: what happened, and where."""
    address = address_of(error)
    return f"{type(error).__name__} at {address}" if address else type(error).__name__


# The parts of an error that may be logged: its kind, where it was raised, and its words where they are ours.
#
# The words of others may quote what they failed on: boto the parameters that it would not send, a parser the text, a
# dictionary the key. Our own name the item that breaks the format, never its contents. For AWS's own errors the
# operation and the code say enough.


def log_fields(error: BaseException) -> dict[str, str]:
    """Return the log fields of an error: `error`, its chain of kinds, and `trace`, code without values."""
    traces = ("".join(format_tb(link.__traceback__)) for link in reversed(list(chain(error))))
    return {"error": describe_chain(error), "trace": "\n".join(filter(None, traces))}


def describe_chain(error: BaseException) -> str:
    """Name the kinds of an error and of its causes, with only those messages that may be logged."""
    return ", from ".join(map(_describe_error, chain(error)))


def _describe_error(error: BaseException) -> str:
    """Name one error for the log: its kind, plus its message or code if that cannot quote user data."""
    kind = type(error).__name__
    match error:
        case InvalidRequest():
            return f"{kind}: {error.action}, {error.code}"
        case EpochalError():
            return f"{kind}: {error}"
        case DynamoFault():
            return f"{kind}: {error.operation}, {error.code}"
        case exceptions.ClientError():
            return f"{kind}: {error.operation_name}, {error.response['Error'].get('Code', 'Unknown')}"
        case _:
            return kind
