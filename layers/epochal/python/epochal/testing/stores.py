"""Whole stores in memory, for users' own tests: no AWS, no network, no clean-up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, Any
from urllib.parse import quote

from epochal.codec.bodies import UPLOADS, upload_of
from epochal.deployment import Deployment
from epochal.errors import MissingBody
from epochal.layout.port import declared, store_tables
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.events import Claim
from epochal.plan.tables import KeyAttribute, TableSpec
from epochal.settings import Settings
from epochal.store.driver import Driver, Meter
from epochal.store.encoding import verified
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedEvents
from epochal.testing.memory import MemoryTables


def memory_tables(**own: str | TableSpec) -> MemoryTables:
    """Empty tables of a deployment, each named by its kind: `tips`, `index`, `journal` and so on.

    Args:
        own: tables of your own, which appends may write to (`epochal.store.also`): the partition key, a text, or all of
            it.
    """
    specs = {spec.kind: spec for spec in store_tables()}
    for name, key in own.items():
        if isinstance(key, str):
            key = TableSpec(kind=name, partition=KeyAttribute(name=key, type="S"))  # noqa: PLW2901  what it stands for
        specs[name] = key
    return MemoryTables(specs)


def memory_settings(**options: Any) -> Settings:
    """The settings of a deployment with such tables."""
    kinds = {spec.kind for spec in store_tables()}
    tables = {each.name: each.table for each in declared().values() if each.table in kinds}
    return Settings.of(**{**tables, **options})


def memory_streams(
    tables: MemoryTables | None = None, *, types: Iterable[str] = (), everything: bool = False
) -> Streams:
    """A store of streams in memory, with a bucket; `types` and `everything` are those of `open_streams`."""
    return memory_deployment(tables, tagged_types=tuple(types), tagged_everything=everything).streams


def memory_tagged_events(
    tables: MemoryTables | None = None, *, types: Iterable[str] = (), everything: bool = False
) -> TaggedEvents:
    """A store of tagged events in memory, with a bucket; conditions by type alone are for those named."""
    return memory_deployment(tables, tagged_types=tuple(types), tagged_everything=everything).tagged


def memory_deployment(tables: MemoryTables | None = None, **options: Any) -> Deployment:
    """A deployment in memory, with a bucket; `options` are settings by their names."""
    driver = Driver(execute=(tables or memory_tables()).execute, meter=Meter())
    return Deployment(settings=memory_settings(**options), driver=driver, bucket=MemoryBucket())


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
