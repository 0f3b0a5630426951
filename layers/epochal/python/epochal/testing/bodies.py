"""A bucket in memory."""

from __future__ import annotations

from epochal.codec.claims import upload_of
from epochal.errors import MissingBody
from epochal.model.events import Claim
from epochal.store.bodies import verified


class MemoryBodies:
    """Implements `store.bodies.Bodies`. `objects` holds contents by key."""

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
