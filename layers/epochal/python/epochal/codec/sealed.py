"""Sealed bodies: each is encrypted under its subject's own key, so that destroying the key forgets the subject.

    {"$sealed":1,"subject":"…","nonce":"…","body":"…"}      nonce and body in base64

A sealed body is JSON, whatever it was before, so every layout takes it, and so do unfolds, snapshots, claim checks,
projection states, exports and backups: wherever a copy turns up, it is the same ciphertext. AES-256-GCM; the subject
and the version of this format are authenticated with the body, so that a body cannot be passed off as another
subject's. This outlives the code: FORMATS §7.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Final

from epochal.errors import CorruptData
from epochal.extras import brought_by
from epochal.model.events import SEALED

with brought_by("subjects", "sealed bodies", "cryptography"):
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VERSION: Final = 1
KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
_MARK: Final = f'{{"{SEALED}":'.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """An encrypted body and whose it is."""

    subject: str
    nonce: bytes
    ciphertext: bytes


def encrypt(key: bytes, subject: str, nonce: bytes, body: bytes) -> Sealed:
    """Encrypt a body; a nonce is never used twice with one key."""
    return Sealed(subject=subject, nonce=nonce, ciphertext=AESGCM(key).encrypt(nonce, body, _bound(subject)))


def decrypt(key: bytes, sealed: Sealed) -> bytes:
    """The body; raises `CorruptData` where key, subject or body are not those of the encryption."""
    try:
        return AESGCM(key).decrypt(sealed.nonce, sealed.ciphertext, _bound(sealed.subject))
    except InvalidTag as error:
        raise CorruptData(f"a sealed body of {sealed.subject!r} is not what was sealed") from error


def write_sealed(sealed: Sealed) -> bytes:
    """The JSON document that is stored."""
    fields = {
        SEALED: VERSION,
        "subject": sealed.subject,
        "nonce": b64encode(sealed.nonce).decode(),
        "body": b64encode(sealed.ciphertext).decode(),
    }
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def read_sealed(body: bytes) -> Sealed | None:
    """What a stored body seals; None where it is no sealed body.

    Raises:
        CorruptData: it begins like one but cannot be read, or its version is unknown to this code.
    """
    if not body.startswith(_MARK):
        return None
    try:
        fields = json.loads(body)
        nonce, ciphertext = (
            b64decode(fields["nonce"], validate=True),
            b64decode(fields["body"], validate=True),
        )
        subject, version = fields["subject"], fields[SEALED]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CorruptData("a sealed body that cannot be read") from error
    if version != VERSION or not isinstance(subject, str) or len(nonce) != NONCE_BYTES:
        raise CorruptData("a sealed body of an unknown version, or without subject or nonce")
    return Sealed(subject=subject, nonce=nonce, ciphertext=ciphertext)


def _bound(subject: str) -> bytes:
    return f"{VERSION} {subject}".encode()
