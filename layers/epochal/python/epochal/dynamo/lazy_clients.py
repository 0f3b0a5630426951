"""Clients that are created when they are first used.

An S3 client costs a cold start as much as the DynamoDB client, and few requests ever need it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class _Lazy(Generic[T]):
    """Stands in for the result of `make`, which is called when an attribute is first used."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: T | None = None

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if self._made is None:
                self._made = self._make()
        return getattr(self._made, name)


def lazily(make: Callable[[], T]) -> T:
    """Return a stand-in for `make()`, which is called once, when it is first used. Safe under threads."""
    return cast("T", _Lazy(make))
