"""What a writer expects of an aggregate. Its ETag is the lock of its head, `"version.number"`: an exact state.

Where an expectation may stand, and how its failure is answered, is the same as for streams (`preconditions`).
"""

from __future__ import annotations

import re
from typing import Final

from epochal.errors import InvalidInput
from epochal.http.message import Request
from epochal.http.preconditions import is_named
from epochal.model.aggregates import Lock
from epochal.model.versions import MAX_VERSION, AtVersion

_NUMBER: Final = r"(0|[1-9]\d{0,9})"
_LOCK: Final = re.compile(rf"{_NUMBER}(?:\.{_NUMBER})?", re.ASCII)


def etag(lock: Lock) -> str:
    """The ETag of the state that a lock names."""
    return f'"{lock_text(lock)}"'


def lock_text(lock: Lock) -> str:
    """A lock as text, which `parse_lock` reads back."""
    return f"{lock.version}.{lock.seq_nr}"


def parse_lock(text: str, field: str) -> Lock | AtVersion:
    """Read `lock_text` back, or a version alone; raises `InvalidInput` naming `field`."""
    match = _LOCK.fullmatch(text)
    numbers = [int(group) for group in match.groups() if group is not None] if match else []
    if not numbers or max(numbers) > MAX_VERSION:
        raise InvalidInput(
            field, "must be an ETag that an append or read of the aggregate returned, or a version"
        )
    if len(numbers) == 1:
        return AtVersion(version=numbers[0])
    return Lock(version=numbers[0], seq_nr=numbers[1])


def unchanged(request: Request, lock: Lock) -> bool:
    """Whether `If-None-Match` names the state that `lock` does."""
    return is_named(request, lock_text(lock))
