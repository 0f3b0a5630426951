"""Large states kept in this process: a bucket behind a bounded memory.

An object's key is the hash of its content, so what is kept under it is never out of date: which key a state has is read
from its item each time, and a state that was replaced elsewhere has another. What is used least recently goes first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import IO

from epochal.errors import InvalidInput
from epochal.store.projections import Objects


class CachedObjects:
    """Implements `store.projections.Objects` over another; safe under threads.

    Args:
        max_bytes: of all objects kept, compressed as they are; one that alone exceeds it is not kept.
    """

    def __init__(self, objects: Objects, max_bytes: int) -> None:
        if max_bytes < 1:
            raise InvalidInput("max_bytes", "must be at least 1")
        self._objects = objects
        self._most = max_bytes
        self._kept: OrderedDict[str, tuple[bytes, ...]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes of the objects kept."""
        return self._bytes

    def put(self, key: str, content: IO[bytes]) -> None:
        """Store a file's content under `key`. It is kept in memory once it is read: its writer has the state."""
        self._objects.put(key, content)

    def get(self, key: str) -> Iterator[bytes]:
        """An object's content in chunks; raises `MissingBody`."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return iter(self._kept[key])
        return self._keeping(key, self._objects.get(key))

    def delete(self, key: str) -> None:
        """Delete an object, if it is there."""
        with self._lock:
            self._drop(key)
        self._objects.delete(key)

    def old_keys(self, prefix: str) -> Iterator[str]:
        """As the bucket has them."""
        return self._objects.old_keys(prefix)

    def _keeping(self, key: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Chunks as they come; kept if they come to their end and are not too many."""
        taken: list[bytes] = []
        size = 0
        for chunk in chunks:
            size += len(chunk)
            if size <= self._most:
                taken.append(chunk)
            else:
                taken.clear()
            yield chunk
        if size <= self._most:
            self._keep(key, tuple(taken), size)

    def _keep(self, key: str, content: tuple[bytes, ...], size: int) -> None:
        with self._lock:
            self._drop(key)
            self._kept[key] = content
            self._bytes += size
            while self._bytes > self._most:
                self._drop(next(iter(self._kept)))

    def _drop(self, key: str) -> None:
        self._bytes -= sum(map(len, self._kept.pop(key, ())))
