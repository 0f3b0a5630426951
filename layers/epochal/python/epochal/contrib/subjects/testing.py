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
    """Wraps data keys in memory as KMS does: each bound to its subject."""

    secret: bytes = field(default_factory=lambda: os.urandom(KEY_BYTES), repr=False)

    def fresh(self, subject: str) -> tuple[bytes, bytes]:
        """Generate a data key, bound to the subject; return it plain and wrapped."""
        key, nonce = os.urandom(KEY_BYTES), os.urandom(NONCE_BYTES)
        return key, nonce + encrypt(self.secret, subject, nonce, key).ciphertext

    def unwrap(self, subject: str, wrapped: bytes) -> bytes:
        """Return the plain key of a wrapped one; raise `CorruptData` if it is another subject's.

        Raises:
            CorruptData: the key was wrapped for another subject.
        """
        nonce, ciphertext = wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:]
        return decrypt(self.secret, Sealed(subject=subject, nonce=nonce, ciphertext=ciphertext))


def memory_subjects(
    tables: MemoryTables | None = None, *, table: str = SUBJECT_KEYS.kind, log: str = "", keep: float = 0.0
) -> Subjects:
    """Make `Subjects` on tables in memory; unwrapped keys are not cached unless `keep` is set.

    Args:
        tables: tables to use; None creates new ones.
        table: name of the table of keys.
        log: name of the table of the forget log; empty for none.
        keep: seconds for which an unwrapped key is cached.
    """
    tables = tables or MemoryTables({spec.kind: spec for spec in (SUBJECT_KEYS, FORGET_LOG)})
    driver = Driver(execute=tables.execute, meter=Meter())
    return Subjects(driver=driver, table=table, wrapping=MemoryWrapping(), log=log, keep=keep)
