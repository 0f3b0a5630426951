"""Problem documents of the API as the library's errors.

    too-large                             TooLarge
    invalid-input, unsupported media      InvalidInput
    401, 403                              Refused
    404, 405 without a missing thing      InvalidInput: the address or the version of the API is another one
    missing-body, corrupt-data            MissingBody, CorruptData
    not-deployed                          MissingTable
    any other                             InvalidRequest

What streams and conditions refuse is no error here: `received` makes outcomes of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from epochal.errors import (
    CorruptData,
    EpochalError,
    InvalidInput,
    InvalidRequest,
    MissingBody,
    MissingTable,
    Refused,
    TooLarge,
)

PREFIX: Final = "urn:epochal:problem:"

REQUEST_BYTES: Final = 6 * 1024 * 1024
"""Bytes of a request that a function takes."""

_ARGUMENTS: Final = {"Idempotency-Key": "idempotency_key"}
"""Arguments of the library by their names over HTTP, where these differ."""

_UNSIGNED: Final = (401, 403)
_NOWHERE: Final = (404, 405)
_TOO_LARGE: Final = 413


def name_of(document: Mapping[str, Any]) -> str:
    """Return the name of a problem's type, such as `version-conflict`; empty for an answer without a type."""
    kind = document.get("type")
    return kind.removeprefix(PREFIX) if isinstance(kind, str) else ""


def error_of(status: int, document: Mapping[str, Any], action: str, size: int) -> EpochalError:
    """Return the error for an answer that is neither a success nor a conflict.

    Args:
        document: the problem document, or what the gateway answered by itself.
        action: method and path of the request.
        size: bytes of the request.
    """
    name = name_of(document)
    detail = str(document.get("detail") or document.get("message") or document.get("title") or "")
    field = str(document.get("field", ""))
    field = _ARGUMENTS.get(field, field)
    match name:
        case "too-large" if isinstance(document.get("limit"), int):
            return TooLarge(field, document["size"], document["limit"])
        case "invalid-input" | "too-large" | "unsupported-media-type":
            return InvalidInput(field or "request", str(document.get("rule") or detail))
        case "missing-body":
            return MissingBody(detail or action)
        case "corrupt-data":
            return CorruptData(f"{action}: {detail}")
        case "not-deployed":
            return MissingTable("behind the API", f"the deployment that answers {action}")
        case _:
            return _unnamed_error(status, name, detail, action, size)


def _unnamed_error(status: int, name: str, detail: str, action: str, size: int) -> EpochalError:
    """Return the error for an answer that is known by its status alone, as the gateway's own are."""
    if status in _UNSIGNED:
        return Refused(action, detail or f"the API answered {status}")
    if status == _TOO_LARGE:
        return TooLarge("request", size, REQUEST_BYTES)
    if status in _NOWHERE and (not name or name in ("route-not-found", "method-not-allowed")):
        rule = f"the API has no {action}: check the address, and that the deployment has this operation"
        return InvalidInput("url", rule)
    return InvalidRequest(action, name or str(status), detail)
