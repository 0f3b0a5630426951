"""States of projections, so that a projector need not begin at the beginning: small ones in items, large in the bucket.

An object is written before the item that names it, under the hash of its content, so a reader never finds a
state half there. A replaced state stays for its current readers: it is an orphan then, as is what a
crash leaves behind, and `remove_orphans` deletes what is older than a day.
"""

from __future__ import annotations

import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from os import SEEK_END
from typing import IO, Final

from epochal.codec.bodies import CHUNK
from epochal.contrib.sekiban import INLINE_BYTES, PREFIX, SekibanOptions, states
from epochal.contrib.sekiban.items import PROJECTION_STATES, Keys
from epochal.contrib.sekiban.states import StoredState, from_text, pack, to_text, unpack
from epochal.deployment import Deployment
from epochal.errors import ConflictError, CorruptData, InvalidInput, MissingBody, TooLarge
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.kinds import MAX_WHOLE, must_be, must_be_text, must_be_whole
from epochal.model.stream_names import no_step
from epochal.model.tags import parse_place
from epochal.plan.values import Item
from epochal.store.driver import Driver
from epochal.store.encoding import Objects

MAX_NAME_BYTES: Final = 512

MAX_PAGE: Final = 1_000_000
"""Highest number of versions that a page may be limited to. DynamoDB accepts limits below 2^31."""


def states_of(deployment: Deployment) -> ProjectionStates:
    """Open the store of the projection states of a deployment."""
    settings = deployment.settings
    chosen = settings.of_plugin(SekibanOptions)
    return ProjectionStates(
        driver=deployment.driver,
        table=settings.table(PROJECTION_STATES.kind),
        objects=deployment.bucket.objects or NoObjects(),
        keys=Keys(service=chosen.service),
        prefix=chosen.states_prefix,
        inline_bytes=chosen.state_inline_bytes,
    )


