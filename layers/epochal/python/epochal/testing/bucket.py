"""A deployment's bucket in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO
from urllib.parse import quote

from epochal.codec.bodies import UPLOADS, upload_of
from epochal.errors import MissingBody
from epochal.model.events import Claim
from epochal.store.encoding import verified

# A bucket in memory.


class MemoryBodies:
    """Implements `store.encoding.Bodies`. `objects` holds contents by key."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def put(self, claim: Claim, content: bytes) -> None:
        """Store `content` under the claim's key."""
        self.objects[claim.key] = content

    def get(self, claim: Claim) -> bytes:
        """The content a claim names, verified."""
        if claim.key not in self.objects:
            raise MissingBody(claim.key)
        return verified(claim, self.objects[claim.key])

    def keep(self, claim: Claim) -> bool:
        """Whether an object of the claimed size is there to stay; an upload of it is made to stay."""
        if self._holds(claim.key, claim.size):
            return True
        upload = upload_of(claim)
        if upload is None or not self._holds(upload, claim.size):
            return False
        self.objects[claim.key] = self.objects[upload]
        return True

    def _holds(self, key: str, size: int) -> bool:
        return len(self.objects.get(key, b"")) == size


# Objects in memory.


class MemoryObjects:
    """Implements `store.encoding.Objects`. `contents` holds objects by key; all count as old."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBucket:
    """Implements `deployment.Bucket`."""

    bodies: MemoryBodies = field(default_factory=MemoryBodies)
    objects: MemoryObjects = field(default_factory=MemoryObjects)

    @property
    def links(self) -> MemoryLinks:
        """Stand for signed URLs."""
        return MemoryLinks(self.objects)


class MemoryLinks:
    """Implements `deployment.Links`, with URLs that lead nowhere."""

    def __init__(self, objects: MemoryObjects) -> None:
        self._objects = objects

    def download(self, claim: Claim, seconds: int) -> str:
        """Where the content would be."""
        return _url(claim.key, seconds)

    def object(self, key: str, seconds: int) -> str:
        """Where an object would be; raises `MissingBody` where there is none."""
        self._objects.get(key)
        return _url(key, seconds)

    def upload(self, claim: Claim, seconds: int) -> tuple[str, dict[str, str]]:
        """Where content could be put."""
        return _url(f"{UPLOADS}{claim.sha256}", seconds), {"content-length": str(claim.size)}


def _url(key: str, seconds: int) -> str:
    return f"https://bucket.example/{quote(key)}?expires={seconds}"
