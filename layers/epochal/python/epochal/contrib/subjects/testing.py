"""Keys of subjects in memory, and a forget log. Needs the extra `subjects`."""

from __future__ import annotations

import os

from epochal.contrib.subjects.items import FORGET_LOG, SUBJECT_KEYS
from epochal.contrib.subjects.sealing import KEY_BYTES, NONCE_BYTES, Sealed, Subjects, decrypt, encrypt
from epochal.lazy_dataclasses import dataclass, field
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables


@dataclass(frozen=True, slots=True)
class MemoryWrapping:
    """Wraps data keys as KMS does: bound to their subject."""

    secret: bytes = field(default_factory=lambda: os.urandom(KEY_BYTES), repr=False)

    def fresh(self, subject: str) -> tuple[bytes, bytes]:
        """A new data key, plain and wrapped."""
        key, nonce = os.urandom(KEY_BYTES), os.urandom(NONCE_BYTES)
        return key, nonce + encrypt(self.secret, subject, nonce, key).ciphertext

    def unwrap(self, subject: str, wrapped: bytes) -> bytes:
        """The plain key; raises `CorruptData` where it was wrapped for another subject."""
        nonce, ciphertext = wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:]
        return decrypt(self.secret, Sealed(subject=subject, nonce=nonce, ciphertext=ciphertext))


def memory_subjects(
    tables: MemoryTables | None = None, *, table: str = SUBJECT_KEYS.kind, log: str = "", keep: float = 0.0
) -> Subjects:
    """Keys of subjects, of which no process keeps any unless told. `log` is the table of a forget log, if any."""
    tables = tables or MemoryTables({spec.kind: spec for spec in (SUBJECT_KEYS, FORGET_LOG)})
    driver = Driver(execute=tables.execute, meter=Meter())
    return Subjects(driver=driver, table=table, wrapping=MemoryWrapping(), log=log, keep=keep)