class NoObjects:
    """An `Objects` store without a bucket, for deployments whose states are all small."""

    def put(self, key: str, content: IO[bytes]) -> None:
        """Raise `TooLarge`, since a state that no item can hold needs a bucket."""
        raise TooLarge(f"state {key} (without a bucket)", content.seek(0, SEEK_END), INLINE_BYTES)

    def get(self, key: str) -> Iterator[bytes]:
        """Raise `MissingBody`, since there is no bucket that could have the object."""
        raise MissingBody(key)

    def delete(self, key: str) -> None:
        """Do nothing, since there is no bucket to delete from."""

    def old_keys(self, prefix: str) -> Iterator[str]:  # noqa: ARG002  the protocol's signature
        """Return an empty iterator, since there are no objects."""
        return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectionStates:
    """A table of projection states, with the bucket that holds the large ones.

    Attributes:
        driver: the driver that sends requests to DynamoDB.
        table: name of the table of states.
        objects: store (bucket) of the states that are too large for an item of the table.
        keys: the builder of primary keys for the tenant.
        prefix: prefix of the keys that large states have in the bucket.
        inline_bytes: number of bytes after compression above which a state goes to the bucket; at most 300,000.
    """

    driver: Driver
    table: str
    objects: Objects = field(default_factory=NoObjects)
    keys: Keys = field(default_factory=Keys)
    prefix: str = PREFIX
    inline_bytes: int = INLINE_BYTES

    def __post_init__(self) -> None:
        must_be_whole(self.inline_bytes, "inline_bytes", -MAX_WHOLE)
        if not 0 <= self.inline_bytes <= INLINE_BYTES:
            raise InvalidInput(
                "inline_bytes", f"must be 0 to {INLINE_BYTES:,}: an item holds no more in base64"
            )

    def save(
        self,
        projector: str,
        version: str,
        state: Iterable[bytes],
        *,
        events_processed: int,
        last_sortable_id: str,
        safe_window: str | None = None,
    ) -> None:
        """Store a state; raise `ConflictError` if the stored one has processed more events.

        Args:
            projector: name of the projector.
            version: version of the projector's code.
            state: the bytes of the state, in chunks; compressed chunk by chunk, never held in memory as a whole.
            events_processed: number of events that the state has in it.
            last_sortable_id: sortable id of the last of these events; empty if there are none.
            safe_window: the projector's own text about its safe window, stored unchanged.

        Raises:
            TooLarge: the state is large, and there is no bucket.
            ConflictError: the stored state has processed more events; has that state, without its content.
        """
        newer = self.try_save(
            projector,
            version,
            state,
            events_processed=events_processed,
            last_sortable_id=last_sortable_id,
            safe_window=safe_window,
        )
        if newer is not None:
            raise ConflictError(
                f"{projector} {version}: not stored: the stored state has processed {newer.events_processed:,} events",
                newer,
            )

    def try_save(
        self,
        projector: str,
        version: str,
        state: Iterable[bytes],
        *,
        events_processed: int,
        last_sortable_id: str,
        safe_window: str | None = None,
    ) -> StoredState | None:
        """Store a state and return None, or return the stored state if that has processed more events.

        Args:
            projector, version, state, events_processed, last_sortable_id, safe_window: as for `save`.
        """
        check_names(projector, version)
        no_step(projector, "projector")
        no_step(version, "version")
        must_be_whole(events_processed, "events_processed")
        # A state that has processed no events has no last event.
        if events_processed or last_sortable_id != "":
            parse_place(last_sortable_id, "last_sortable_id")
        if safe_window is not None:
            must_be_text(safe_window, MAX_NAME_BYTES, "safe_window")
        with tempfile.SpooledTemporaryFile(max_size=4 * CHUNK) as spool:
            packed = pack(self._chunks(state), spool)
            spool.seek(0)
            large = packed.compressed > self.inline_bytes
            key = f"{self._folder(projector)}{packed.sha256}.bin" if large else None
            if key is not None:
                self.objects.put(key, spool)
            stored = StoredState(
                projector=projector,
                version=version,
                last_sortable_id=last_sortable_id,
                events_processed=events_processed,
                original_bytes=packed.original,
                compressed_bytes=packed.compressed,
                inline=None if large else to_text(spool.read()),
                offload_key=key,
                safe_window=safe_window,
            )
        return self.driver.run(states.upsert(self.table, self.keys, stored))

    def find(self, projector: str, version: str) -> StoredState | None:
        """Read the stored state of a projector's version, its content still packed; None if there is none.

        Args:
            projector: name of the projector.
            version: version of the projector.
        """
        check_names(projector, version)
        return self.driver.run(states.latest(self.table, self.keys, projector, version))

    def find_any(self, projector: str) -> StoredState | None:
        """Return a projector's state of the version that has processed most events, or None if there is no state.

        Args:
            projector: name of the projector.
        """
        return max(self.list(projector), key=lambda state: state.events_processed, default=None)

    def list(self, projector: str) -> list[StoredState]:
        """List the states of every version of a projector.

        Args:
            projector: name of the projector.
        """
        check_names(projector, "-")
        return self.driver.run(states.versions(self.table, self.keys, projector))

    def list_all(self) -> Iterator[StoredState]:
        """Scan the table, and yield the states of every version of every projector of the tenant, in no order.

        Reads the whole table, so it is meant for tools.
        """
        for page in self.driver.pages(states.everything(self.table)):
            yield from states.own(self.keys, page.items)

    def page(
        self, projector: str, *, beyond: str | None = None, limit: int
    ) -> tuple[tuple[StoredState, ...], str | None]:
        """Return up to `limit` states of a projector's versions after `beyond`, and the next `beyond` or None.

        The latter is None on the last page.

        Args:
            projector: name of the projector.
            beyond: version after which the states begin; None for the first page.
            limit: number of states at most, 1 or more.
        """
        check_names(projector, "-" if beyond is None else beyond)
        must_be_whole(limit, "limit", 1, MAX_PAGE)
        return self.driver.run(states.versions_page(self.table, self.keys, projector, beyond, limit))

    def open(self, state: StoredState) -> Iterator[bytes]:
        """Yield a state's content, decompressed, a chunk at a time.

        Args:
            state: state as it was found.

        Raises:
            MissingBody: the state's object is not in the bucket, or the store has no bucket.
            CorruptData: the content cannot be decompressed, or the item has neither content nor key.
        """
        if state.offload_key is not None:
            return unpack(self.objects.get(state.offload_key))
        if state.inline is None:
            raise CorruptData(
                f"{state.projector} {state.version}: the state is neither in its item nor in the bucket"
            )
        return unpack([from_text(state.inline)])

    def delete(self, projector: str, version: str) -> None:
        """Delete the state of a projector's version, if any; its object in the bucket stays as an orphan.

        Args:
            projector: name of the projector.
            version: version of the projector.
        """
        check_names(projector, version)
        self.driver.run(states.delete(self.table, self.keys, projector, version))

    def orphans(self, projector: str) -> Iterator[str]:
        """Yield the keys of a projector's objects in the bucket over a day old that no stored state names.

        Their states were replaced or deleted, or a crash left them behind. Objects younger than a day are not
        listed.

        Args:
            projector: name of the projector.
        """
        check_names(projector, "-")
        folder = self._folder(projector)
        keys = {state.offload_key for state in self.list(projector)}
        for key in self.objects.old_keys(folder):
            # Keys that are deeper belong to a tenant with the name of this projector.
            if key not in keys and "/" not in key.removeprefix(folder):
                yield key

    def remove_orphans(self, projector: str) -> int:
        """Delete a projector's objects over a day old that no stored state names; return how many.

        A state with the same content as an orphan, stored while the orphan is being deleted, loses its object: `open`
        raises `MissingBody`, and the state has to be stored again.

        Args:
            projector: name of the projector.
        """
        removed = 0
        for key in self.orphans(projector):
            if all(state.offload_key != key for state in self.list(projector)):
                self.objects.delete(key)
                removed += 1
        return removed

    def projectors_in(self, items: Iterable[Item]) -> set[str]:
        """Return the names of the projectors that items of the table belong to.

        Args:
            items: items of the table of states.
        """
        return {state.projector for state in states.own(self.keys, items)}

    def _chunks(self, state: object) -> Iterator[bytes]:
        """Yield a state's chunks; raise `InvalidInput` if the state is no iterable of bytes objects.

        A text or a single bytes object is refused because each of its characters or bytes would be taken for a
        chunk.

        Raises:
            InvalidInput: the state, or a chunk of it, has a wrong type.
        """
        if isinstance(state, str | bytes) or not isinstance(state, Iterable):
            raise InvalidInput("state", f"must be a list of bytes, not {type(state).__name__}")
        for chunk in state:
            must_be(bytes, chunk, "state", "a list of bytes")
            yield chunk

    def _folder(self, projector: str) -> str:
        """Return the prefix of the keys of a projector's objects in the bucket.

        It contains the tenant, since tenants may have projectors of the same name, and the objects of one must not
        be orphans of the other.
        """
        tenant = f"{self.keys.service}/" if self.keys.service else ""
        return f"{self.prefix}/{tenant}{projector}/"


