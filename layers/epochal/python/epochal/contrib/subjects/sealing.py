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
from epochal.dynamo.lazy_clients import lazily
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
from epochal.model.body_marks import SEALED
from epochal.model.events import Event
from epochal.model.kinds import must_be
from epochal.model.moments import format_ticks, from_unix_nanoseconds
from epochal.model.plain_functions import must_be_done, must_be_plain
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
    """An encrypted body, with its subject and the nonce of the encryption."""

    subject: str
    nonce: bytes
    ciphertext: bytes


def encrypt(key: bytes, subject: str, nonce: bytes, body: bytes) -> Sealed:
    """Encrypt a body under a subject's key. A nonce must never be used twice with one key."""
    return Sealed(subject=subject, nonce=nonce, ciphertext=AESGCM(key).encrypt(nonce, body, _bound(subject)))


def decrypt(key: bytes, sealed: Sealed) -> bytes:
    """Decrypt a sealed body with its subject's key; raise `CorruptData` if it is not what was sealed.

    Raises:
        CorruptData: key, subject or body are not those of the encryption.
    """
    try:
        return AESGCM(key).decrypt(sealed.nonce, sealed.ciphertext, _bound(sealed.subject))
    except InvalidTag as error:
        raise CorruptData(
            f"a sealed body of {sealed.subject!r} cannot be decrypted: its content or key is not the original"
        ) from error


def write_sealed(sealed: Sealed) -> bytes:
    """Serialize a sealed body as the JSON document that is stored."""
    fields = {
        SEALED: VERSION,
        "subject": sealed.subject,
        "nonce": b64encode(sealed.nonce).decode(),
        "body": b64encode(sealed.ciphertext).decode(),
    }
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def read_sealed(body: bytes) -> Sealed | None:
    """Parse a stored body as a sealed body; return None if it is not one, raise if it cannot be read.

    Raises:
        CorruptData: it begins like a sealed body but cannot be read, or has a version that this code does not know.
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
        raise CorruptData("a sealed body cannot be read") from error
    if version != VERSION or not isinstance(subject, str) or len(nonce) != NONCE_BYTES:
        raise CorruptData("a sealed body has an unknown version, or lacks a subject or nonce")
    return Sealed(subject=subject, nonce=nonce, ciphertext=ciphertext)


def _bound(subject: str) -> bytes:
    """Return the additional data that is authenticated with a body: the format's version and the subject."""
    return f"{VERSION} {subject}".encode()


E = TypeVar("E")

KEEP_SECONDS: Final = 300.0
KEPT: Final = 10_000
"""Maximum number of keys that a process caches: some 2 MB."""

MAX_SUBJECT_BYTES: Final = 1_024


class Wrapping(Protocol):
    """Encrypts (wraps) and decrypts the data keys of subjects: with KMS, or in memory for tests."""

    def fresh(self, subject: str) -> tuple[bytes, bytes]:
        """Generate a data key of 32 bytes, bound to the subject; return it plain and wrapped.

        Args:
            subject: name of the subject.
        """

    def unwrap(self, subject: str, wrapped: bytes) -> bytes:
        """Decrypt a wrapped data key, and return it plain.

        Args:
            subject: name of the subject that the key is bound to.
            wrapped: wrapped key, as `fresh` returned it.
        """


@dataclass(frozen=True, slots=True)
class Shredded:
    """Placeholder for a body that can no longer be read, because its subject has been forgotten.

    Attributes:
        subject: name of the subject that has been forgotten.
    """

    subject: str


@dataclass(frozen=True, slots=True)
class _Moment:
    """A time by two clocks, of which either may stand still or go back.

    The process's clock stands still while the process is frozen, as functions are between requests. The wall clock
    jumps when it is set.

    Attributes:
        process: seconds of the process's monotonic clock.
        wall: nanoseconds of the wall clock, since 1970.
    """

    process: float
    wall: int

    def is_within(self, seconds: float, since: _Moment) -> bool:
        """Whether less than so many seconds have passed `since`, by the clock that has gone further."""
        return max(self.process - since.process, (self.wall - since.wall) / 1e9) < seconds


