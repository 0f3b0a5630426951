"""Errors that botocore raises before it gets an answer: what is wrong with the caller's configuration or network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from botocore import exceptions

from epochal.dynamo.protocol.denials import LOG_IN
from epochal.errors import (
    EpochalError,
    InvalidRequest,
    Misconfigured,
)

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
    """Return the address of a broken connection, without secrets in the URL; empty if boto does not name it."""
    url = urlsplit(str(error.kwargs.get("endpoint_url") or error.kwargs.get("proxy_url") or ""))
    port = f":{url.port}" if url.port else ""
    return f"{url.scheme}://{url.hostname}{port}" if url.hostname else ""


def describe_failure(error: exceptions.BotoCoreError) -> str:
    """Describe a broken connection in a few words: what happened, and where."""
    address = address_of(error)
    return f"{type(error).__name__} at {address}" if address else type(error).__name__
