"""A deployment's bucket in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import quote

from epochal.codec.claims import UPLOADS
from epochal.model.events import Claim
from epochal.testing.bodies import MemoryBodies
from epochal.testing.objects import MemoryObjects


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
