"""Events and unfolds as users hand them in and get them back.

Bodies are bytes, usually UTF-8 JSON; what they mean is the user's codec's business. A body that is already in
the bucket is a `Claim`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from epochal.errors import InvalidInput
from epochal.model.json_bodies import read_json, write_json
from epochal.model.kinds import must_be


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A body that is in the bucket, not in the item.

    Attributes:
        key: object key.
        sha256: 64 hex digits over the object's content.
        size: bytes of the object.
        encoding: how the object's content encodes the body (0 direct, 1 deflate, 2 brotli).
    """

    key: str
    sha256: str
    size: int
    encoding: int = 0


Body = bytes | Claim
"""A payload, or where it is in the bucket."""


def content_of(body: Body) -> bytes:
    """A body itself; raises `InvalidInput` where it was left in the bucket."""
    if isinstance(body, Claim):
        raise InvalidInput("fetch", f"must be true for what lies in the bucket, as {body.key} does")
    return body


def json_of(body: Body, where: str) -> Any:
    """The value of a body that is plain JSON; raises as `read_json`, and `InvalidInput` for one in the bucket."""
    if isinstance(body, Claim):
        raise InvalidInput("fetch", f"must be true to read {where}: its body is in the bucket, as {body.key}")
    return read_json(body, where)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event to append.

    Attributes:
        type: 1 to 512 bytes of UTF-8.
        data: the payload.
        meta: metadata, empty for none.
        timestamp: ISO 8601; when it happened. None: the moment of the append.
        correlation_id: the conversation it belongs to.
        causation_id: what caused it.
    """

    type: str
    data: Body = b""
    meta: Body = b""
    timestamp: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None

    def __post_init__(self) -> None:
        """Refuse values of another kind, above all bodies that are not encoded yet."""
        _check_fields(self.type, self.data, self.meta, self.timestamp)
        _check_text(self.correlation_id, "correlation_id")
        _check_text(self.causation_id, "causation_id")

    @classmethod
    def json(
        cls,
        type: str,  # noqa: A002  as the field is named
        value: object,
        /,
        *,
        meta: Body = b"",
        timestamp: str | None = None,
        correlation_id: str | None = None,
        causation_id: str | None = None,
    ) -> Event:
        """An event whose data are a value in plain JSON: what `json.dumps` takes, and as it writes it.

        Raises:
            InvalidInput: the value, or what is at the path that is named, is not JSON. NaN is not, nor are members
                that only codecs and subjects write.
        """
        return cls(
            type=type,
            data=write_json(value),
            meta=meta,
            timestamp=timestamp,
            correlation_id=correlation_id,
            causation_id=causation_id,
        )

    @property
    def content(self) -> bytes:
        """`data` where it is here; raises `InvalidInput` where it is a claim."""
        return content_of(self.data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """An event as the store holds it: event `index` of `stream`, counted from 0.

    `append_id` is on the first event of each append (16 bytes), and is None elsewhere and on events that
    other libraries wrote.
    """

    stream: str
    index: int
    type: str
    data: Body
    meta: Body
    timestamp: str
    correlation_id: str | None = None
    causation_id: str | None = None
    append_id: bytes | None = None

    @property
    def content(self) -> bytes:
        """`data` where it is here; raises `InvalidInput` where it is a claim."""
        return content_of(self.data)

    def json(self) -> Any:
        """The value of data in plain JSON, as `json.loads` reads it.

        Raises:
            InvalidInput: data are in the bucket, sealed, or of a version above 1: its codec reads that.
            CorruptData: they are not JSON.
        """
        return json_of(self.data, f"{self.stream} (index {self.index}), {self.type}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfold:
    """State derived from events, stored beside them in the Tip; the next write of unfolds replaces it."""

    type: str
    data: Body = b""
    meta: Body = b""
    timestamp: str | None = None

    def __post_init__(self) -> None:
        """Check the kinds of the fields."""
        _check_fields(self.type, self.data, self.meta, self.timestamp)

    @classmethod
    def json(
        cls,
        type: str,  # noqa: A002  as the field is named
        value: object,
        /,
        *,
        meta: Body = b"",
        timestamp: str | None = None,
    ) -> Unfold:
        """An unfold with `value` as plain JSON; raises `InvalidInput` for a value that JSON cannot hold."""
        return cls(type=type, data=write_json(value), meta=meta, timestamp=timestamp)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedUnfold:
    """An unfold as stored; `version` is the stream's version that it was made from."""

    version: int
    type: str
    data: Body
    meta: Body
    timestamp: str

    @property
    def content(self) -> bytes:
        """`data` where it is here; raises `InvalidInput` where it is a claim."""
        return content_of(self.data)

    def json(self) -> Any:
        """`data` as plain JSON; raises `InvalidInput` where a codec with upcasts wrote it."""
        return json_of(self.data, f"the unfold {self.type} of version {self.version}")


def _check_fields(kind: str, data: Body, meta: Body, timestamp: str | None) -> None:
    must_be(str, kind, "type", "text")
    must_be((bytes, Claim), data, "data", "bytes")
    must_be((bytes, Claim), meta, "meta", "bytes")
    must_be((str, type(None)), timestamp, "timestamp", "ISO 8601 text")


def _check_text(text: str | None, field: str) -> None:
    must_be((str, type(None)), text, field, "text")
