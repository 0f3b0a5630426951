"""States of projections, so that a projector need not begin at the beginning: small ones in items, large in
the bucket.

An object is written before the item that names it, under the hash of its content, so a reader never finds a
state half there. What a newer state replaces is deleted afterwards; what a crash leaves behind, `orphans`
finds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, Final, Protocol

from epochal.codec.states import CHUNK, INLINE_BYTES, from_text, pack, to_text, unpack
from epochal.errors import CorruptData, InvalidInput
from epochal.layout.dcb import states
from epochal.layout.dcb.items import Keys
from epochal.layout.dcb.states import StoredState
from epochal.store.driver import Driver

MAX_NAME_BYTES: Final = 512


class Objects(Protocol):
    """Where large states lie: S3, or memory in tests."""

    def put(self, key: str, content: IO[bytes]) -> None:
        """Store a file's content under `key`."""

    def get(self, key: str) -> Iterator[bytes]:
        """An object's content in chunks; raises `MissingBody`."""

    def delete(self, key: str) -> None:
        """Delete an object, if it is there."""

    def old_keys(self, prefix: str) -> Iterator[str]:
        """Keys of the objects below a prefix that were written too long ago to be part of a write under
        way.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectionStates:
    """A table of states, and the bucket beside it."""

    driver: Driver
    table: str
    objects: Objects
    keys: Keys = field(default_factory=Keys)
    prefix: str = "projections"
    inline_bytes: int = INLINE_BYTES

    def save(
        self,
        projector: str,
        version: str,
        state: Iterable[bytes],
        *,
        events_processed: int,
        last_sortable_id: str,
        safe_window: str | None = None,
    ) -> bool:
        """Store a state, unless one that has processed more events is there. Whether it was stored.

        Args:
            state: its bytes, a chunk at a time; compressed on the way, never held whole.
        """
        _check_names(projector, version)
        if events_processed < 0:
            raise InvalidInput("events_processed", "must not be negative")
        with tempfile.SpooledTemporaryFile(max_size=4 * CHUNK) as spool:
            packed = pack(state, spool)
            spool.seek(0)
            large = packed.compressed > self.inline_bytes
            key = f"{self.prefix}/{projector}/{packed.sha256}.bin" if large else None
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
        return self.driver.run(states.upsert(self.table, self.keys, stored)) is None

    def find(self, projector: str, version: str) -> StoredState | None:
        """What is known of a version's state, without its content; None where there is none."""
        _check_names(projector, version)
        return self.driver.run(states.latest(self.table, self.keys, projector, version))

    def find_any(self, projector: str) -> StoredState | None:
        """The state of the version that has processed most events."""
        return max(self.list(projector), key=lambda state: state.events_processed, default=None)

    def list(self, projector: str) -> list[StoredState]:
        """The states of every version of a projector."""
        _check_names(projector, "-")
        return self.driver.run(states.versions(self.table, self.keys, projector))

    def open(self, state: StoredState) -> Iterator[bytes]:
        """A state's content, a chunk at a time.

        Raises:
            MissingBody: its object is not in the bucket.
            CorruptData: it does not decompress.
        """
        if state.offload_key is not None:
            return unpack(self.objects.get(state.offload_key))
        if state.inline is None:
            raise CorruptData(f"{state.projector} {state.version}: neither in its item nor in the bucket")
        return unpack([from_text(state.inline)])

    def delete(self, projector: str, version: str) -> None:
        """Delete a version's state; an object of its own is then an orphan."""
        _check_names(projector, version)
        self.driver.run(states.delete(self.table, self.keys, projector, version))

    def orphans(self, projector: str) -> Iterator[str]:
        """Keys of a projector's objects that no version names: replaced, deleted, or left behind by a
        crash.
        """
        named = {state.offload_key for state in self.list(projector)}
        return (key for key in self.objects.old_keys(f"{self.prefix}/{projector}/") if key not in named)

    def remove_orphans(self, projector: str) -> int:
        """Delete a projector's orphans; how many there were."""
        removed = 0
        for key in self.orphans(projector):
            if all(state.offload_key != key for state in self.list(projector)):
                self.objects.delete(key)
                removed += 1
        return removed


def _check_names(projector: str, version: str) -> None:
    for name, value in (("projector", projector), ("version", version)):
        if not value or "/" in value or not value.isprintable() or len(value.encode()) > MAX_NAME_BYTES:
            raise InvalidInput(name, f"must be 1 to {MAX_NAME_BYTES} bytes of printable text without /")
