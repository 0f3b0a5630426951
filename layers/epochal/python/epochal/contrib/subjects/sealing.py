"""Forgetting a person: bodies sealed under a key of each subject's own, and the key destroyed.

    sealed = subjects.seal("user-7", b'{"name":"Ada"}')       store it as any body, in any layout
    subjects.unseal(sealed)                                   the body, or `Shredded` once the subject is forgotten
    subjects.forget("user-7")                                 no copy of what was sealed can be read again

Events stay where they are, so indices, versions and counts stay true; only what was sealed is gone. Processes keep keys
for a while (`keep`), so that reading a thousand events asks for one key: that long after `forget`, a process that had
the key can still unseal. What was unsealed earlier and written elsewhere in the clear cannot be taken back from here.

KMS wraps the keys, each bound to its subject: another subject's cannot be passed off as its own.

    no permission, no such key, a key that is disabled     Refused
    throttled, time-out, cut off, internal error           Unavailable
    anything else                                          InvalidRequest: a defect of ours
"""

from __future__ import annotations

import json
import os
import threading
import time
from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from epochal.contrib.subjects.items import Forgotten, Wrapped, destroy, forgotten, install, look_up
from epochal.deciders.codecs import EventCodec, Sealing, Stored
from epochal.dynamo.aws_errors import translate_errors
from epochal.dynamo.clients import service_client
from epochal.dynamo.interpreter import lazily
from epochal.dynamo.stores import HERE, Place
from epochal.errors import (
    CorruptData,
    EpochalError,
    InvalidInput,
    InvalidRequest,
    SubjectForgotten,
    brought_by,
)
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.events import SEALED, Event, format_ticks, from_unix_nanoseconds
from epochal.model.kinds import must_be_done, must_be_plain
from epochal.plan.ops import Scan
from epochal.store.driver import Driver

# Sealed bodies: each is encrypted under its subject's own key, so that destroying the key forgets the subject.
#
#     {"$sealed":1,"subject":"…","nonce":"…","body":"…"}      nonce and body in base64
#
# A sealed body is JSON, whatever it was before, so every layout takes it, and so do unfolds, snapshots, claim checks,
# projection states, exports and backups: wherever a copy turns up, it is the same ciphertext. AES-256-GCM; the subject
# and the version of this format are authenticated with the body, so that a body cannot be passed off as another
# subject's. This outlives the code: FORMATS §7.

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


E = TypeVar("E")

KEEP_SECONDS: Final = 300.0
KEPT: Final = 10_000
"""Keys that a process holds: some 2 MB."""

MAX_SUBJECT_BYTES: Final = 1_024


class Wrapping(Protocol):
    """Wraps data keys: KMS, or memory in tests."""

    def fresh(self, subject: str) -> tuple[bytes, bytes]:
        """A new data key of 32 bytes, plain and wrapped, bound to the subject."""

    def unwrap(self, subject: str, wrapped: bytes) -> bytes:
        """The plain key."""


@dataclass(frozen=True, slots=True)
class Shredded:
    """Stands for a body whose subject has been forgotten."""

    subject: str


@dataclass(frozen=True, slots=True)
class _Moment:
    """A time by two clocks. Either may stand still or go back: the process's own while it is frozen, as functions are
    between requests, and the one on the wall when somebody sets it.
    """

    process: float
    wall: int

    def is_within(self, seconds: float, since: _Moment) -> bool:
        """Whether less has passed `since`, by whichever clock has gone further."""
        return max(self.process - since.process, (self.wall - since.wall) / 1e9) < seconds


