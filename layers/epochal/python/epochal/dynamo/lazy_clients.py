"""Clients made when first needed. An S3 client costs a cold start as much as the DynamoDB client, and few requests
ever need it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class _Lazy(Generic[T]):
    """Stands for what `make` returns, and calls it at the first use of an attribute."""

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
    """A stand-in for `make()`, made once, when first used. Safe under threads."""
    return cast("T", _Lazy(make))
