"""Objects in memory: a bucket of projection states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from epochal.errors import MissingBody


class MemoryObjects:
    """Implements `store.projections.Objects`. `contents` holds objects by key; all count as old."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}

    def put(self, key: str, content: IO[bytes]) -> None:
        """Store a file's content under `key`."""
        self.contents[key] = content.read()

    def get(self, key: str) -> Iterator[bytes]:
        """An object's content in chunks; raises `MissingBody`."""
        if key not in self.contents:
            raise MissingBody(key)
        content = self.contents[key]
        return (content[start : start + 65_536] for start in range(0, len(content), 65_536))

    def delete(self, key: str) -> None:
        """Delete an object, if it is there."""
        self.contents.pop(key, None)

    def old_keys(self, prefix: str) -> Iterator[str]:
        """Keys below a prefix."""
        return (key for key in sorted(self.contents) if key.startswith(prefix))