def check_names(projector: str, version: str) -> None:
    """Raise `InvalidInput` unless the names of a projector and of its version are valid."""
    for name, value in (("projector", projector), ("version", version)):
        must_be(str, value, name, "text")
        if (
            not value
            or "/" in value
            or not value.isprintable()
            or len(value.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES
        ):
            raise InvalidInput(name, f"must be 1 to {MAX_NAME_BYTES} bytes of printable text without /")


class CachedObjects:
    """An `Objects` store that caches the objects of another in memory; safe under threads.

    Args:
        objects: the store whose objects are cached.
        max_bytes: total size of cached objects, compressed as they are stored; an object that alone exceeds it is not
            cached.
    """

    def __init__(self, objects: Objects, max_bytes: int) -> None:
        """Make an empty cache of at most `max_bytes` over a store of objects.

        Raises:
            InvalidInput: `max_bytes` is less than 1.
        """
        if max_bytes < 1:
            raise InvalidInput("max_bytes", "must be at least 1")
        self._objects = objects
        self._most = max_bytes
        self._kept: OrderedDict[str, tuple[bytes, ...]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Total size of the cached objects in bytes."""
        return self._bytes

    def put(self, key: str, content: IO[bytes]) -> None:
        """Store a file's content under `key` in the underlying store.

        The content is cached only when it is read: its writer has the state already.
        """
        self._objects.put(key, content)

    def get(self, key: str) -> Iterator[bytes]:
        """Return an object's content in chunks, from the cache or the underlying store.

        Raises:
            MissingBody: there is no such object.
        """
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return iter(self._kept[key])
        return self._keeping(key, self._objects.get(key))

    def delete(self, key: str) -> None:
        """Delete an object, if it exists, from the cache and the underlying store."""
        with self._lock:
            self._drop(key)
        self._objects.delete(key)

    def old_keys(self, prefix: str) -> Iterator[str]:
        """Yield the keys with a prefix that the underlying store calls old."""
        return self._objects.old_keys(prefix)

    def _keeping(self, key: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Yield an object's chunks, and cache them if all are read and they fit in the cache."""
        parts: list[bytes] = []
        size = 0
        for chunk in chunks:
            size += len(chunk)
            if size <= self._most:
                parts.append(chunk)
            else:
                parts.clear()
            yield chunk
        if size <= self._most:
            self._keep(key, tuple(parts), size)

    def _keep(self, key: str, content: tuple[bytes, ...], size: int) -> None:
        """Cache an object, and evict the least recently used ones until the cache fits its limit."""
        with self._lock:
            self._drop(key)
            self._kept[key] = content
            self._bytes += size
            while self._bytes > self._most:
                self._drop(next(iter(self._kept)))

    def _drop(self, key: str) -> None:
        """Remove an object from the cache, if it is there."""
        self._bytes -= sum(map(len, self._kept.pop(key, ())))