class _Held:
    """Unwrapped keys, each since when it was looked up; the one unused longest goes first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: OrderedDict[str, tuple[bytes, _Moment]] = OrderedDict()

    def get(self, subject: str, now: _Moment, seconds: float) -> bytes | None:
        with self._lock:
            if subject not in self._keys:
                return None
            key, since = self._keys[subject]
            if not now.is_within(seconds, since):
                del self._keys[subject]
                return None
            self._keys.move_to_end(subject)
            return key

    def put(self, subject: str, key: bytes, since: _Moment) -> None:
        with self._lock:
            self._keys[subject] = key, since
            if len(self._keys) > KEPT:
                self._keys.popitem(last=False)

    def drop(self, subject: str) -> None:
        with self._lock:
            self._keys.pop(subject, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subjects:
    """Keys of subjects in their table. Safe under threads.

    Attributes:
        log: table of the forget log; empty for none. With it, a key that comes back in a restored table opens nothing.
        keep: seconds for which an unwrapped key is used once it was looked up; 0 for none.
    """

    driver: Driver
    table: str
    wrapping: Wrapping
    log: str = ""
    keep: float = KEEP_SECONDS
    now: Callable[[], int] = time.time_ns
    fresh: Callable[[int], bytes] = os.urandom
    _held: _Held = field(default_factory=_Held, repr=False)

    def seal(self, subject: str, body: bytes) -> bytes:
        """Encrypt a body under its subject's key, made where there is none. The answer is JSON, a third larger.

        Raises:
            InvalidInput: the subject is empty, over 1,024 bytes, or no Unicode text.
            SubjectForgotten: its key was destroyed, and it gets no other.
        """
        _check(subject)
        key = self._key(subject, make=True)
        if key is None:
            raise SubjectForgotten(subject)
        return write_sealed(encrypt(key, subject, self.fresh(NONCE_BYTES), body))

    def unseal(self, body: bytes) -> bytes | Shredded:
        """A body as it was sealed; one that never was comes back as it is.

        Raises:
            CorruptData: it is not what was sealed.
        """
        sealed = read_sealed(body)
        if sealed is None:
            return body
        if not _is_subject(sealed.subject):
            raise CorruptData("a sealed body of nobody who could have a key")
        key = self._key(sealed.subject, make=False)
        return Shredded(sealed.subject) if key is None else decrypt(key, sealed)

    def forget(self, subject: str) -> None:
        """Destroy a subject's key, for ever. It may be called again; a subject that never had a key gets none either.

        Raises:
            InvalidInput: the subject is none that `seal` takes.
        """
        _check(subject)
        timestamp = self._timestamp()
        # The log first: after a crash in between no caller has an answer, but the subject is forgotten already.
        for table in filter(None, (self.log, self.table)):
            self.driver.run(destroy(table, subject, timestamp))
        self._held.drop(subject)

    def is_forgotten(self, subject: str) -> bool:
        """Whether a subject's key was destroyed; raises as `forget` does."""
        _check(subject)
        return self._logged(subject) or isinstance(self.driver.run(look_up(self.table, subject)), Forgotten)

    def reapply(self) -> Iterator[str]:
        """Forget again the subjects that the log has and the table of keys lacks. Call it after a restore.

        The log is scanned. It may be interrupted and called again.

        Yields:
            Each subject that was not forgotten in the table.

        Raises:
            InvalidInput: there is no log.
        """
        if not self.log:
            raise InvalidInput("log", "is needed: there is no other record of who was forgotten")
        for page in self.driver.pages(Scan(table=self.log)):
            for subject, gone in forgotten(page.items).items():
                if not isinstance(self.driver.run(look_up(self.table, subject)), Forgotten):
                    self.driver.run(destroy(self.table, subject, gone.timestamp))
                    self._held.drop(subject)
                    yield subject

    def _key(self, subject: str, *, make: bool) -> bytes | None:
        """A subject's key. None where it is forgotten, or where it has no key and none shall be made."""
        # Before the look-up: else a subject that is forgotten meanwhile would be read for longer than `keep`.
        since = _Moment(self.driver.clock(), self.now())
        held = self._held.get(subject, since, self.keep)
        if held is not None:
            return held
        if self._logged(subject):
            return None
        standing = self.driver.run(look_up(self.table, subject))
        if standing is None and make:
            _, wrapped = self.wrapping.fresh(subject)
            standing = self.driver.run(install(self.table, subject, Wrapped(wrapped), self._timestamp()))
        if not isinstance(standing, Wrapped):
            return None
        key = self.wrapping.unwrap(subject, standing.key)
        self._held.put(subject, key, since)
        return key

    def _logged(self, subject: str) -> bool:
        """Whether the log says that a subject is forgotten."""
        return bool(self.log) and self.driver.run(look_up(self.log, subject)) is not None

    def _timestamp(self) -> str:
        return format_ticks(from_unix_nanoseconds(self.now()))


def _check(subject: str) -> None:
    if not _is_subject(subject):
        raise InvalidInput("subject", f"must be Unicode text of 1 to {MAX_SUBJECT_BYTES:,} bytes")


def _is_subject(subject: str) -> bool:
    try:
        return 0 < len(subject.encode()) <= MAX_SUBJECT_BYTES
    except UnicodeEncodeError:
        return False


