"""Idempotency keys that cost nothing (decision 437)."""

from __future__ import annotations

import secrets
import time
from uuid import UUID


def new_key(prefix: str = "") -> str:
    """A key for one call and all its repeats: a prefix, as the name of a client, and a UUIDv7 of now.

    Make it just before the first call, and keep it for the repeats. `uuid.uuid7()` of Python 3.14 makes as good ones;
    this is for older versions, too. A key has at most 255 characters, of visible ASCII.
    """
    milliseconds = time.time_ns() // 1_000_000
    number = milliseconds << 80 | secrets.randbits(80)
    return f"{prefix}{UUID(int=number & ~(0xF << 76 | 0x3 << 62) | 0x7 << 76 | 0x2 << 62)}"