class _Held:
    """Cache of at most `KEPT` unwrapped keys with their look-up times; evicts the least recently used."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: OrderedDict[str, tuple[bytes, _Moment]] = OrderedDict()

    def get(self, subject: str, now: _Moment, seconds: float) -> bytes | None:
        """Return a subject's cached key; None, and evict the key, if it was looked up `seconds` ago or more."""
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
        """Cache a subject's key, looked up at `since`; evict the least recently used key above `KEPT`."""
        with self._lock:
            self._keys[subject] = key, since
            if len(self._keys) > KEPT:
                self._keys.popitem(last=False)

    def drop(self, subject: str) -> None:
        """Remove a subject's key from the cache."""
        with self._lock:
            self._keys.pop(subject, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subjects:
    """Encryption keys of subjects (persons), in a table: encrypts and decrypts bodies, and forgets subjects.
    Thread-safe.

    Attributes:
        driver: executes requests to the tables.
        table: name of the table of keys.
        wrapping: encrypts and decrypts the data keys of subjects, with KMS or in memory for tests.
        log: name of the table of the forget log; empty for none. With a log, a key that comes back in a restored table
            opens nothing.
        keep: seconds for which a subject's decrypted key is cached after its look-up; 0 for no cache.
        now: function that returns the time in nanoseconds since 1970.
        fresh: function that returns a given number of random bytes.
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
        """Encrypt a body under its subject's key, made if there is none; return JSON, raise if forgotten.

        The sealed body is a third larger.

        Args:
            subject: name of the subject, 1 to 1,024 bytes of UTF-8.
            body: body to encrypt.

        Raises:
            InvalidInput: the subject is empty, over 1,024 bytes, or not valid Unicode text; the body is not bytes.
            SubjectForgotten: the subject's key was destroyed, and it gets no other.
        """
        _check(subject)
        must_be(bytes, body, "body", "bytes")
        key = self._key(subject, make=True)
        if key is None:
            raise SubjectForgotten(subject)
        return write_sealed(encrypt(key, subject, self.fresh(NONCE_BYTES), body))

    def unseal(self, body: bytes) -> bytes | Shredded:
        """Decrypt a body, return it unchanged if it is not sealed, or `Shredded` if its subject is forgotten.

        A body that was never sealed is returned unchanged.

        Args:
            body: body that `seal` returned, or one that was never sealed.

        Raises:
            CorruptData: the body is not what was sealed.
            InvalidInput: the body is not bytes.
        """
        must_be(bytes, body, "body", "bytes")
        sealed = read_sealed(body)
        if sealed is None:
            return body
        if not _is_subject(sealed.subject):
            raise CorruptData("a sealed body names a subject that cannot have a key")
        key = self._key(sealed.subject, make=False)
        return Shredded(sealed.subject) if key is None else decrypt(key, sealed)

    def forget(self, subject: str) -> None:
        """Destroy a subject's key for ever, so that nothing sealed with it can be read again.

        It may be called again. A subject that never had a key cannot get one afterwards.

        Args:
            subject: name of the subject.

        Raises:
            InvalidInput: the subject is not valid for `seal`.
        """
        _check(subject)
        timestamp = self._timestamp()
        # The log first: after a crash in between no caller has an answer, but the subject is forgotten already.
        for table in filter(None, (self.log, self.table)):
            self.driver.run(destroy(table, subject, timestamp))
        self._held.drop(subject)

    def is_forgotten(self, subject: str) -> bool:
        """Return whether a subject's key was destroyed, by the forget log or the table of keys.

        Args:
            subject: name of the subject.

        Raises:
            InvalidInput: the subject is not valid for `seal`.
        """
        _check(subject)
        return self._logged(subject) or isinstance(self.driver.run(look_up(self.table, subject)), Forgotten)

    def reapply(self) -> Iterator[str]:
        """Forget again, and yield, each subject of the forget log that has no tombstone in the table of keys.

        Call it after a restore. The log is scanned. A run may be interrupted, and repeated.

        Yields:
            Each subject that was not forgotten in the table of keys.

        Raises:
            InvalidInput: there is no log.
        """
        if not self.log:
            raise InvalidInput("log", "is needed: there is no other record of the forgotten subjects")
        for page in self.driver.pages(Scan(table=self.log)):
            for subject, record in forgotten(page.items).items():
                if not isinstance(self.driver.run(look_up(self.table, subject)), Forgotten):
                    self.driver.run(destroy(self.table, subject, record.timestamp))
                    self._held.drop(subject)
                    yield subject

    def _key(self, subject: str, *, make: bool) -> bytes | None:
        """Return a subject's plain key, new if `make` and there is none; None if forgotten or without key.

        Without a key, a new one is made with `make`; else the result is None, too.
        """
        # Taken before the look-up: otherwise the key of a subject that is forgotten meanwhile would be used
        # for longer than `keep`.
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
        """Whether the forget log has a subject."""
        return bool(self.log) and self.driver.run(look_up(self.log, subject)) is not None

    def _timestamp(self) -> str:
        """Return the current time as ISO 8601."""
        return format_ticks(from_unix_nanoseconds(self.now()))


def _check(subject: str) -> None:
    """Raise `InvalidInput` unless a subject is Unicode text of 1 to 1,024 bytes."""
    must_be(str, subject, "subject", "text")
    if not _is_subject(subject):
        raise InvalidInput("subject", f"must be Unicode text of 1 to {MAX_SUBJECT_BYTES:,} bytes")


def _is_subject(subject: str) -> bool:
    """Whether a subject is Unicode text of 1 to 1,024 bytes."""
    try:
        return 0 < len(subject.encode()) <= MAX_SUBJECT_BYTES
    except UnicodeEncodeError:
        return False


def _encode_unquoted(codec: EventCodec[E], event: E) -> Event:
    """Encode an event; replace errors that may quote the event by one that names its type only.

    Errors go to places that the destruction of a key does not reach, such as logs and the causes of other errors.

    The new error is raised outside of `except`. Inside, the quoting error would be its context, which `from None`
    hides from tracebacks, but not from error trackers.
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
    rule = "has a value that could not be read back; encode it with the codec before sealing to see which"
    raise InvalidInput(kind, rule)


def _decode_unquoted(codec: EventCodec[E], stored: Stored) -> E | None:
    """Decode an event that was sealed; replace errors that may quote its body by one that does not."""
    try:
        return codec.decode(stored)
    except (CorruptData, InvalidInput):
        pass
    except EpochalError:  # of the store, if a codec asks one
        raise
    except Exception:  # noqa: BLE001, S110  # a codec of the user's own, which may raise and quote anything
        pass
    raise CorruptData(f"{stored.where}: its sealed body does not match its type; unseal it to see why")


def sealed_codec(
    codec: EventCodec[E],
    subjects: Subjects,
    *,
    subject_of: Callable[[E], str | None],
    shredded: Callable[[Stored, Shredded], E | None],
) -> EventCodec[E]:
    """Wrap a codec so that the data of events and snapshots about a subject are sealed with its key.

    Args:
        codec: codec of the unsealed events.
        subjects: keys of the subjects.
        subject_of: returns the subject of an event; None for an event without one, which is stored unsealed.
        shredded: returns the domain's event for one that can no longer be read; None leaves the event out of the
            state.
    """
    must_be_plain(subject_of, "subject_of")
    must_be_plain(shredded, "shredded")

    def encode(event: E) -> Event:
        """Encode an event, and seal its data if it has a subject."""
        encoded = _encode_unquoted(codec, event)
        subject = must_be_done(subject_of(event), "subject_of")
        if subject is None:
            return encoded
        if not isinstance(encoded.data, bytes):
            raise InvalidInput(
                "events",
                "must not have a body that is already in the bucket: seal the body before it is uploaded",
            )
        return replace(encoded, data=subjects.seal(subject, encoded.data))

    def decode(stored: Stored) -> E | None:
        """Unseal and decode an event; call `shredded` if its subject is forgotten."""
        body = subjects.unseal(stored.data)
        if isinstance(body, Shredded):
            return must_be_done(shredded(stored, body), "shredded")
        if body is stored.data:
            return codec.decode(stored)
        return _decode_unquoted(codec, replace(stored, data=body))

    def unseal(body: bytes) -> bytes | None:
        """Unseal a body; return None if its subject is forgotten."""
        opened = subjects.unseal(body)
        return None if isinstance(opened, Shredded) else opened

    sealing = Sealing(seal=subjects.seal, unseal=unseal)
    return replace(codec, encode=encode, decode=decode, sealing=sealing)


if TYPE_CHECKING:
    from mypy_boto3_kms.client import KMSClient


@dataclass(frozen=True, slots=True)
class KmsWrapping:
    """Wraps data keys under one KMS key, whose policy controls who can unseal anything.

    Attributes:
        client: a KMS client.
        key_id: id, ARN or alias of the KMS key. Only wrapping needs it, because a wrapped key names its KMS key.
    """

    client: KMSClient
    key_id: str

    def fresh(self, subject: str) -> tuple[bytes, bytes]:
        """Generate a data key, bound to the subject; return it plain and wrapped.

        Raises:
            Refused: the KMS key does not exist, or the credentials do not allow its use.
            Unavailable: KMS does not answer.
        """
        with translate_errors("kms:GenerateDataKey"):
            response = self.client.generate_data_key(
                KeyId=self.key_id, NumberOfBytes=KEY_BYTES, EncryptionContext={"subject": subject}
            )
        return response["Plaintext"], response["CiphertextBlob"]

    def unwrap(self, subject: str, wrapped: bytes) -> bytes:
        """Return the plain key of a wrapped one, by KMS; raise `CorruptData` if it is another subject's.

        Raises:
            CorruptData: the key was wrapped for another subject, or is damaged.
            Refused: the KMS key does not exist, or the credentials do not allow its use.
            Unavailable: KMS does not answer.
        """
        try:
            with translate_errors("kms:Decrypt"):
                opened = self.client.decrypt(CiphertextBlob=wrapped, EncryptionContext={"subject": subject})
        except InvalidRequest as error:
            if error.code != "InvalidCiphertextException":
                raise
            raise CorruptData(f"{subject}: its wrapped key was not made for it") from error
        return opened["Plaintext"]


def open_subjects(table: str, *, kms_key: str, log: str = "", place: Place = HERE) -> Subjects:
    """Open the encryption keys of persons, in a table under a KMS key, to seal data and forget persons.

    The table must have no point-in-time recovery (docs/guide/forgetting.md).

    Args:
        table: name of the table of keys.
        kms_key: id, ARN or alias of the KMS key that wraps the keys of subjects.
        log: name of a second table, for the forget log: its subjects stay forgotten, whatever is restored.
        place: where the table is.
    """
    client = lazily(
        partial(service_client, "kms", endpoint=place.endpoint, region=place.region, retried=True)
    )
    wrapping = place.blocking(KmsWrapping(client, kms_key))
    return Subjects(driver=place.driver(), table=table, wrapping=wrapping, log=log)
