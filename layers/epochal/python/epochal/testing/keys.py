"""KMS in memory, for tests: keys are wrapped by a secret of the process."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from epochal.codec.sealed import KEY_BYTES, NONCE_BYTES, Sealed, decrypt, encrypt


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
