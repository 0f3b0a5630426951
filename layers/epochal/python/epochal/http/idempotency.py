"""Idempotency keys of requests."""

from __future__ import annotations

import re
from typing import Final

from epochal.errors import InvalidInput
from epochal.http.operation import Request

_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)


def idempotency_key(request: Request) -> str | None:
    """The request's idempotency key, if it has one."""
    key = request.header("Idempotency-Key")
    return None if key is None else checked_key(key, "Idempotency-Key")


def checked_key(key: object, field: str) -> str:
    """An idempotency key. Raises `InvalidInput` where it is none."""
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise InvalidInput(field, "must be 1 to 255 visible ASCII characters")
    return key
