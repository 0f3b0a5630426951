"""What is in the bucket, which boto3 fetches and stores in threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final, TypeVar, cast

from epochal.aio.bridge import in_thread

if TYPE_CHECKING:
    from epochal.deployment import Bucket, Links
    from epochal.model.events import Claim
    from epochal.store.bodies import Bodies
    from epochal.store.projections import Objects

T = TypeVar("T")

_END: Final = object()


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


@dataclass(frozen=True, slots=True)
class ObjectsInThreads:
    """A bucket's states of projections, likewise."""

    objects: Objects

    def put(self, key: str, content: IO[bytes]) -> None:
        """Store a file's content under `key`."""
        in_thread(self.objects.put, key, content)

    def get(self, key: str) -> Iterator[bytes]:
        """An object's content in chunks."""
        return _taken(in_thread(self.objects.get, key))

    def delete(self, key: str) -> None:
        """Delete an object, if it is there."""
        in_thread(self.objects.delete, key)

    def old_keys(self, prefix: str) -> Iterator[str]:
        """Keys of the objects below a prefix that are old."""
        return _taken(self.objects.old_keys(prefix))


@dataclass(frozen=True, slots=True)
class BucketInThreads:
    """A bucket that does not block the event loop."""

    bucket: Bucket

    @property
    def bodies(self) -> Bodies | None:
        """Bodies of events."""
        return None if (found := self.bucket.bodies) is None else BodiesInThreads(found)

    @property
    def objects(self) -> Objects:
        """States of projections."""
        return ObjectsInThreads(self.bucket.objects)

    @property
    def links(self) -> Links:
        """Signed URLs, which ask for nothing."""
        return self.bucket.links


def _taken(found: Iterator[T]) -> Iterator[T]:
    """What an iterator that blocks yields, each taken from it in a thread."""
    while (one := in_thread(next, found, _END)) is not _END:
        yield cast("T", one)
