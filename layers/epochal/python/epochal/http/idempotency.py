"""Idempotency keys of requests."""

from __future__ import annotations

import re
from typing import Final

from epochal.errors import InvalidInput
from epochal.http.operation import Request

_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)


def idempotency_key(request: Request) -> str | None:
    """Return the idempotency key of a request; None where the header is missing.

    Raises:
        InvalidInput: the key is malformed.
    """
    key = request.header("Idempotency-Key")
    return None if key is None else checked_key(key, "Idempotency-Key")


def checked_key(key: object, field: str) -> str:
    """Return an idempotency key, or raise `InvalidInput` unless it is 1 to 255 visible ASCII characters."""
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise InvalidInput(field, "must be 1 to 255 visible ASCII characters")
    return key
