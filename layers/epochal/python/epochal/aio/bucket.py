"""Bodies in the bucket, which boto3 fetches and stores in threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from epochal.aio.bridge import in_thread

if TYPE_CHECKING:
    from epochal.model.events import Claim
    from epochal.store.bodies import Bodies


@dataclass(frozen=True, slots=True)
class BodiesInThreads:
    """A bucket's bodies, without blocking the event loop."""

    bodies: Bodies

    def put(self, claim: Claim, content: bytes) -> None:
        """Store `content` under the claim's key."""
        in_thread(self.bodies.put, claim, content)

    def get(self, claim: Claim) -> bytes:
        """The content that a claim names."""
        return in_thread(self.bodies.get, claim)

    def keep(self, claim: Claim) -> bool:
        """Whether an object of the claimed size is there to stay."""
        return in_thread(self.bodies.keep, claim)
