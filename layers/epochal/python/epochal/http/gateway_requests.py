"""Events of API Gateway (payload format 2.0) as requests; events of functions' own URLs have the same form.

The gateway has percent-decoded the path once, all but `%25`; nothing is decoded a second time, or a caller could evade
a policy that names a path by another spelling of it. A function's URL passes the path as it was sent, which is decoded
here in the same way. Query strings are read from their raw form, since the gateway joins repeated parameters with
commas. A body is base64 unless the gateway takes its media type for text.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from epochal.errors import InvalidInput
from epochal.http.nodes import utf8
from epochal.http.operation import Request
from epochal.settings import REQUEST_SECONDS

MAX_PARAMETERS: Final = 100

MARGIN: Final = 1.0
"""Seconds of a function's time reserved for writing the answer."""

_URL: Final = re.compile(r"[a-z0-9]+\.lambda-url\.[a-z0-9-]+\.on\.aws")
"""The domain of a function's URL, which no gateway can have."""

_CORRELATION: Final = re.compile(r"[\x21-\x7e]{1,128}", re.ASCII)


def is_request(event: Any) -> bool:
    """Return whether an event is an HTTP request as API Gateway sends it; an invoker may send anything."""
    match event:
        case {
            "rawPath": str(),
            "requestContext": {"requestId": str(), "stage": str(), "http": {"method": str()}},
        }:
            texts = [event.get("rawQueryString"), event.get("body")]
            headers = event.get("headers") or {}
            return (
                all(text is None or isinstance(text, str) for text in texts)
                and isinstance(headers, dict)
                and all(isinstance(text, str) for pair in headers.items() for text in pair)
            )
        case _:
            return False


def path_of(event: Mapping[str, Any]) -> str:
    """Return the decoded path of a request, without the name of the gateway's stage before it."""
    path, context = str(event["rawPath"]), event["requestContext"]
    if _URL.fullmatch(str(context.get("domainName"))):
        return _decoded(path)
    stage = context["stage"]
    return path.removeprefix(f"/{stage}") if path.startswith(f"/{stage}/") else path


def _decoded(path: str) -> str:
    """Percent-decode a path as the gateway does: all but `%25`, so that no name has two spellings."""
    try:
        return "%25".join(unquote(part, errors="strict") for part in path.split("%25"))
    except UnicodeDecodeError:
        return path


def request_of(event: Mapping[str, Any], path: Mapping[str, str], remaining: float) -> Request:
    """Build the request that a Lambda event (payload format 2.0) carries, without its method.

    Args:
        path: values of the path's parameters.
        remaining: seconds until Lambda stops the function.
    """
    return Request(
        path=path,
        query=_query(event.get("rawQueryString") or ""),
        headers={name.lower(): value for name, value in (event.get("headers") or {}).items()},
        body=_body(event),
        seconds=max(0.0, min(REQUEST_SECONDS, remaining - MARGIN)),
    )


def correlation_id(event: Mapping[str, Any]) -> str:
    """Return the caller's `X-Correlation-Id` if it is well-formed, else the gateway's request id.

    The id ties a request to its logs.
    """
    headers = event.get("headers") or {}
    identifier = next((value for name, value in headers.items() if name.lower() == "x-correlation-id"), "")
    if _CORRELATION.fullmatch(identifier):
        return str(identifier)
    return str(event["requestContext"]["requestId"])


def _query(text: str) -> tuple[tuple[str, str], ...]:
    """Parse a raw query string into names and values; raise `InvalidInput` if malformed or over 100.

    Raises:
        InvalidInput: the string is no percent-encoded UTF-8, or has too many parameters.
    """
    try:
        return tuple(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_PARAMETERS))
    except ValueError as error:
        raise InvalidInput(
            "query", f"must be percent-encoded UTF-8 with at most {MAX_PARAMETERS} parameters"
        ) from error


def _body(event: Mapping[str, Any]) -> bytes:
    """Return the body of a Lambda event as bytes, decoded from base64 where the event announces it.

    Raises:
        InvalidInput: the body is not the base64 that the event announces.
    """
    body = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return utf8(body, "body")
    try:
        return binascii.a2b_base64(body, strict_mode=True)
    except ValueError as error:
        raise InvalidInput("body", "is marked as base64 but is not valid base64") from error
