"""Whole stores in memory, for users' own tests: no AWS, no network, no clean-up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, Any
from urllib.parse import quote

from epochal.codec.bucket_bodies import UPLOADS, upload_of
from epochal.deployment import Deployment
from epochal.errors import MissingBody
from epochal.layout.registry import declared
from epochal.layout.tables import store_tables
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.bodies import Claim
from epochal.plan.tables import KeyAttribute, TableSpec
from epochal.settings import Settings
from epochal.store.driver import Driver, Meter, turn
from epochal.store.encoding import verified
from epochal.store.streams import Streams
from epochal.store.tagged_pages import TaggedEvents
from epochal.testing.memory import MemoryTables


def memory_tables(**own: str | TableSpec) -> MemoryTables:
    """Create a deployment's empty tables, named by kinds such as `tips` or `index`, and your `own` ones.

    Args:
        own: tables of your own, which appends may write to (`epochal.store.also`): the name of the partition key, which
            is text, or the whole specification.
    """
    specs = {spec.kind: spec for spec in store_tables()}
    for name, key in own.items():
        if isinstance(key, str):
            key = TableSpec(kind=name, partition=KeyAttribute(name=key, type="S"))  # noqa: PLW2901  what it stands for
        specs[name] = key
    return MemoryTables(specs)


def memory_settings(**options: Any) -> Settings:
    """Return the settings of a deployment in memory, whose tables are named by their kinds.

    Args:
        options: settings by name, in place of or besides the names of the tables.
    """
    kinds = {spec.kind for spec in store_tables()}
    tables = {setting.name: setting.table for setting in declared().values() if setting.table in kinds}
    return Settings.of(**{**tables, **options})


def memory_streams(
    tables: MemoryTables | None = None, *, types: Iterable[str] = (), everything: bool = False
) -> Streams:
    """Create a store of streams in memory, with a bucket.

    `types` and `everything` are those of `open_streams`.

    Args:
        tables: tables to use; None creates new ones.
        types, everything: as for `open_streams`.
    """
    return memory_deployment(tables, tagged_types=tuple(types), tagged_everything=everything).streams


def memory_tagged_events(
    tables: MemoryTables | None = None, *, types: Iterable[str] = (), everything: bool = False
) -> TaggedEvents:
    """Create a store of tagged events in memory, with a bucket.

    Conditions by type alone are possible for the given types.

    Args:
        tables: tables to use; None creates new ones.
        types, everything: as for `open_streams`.
    """
    return memory_deployment(tables, tagged_types=tuple(types), tagged_everything=everything).tagged


def memory_deployment(tables: MemoryTables | None = None, **options: Any) -> Deployment:
    """Create a deployment in memory, with a bucket; `options` are settings by their names."""
    driver = Driver(execute=(tables or memory_tables()).execute, meter=Meter(), sleep=pause)
    return Deployment(settings=memory_settings(**options), driver=driver, bucket=MemoryBucket())


def pause(seconds: float) -> None:
    """Sleep, and let other threads and the other tasks of the event loop run meanwhile."""
    turn().wait(seconds)


class MemoryBodies:
    """Implements `store.encoding.Bodies`. `objects` holds contents by key."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def put(self, claim: Claim, content: bytes) -> None:
        """Store `content` under the claim's key."""
        self.objects[claim.key] = content

    def get(self, claim: Claim) -> bytes:
        """Return the content that a claim names, verified."""
        if claim.key not in self.objects:
            raise MissingBody(claim.key)
        return verified(claim, self.objects[claim.key])

    def keep(self, claim: Claim) -> bool:
        """Return whether the claimed object is stored permanently; copy it there if it is only uploaded."""
        if self._holds(claim.key, claim.size):
            return True
        upload = upload_of(claim)
        if upload is None or not self._holds(upload, claim.size):
            return False
        self.objects[claim.key] = self.objects[upload]
        return True

    def _holds(self, key: str, size: int) -> bool:
        """Return whether there is an object of this key and size."""
        return len(self.objects.get(key, b"")) == size


class MemoryObjects:
    """Implements `store.encoding.Objects`. `contents` holds objects by key; all count as old."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}

    def put(self, key: str, content: IO[bytes]) -> None:
        """Store a file's content under `key`."""
        self.contents[key] = content.read()

    def get(self, key: str) -> Iterator[bytes]:
        """Return an object's content in chunks; raise `MissingBody` if it does not exist."""
        if key not in self.contents:
            raise MissingBody(key)
        content = self.contents[key]
        return (content[start : start + 65_536] for start in range(0, len(content), 65_536))

    def delete(self, key: str) -> None:
        """Delete an object if it exists."""
        self.contents.pop(key, None)

    def old_keys(self, prefix: str) -> Iterator[str]:
        """Iterate over the keys with a prefix; all count as old."""
        return (key for key in sorted(self.contents) if key.startswith(prefix))


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBucket:
    """Implements `deployment.Bucket`."""

    bodies: MemoryBodies = field(default_factory=MemoryBodies)
    objects: MemoryObjects = field(default_factory=MemoryObjects)

    @property
    def links(self) -> MemoryLinks:
        """Stand-ins for signed URLs."""
        return MemoryLinks(self.objects)


class MemoryLinks:
    """Implements `deployment.Links`, with URLs that lead nowhere."""

    def __init__(self, objects: MemoryObjects) -> None:
        self._objects = objects

    def download(self, claim: Claim, seconds: int) -> str:
        """Return a stand-in for the URL of a body."""
        return _url(claim.key, seconds)

    def object(self, key: str, seconds: int) -> str:
        """Return a stand-in for the URL of an object; raise `MissingBody` if it does not exist."""
        self._objects.get(key)
        return _url(key, seconds)

    def upload(self, claim: Claim, seconds: int) -> tuple[str, dict[str, str]]:
        """Return a stand-in for the URL of an upload, and its headers."""
        return _url(f"{UPLOADS}{claim.sha256}", seconds), {"content-length": str(claim.size)}


def _url(key: str, seconds: int) -> str:
    return f"https://bucket.example/{quote(key)}?expires={seconds}"