def _encode_unquoted(codec: EventCodec[E], event: E) -> Event:
    """The event to store. The error of a codec may quote an event that it refuses, and errors go where the
    destruction of the key does not reach: into logs and causes. So its values are left out.

    The new error is raised outside of `except`: inside, the quoting one would be its context, which `from None` hides
    from traces, and not from trackers of errors.
    """
    try:
        return must_be_done(codec.encode(event), "encode")
    except InvalidInput as error:
        if not error.field.startswith("events."):
            raise
        kind = ".".join(error.field.split(".")[:2])
    except EpochalError:
        raise
    except Exception:  # noqa: BLE001  # a codec of the user's own, which may raise and quote anything
        kind = f"events.{type(event).__name__}"
    rule = "has a value that could not be read back; encode it with the codec that is sealed to see which"
    raise InvalidInput(kind, rule)


def _decode_unquoted(codec: EventCodec[E], stored: Stored) -> E | None:
    """The event that was sealed. What its codec raises may quote the body, so it is left out, as in encoding."""
    try:
        return codec.decode(stored)
    except (CorruptData, InvalidInput):
        pass
    except EpochalError:  # of the store, if a codec asks one
        raise
    except Exception:  # noqa: BLE001, S110  # a codec of the user's own, which may raise and quote anything
        pass
    raise CorruptData(f"{stored.where}: its sealed body is not what its type says; unseal it to see why")


def sealed_codec(
    codec: EventCodec[E],
    subjects: Subjects,
    *,
    subject_of: Callable[[E], str | None],
    shredded: Callable[[Stored, Shredded], E | None],
) -> EventCodec[E]:
    """A codec that seals the data of events, and of snapshots, that have a subject.

    Args:
        subject_of: whose an event is; None for nobody's, which is stored as it is.
        shredded: the domain's event for one that can no longer be read; None leaves it out of the state.
    """
    must_be_plain(subject_of, "subject_of")
    must_be_plain(shredded, "shredded")

    def encode(event: E) -> Event:
        encoded = _encode_unquoted(codec, event)
        subject = must_be_done(subject_of(event), "subject_of")
        if subject is None:
            return encoded
        if not isinstance(encoded.data, bytes):
            raise InvalidInput(
                "events", "a body that lies in the bucket already must be sealed before it goes there"
            )
        return replace(encoded, data=subjects.seal(subject, encoded.data))

    def decode(stored: Stored) -> E | None:
        body = subjects.unseal(stored.data)
        if isinstance(body, Shredded):
            return must_be_done(shredded(stored, body), "shredded")
        if body is stored.data:
            return codec.decode(stored)
        return _decode_unquoted(codec, replace(stored, data=body))

    def unseal(body: bytes) -> bytes | None:
        opened = subjects.unseal(body)
        return None if isinstance(opened, Shredded) else opened

    sealing = Sealing(seal=subjects.seal, unseal=unseal)
    return replace(codec, encode=encode, decode=decode, sealing=sealing)


if TYPE_CHECKING:
    from mypy_boto3_kms.client import KMSClient


@dataclass(frozen=True, slots=True)
class KmsWrapping:
    """Wraps under one KMS key. Its policy says who may unseal anything at all.

    Attributes:
        key_id: the KMS key's id, ARN or alias; only to wrap, since what is wrapped names its key.
    """

    client: KMSClient
    key_id: str

    def fresh(self, subject: str) -> tuple[bytes, bytes]:
        """A new data key, plain and wrapped.

        Raises:
            Refused: the KMS key is not there, or not for us to use.
            Unavailable: KMS does not answer.
        """
        with translate_errors("kms:GenerateDataKey"):
            made = self.client.generate_data_key(
                KeyId=self.key_id, NumberOfBytes=KEY_BYTES, EncryptionContext={"subject": subject}
            )
        return made["Plaintext"], made["CiphertextBlob"]

    def unwrap(self, subject: str, wrapped: bytes) -> bytes:
        """The plain key.

        Raises:
            CorruptData: it was wrapped for another subject, or is damaged.
            Refused, Unavailable: as above.
        """
        try:
            with translate_errors("kms:Decrypt"):
                opened = self.client.decrypt(CiphertextBlob=wrapped, EncryptionContext={"subject": subject})
        except InvalidRequest as error:
            if error.code != "InvalidCiphertextException":
                raise
            raise CorruptData(f"{subject}: its wrapped key is not its own") from error
        return opened["Plaintext"]


def open_subjects(table: str, *, kms_key: str, log: str = "", place: Place = HERE) -> Subjects:
    """Keys of subjects, wrapped by a KMS key, in a table without point-in-time recovery (docs/guide/forgetting.md).

    Args:
        log: a second table, of forgotten subjects: they stay forgotten, whatever is restored.
    """
    client = lazily(
        partial(service_client, "kms", endpoint=place.endpoint, region=place.region, retried=True)
    )
    wrapping = place.blocking(KmsWrapping(client, kms_key))
    return Subjects(driver=place.driver(), table=table, wrapping=wrapping, log=log)
