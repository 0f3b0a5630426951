"""Aggregates: ids, events, snapshots, what a writer expects, and how payloads hold them.

An id is `<type>-<value>`, and values may hold `-`. Where a type held one too, two aggregates could share an id:
`user-account-1` is account 1 of `user-account`, or account-1 of `user`. So such a type must be declared, no declared
type followed by `-` begins another, and every id is read in one way: `AggregateTypes` sees to that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from epochal.codec import json
from epochal.codec.json import MARK
from epochal.contrib.event_store_adapter import PAYLOADS
from epochal.errors import CorruptData, InvalidInput
from epochal.lazy_dataclasses import dataclass
from epochal.model.kinds import must_be
from epochal.model.plain_json import read_json, write_json
from epochal.model.stream_names import MAX_NAME_BYTES, category_of
from epochal.model.versions import AtVersion, Expected

_PART: Final = re.compile(r"[A-Za-z0-9\-_.:~@+=]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateId:
    """Type and value that identify an aggregate.

    Make it with `aggregate_id`, which checks both.

    Attributes:
        type: type of the aggregate.
        value: id of the aggregate among those of its type.
    """

    type: str
    value: str

    def __str__(self) -> str:
        return f"{self.type}-{self.value}"


Hash = Callable[[AggregateId], int]
"""Hash function of an aggregate's id. It spreads aggregates over the shards of their tables' keys."""


def aggregate_id(kind: str, value: str) -> AggregateId:
    """Make an aggregate's id from its type and value, and check both.

    Args:
        kind: type of the aggregate.
        value: id of the aggregate among those of its type.

    Raises:
        InvalidInput: `type` or `value` is empty or has other characters than stream names have, or both together exceed
            512 bytes.
    """
    for field, text in (("type", kind), ("value", value)):
        must_be(str, text, field, "text")
        if not text:
            raise InvalidInput(field, "must not be empty")
        if not _PART.fullmatch(text):
            raise InvalidInput(field, "may hold only ASCII letters, digits and - _ . : ~ @ + =")
    if len(kind) + len(value) + 1 > MAX_NAME_BYTES:
        raise InvalidInput("value", f"the id must be at most {MAX_NAME_BYTES} bytes")
    return AggregateId(type=kind, value=value)


class AggregateTypes:
    """Declared types of aggregates in the tables, by which ids are read.

    The constructor makes sure that ids of different types can never be equal. A type without `-` need not be declared.
    """

    def __init__(self, types: Iterable[str]) -> None:
        """Declare types of aggregates whose ids can never be equal.

        Args:
            types: names of the types.

        Raises:
            InvalidInput: a type is malformed, or one type followed by `-` begins another.
        """
        if isinstance(types, str):  # also a collection of texts: its letters
            raise InvalidInput("types", "must be a list of names, not one")
        self._types = frozenset(types)
        for kind in self._types:
            aggregate_id(kind, "x")
            for other in self._types:
                if other.startswith(f"{kind}-"):
                    raise InvalidInput(
                        "types", f"{kind!r} followed by - begins {other!r}: ids would be ambiguous"
                    )

    def id(self, kind: str, value: str) -> AggregateId:
        """Make the id of an aggregate of a declared type.

        Args:
            kind: declared type of the aggregate.
            value: id of the aggregate among those of its type.

        Raises:
            InvalidInput: `kind` is not declared, or the id is malformed.
        """
        if not self._types:
            raise InvalidInput("type", "no type of aggregate is registered")
        if kind not in self._types:
            raise InvalidInput("type", f"{kind!r} is not registered")
        return aggregate_id(kind, value)

    def read(self, aid: str) -> AggregateId | None:
        """Parse an id into the one aggregate that it names; return None if its type or value would be empty.

        The type is the declared one that begins the id, or else what precedes the first `-`.

        Args:
            aid: id as text: type, `-` and value.
        """
        kind = next((name for name in self._types if aid.startswith(f"{name}-")), category_of(aid))
        value = aid[len(kind) + 1 :]
        return AggregateId(type=kind, value=value) if kind and value else None

    def check(self, aggregate: AggregateId) -> None:
        """Raise `InvalidInput` unless an aggregate's id reads back as the same aggregate.

        Otherwise the id would stand for an aggregate of another type.

        Args:
            aggregate: id of the aggregate.
        """
        kind, aid = aggregate.type, str(aggregate)
        parsed = self.read(aid)
        if parsed == aggregate:
            return
        if parsed is not None and parsed.type in self._types:
            raise InvalidInput(
                "type", f"{aid} is an id of the declared type {parsed.type!r}, not of {kind!r}"
            )
        raise InvalidInput("type", f"{kind!r} holds - and is not among the types declared for these tables")

    @property
    def names(self) -> frozenset[str]:
        """The declared types."""
        return self._types

    def __contains__(self, kind: str) -> bool:
        return kind in self._types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AggregateTypes) and other._types == self._types

    def __hash__(self) -> int:
        return hash(self._types)


UNDECLARED: Final = AggregateTypes(())
"""No declared types: for tables whose types hold no `-`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateEvent:
    """An event to append to an aggregate.

    Attributes:
        type: name of the kind of event.
        data: body of the event, UTF-8 JSON.
        occurred_at: when the event happened, ISO 8601; None for the moment of the append.
    """

    type: str
    data: bytes
    occurred_at: str | None = None

    def __post_init__(self) -> None:
        """Refuse values of wrong Python types, above all bodies that are not encoded yet."""
        must_be(str, self.type, "type", "text")
        must_be(bytes, self.data, "data", "bytes")
        must_be((str, type(None)), self.occurred_at, "occurred_at", "ISO 8601 text")

    @classmethod
    def json(cls, type: str, value: object, /, *, occurred_at: str | None = None) -> AggregateEvent:  # noqa: A002
        """Make an event whose data is a value serialized as plain JSON, as `json.dumps` writes it.

        Args:
            type: type of the event.
            value: value that `json.dumps` can write.
            occurred_at: time of the event, as of `AggregateEvent`; None for the moment of the append.

        Raises:
            InvalidInput: the value, or what is at the path that is named, is not JSON. NaN is not, nor are members that
                only codecs and subjects write.
        """
        return cls(type=type, data=write_json(value), occurred_at=occurred_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAggregateEvent:
    """An event as it is stored in an aggregate.

    Attributes:
        aggregate: id of the event's aggregate.
        seq_nr: number of the event in its aggregate, counted from 1.
        type: name of the kind of event.
        data: body of the event, UTF-8 JSON.
        occurred_at: when the event happened, as it is stored; other libraries store a number, which is kept as its
            digits.
    """

    aggregate: AggregateId
    seq_nr: int
    type: str
    data: bytes
    occurred_at: str

    @property
    def stream(self) -> str:
        """The aggregate's id as text, which is the name of its stream in the feed."""
        return str(self.aggregate)

    def json(self) -> Any:
        """Parse the event's data as plain JSON, as `json.loads` does.

        Raises:
            InvalidInput: the data is sealed, or of a version above 1: its codec reads that.
            CorruptData: the data is not JSON.
        """
        return read_json(self.data, f"{self.aggregate} (event {self.seq_nr}), {self.type}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """Version and last event number of an aggregate, which make the next append one request.

    Attributes:
        version: version of the optimistic lock, from 1; every append raises it.
        seq_nr: number of the aggregate's last event.
    """

    version: int
    seq_nr: int


ExpectedLock = Expected | AtVersion | Lock
"""Expected version of an aggregate: a state, a version, or a whole lock, which makes the append one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateSnapshot:
    """A snapshot: an aggregate's state as of one of its events, and the lock of its head.

    Attributes:
        aggregate: id of the aggregate.
        data: the state, UTF-8 JSON.
        seq_nr: number of the last event that is folded into the state.
        lock: version and last event number of the aggregate.
        made_with: class and version with which a decider made the snapshot; empty if that is unknown, as for another
            library's snapshot.
    """

    aggregate: AggregateId
    data: bytes
    seq_nr: int
    lock: Lock
    made_with: str = ""


# How payloads hold a type and its data: as one of event-store-adapter's libraries writes them. This outlives the code
# (FORMATS §2).
#
#     javascript     the default: JSON under its type, `{"type":...,"data":...}`
#     rust           tagged by serde: in a member `type`, or {"Created": {...}}
#     go             the type in a member
#     java           the type in the member `type` (Jackson); Kotlin and Scala likewise
#     php            the type in the member `typeName`; stored as text
#     plain          no type is named: .NET's, and others'
#
# In all forms but the first, the payload is the data, to the byte: its writer names the type in it, as the other
# library expects. A snapshot names no type. Data that looks wrapped is refused, since it would be another library's.
#
# An event is written once and read for ever. So data that a reader could not read back is refused: JSON nested so
# deeply that it depends on the reader's stack, and half of a surrogate pair, which UTF-8 cannot hold. Other libraries
# write both: half a pair is read all the same, and stays escaped.

MAX_DEPTH: Final = 500
"""Most levels of nested lists and objects in data: half of what Python's stack allows."""

_PLAIN: Final = b',"data":'
_MARKED: Final = _PLAIN + MARK


def wrap(kind: str, data: bytes) -> bytes:
    """Make the payload of an event or a snapshot: an object of its type and its data.

    Raises:
        InvalidInput: `data` is not UTF-8 JSON, or is nested too deeply.
    """
    checked(data)
    # Spliced, not parsed and written again: the user's bytes stay as they are.
    return b'{"type":' + json.dumps(kind) + b',"data":' + data + b"}"


def checked(data: bytes) -> Any:
    """Parse data that is to be stored, and return its JSON value.

    Raises:
        InvalidInput: a reader could not read the data back: it is not UTF-8 JSON, begins with a byte order mark, has a
            lone surrogate, or nests more than 500 lists and objects.
    """
    if data.startswith(MARK):
        raise InvalidInput("data", "must be JSON without a byte order mark before it")
    try:
        value = json.loads(data)
        if b"\\u" in data:
            json.dumps(value)
    except UnicodeEncodeError as error:
        raise InvalidInput("data", "must be JSON that UTF-8 can hold, without lone surrogates") from error
    except ValueError as error:
        raise InvalidInput("data", "must be UTF-8 JSON") from error
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise InvalidInput("data", f"must not nest more than {MAX_DEPTH} lists and objects")
    return value


def unwrap(payload: bytes) -> tuple[str, bytes]:
    """Split a wrapped payload into its type and the bytes of its data.

    The type is empty if the payload's type is not text.

    Raises:
        CorruptData: the payload is not JSON of the form {type, data}.
    """
    # Data with a byte order mark before it was accepted once, which is no JSON inside a payload. The pattern cannot
    # match inside a text: there, the quotes before the mark would be escaped.
    plain = payload.replace(_MARKED, _PLAIN, 1) if _MARKED in payload else payload
    try:
        fields = json.loads(plain)
        kind = fields["type"]
        return kind if isinstance(kind, str) else "", json.dumps_again(fields["data"])
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptData("a payload is not JSON of the form {type, data}") from error


def _depth(value: Any) -> int:
    """Return how deep lists and objects are nested in a value, without recursion."""
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, list | dict)]:
        depth += 1
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    return depth


_UNREADABLE: Final = (CorruptData, ValueError, TypeError, KeyError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A format of payloads: a function that writes payloads, and one that reads them.

    Attributes:
        write: makes a payload of a type and its data; raises `InvalidInput` for data that the form cannot hold.
        read: returns type and data of a payload, an empty type if it names none; raises `ValueError` or `CorruptData`
            for another form.
    """

    write: Callable[[str, bytes], bytes]
    read: Callable[[bytes], tuple[str, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Serializer:
    """Writes and reads payloads of events and snapshots as one library does.

    Attributes:
        name: name of the serializer in error messages.
        events: format of the payloads of events.
        snapshots: format of the payloads of snapshots. The type of a snapshot is that of its aggregate.
        text: whether payloads are stored as text instead of bytes; both are read.
    """

    name: str
    events: Form
    snapshots: Form
    text: bool = False

    def event(self, payload: bytes) -> tuple[str, bytes]:
        """Read type and data of an event's payload; raise `CorruptData` if it has another form.

        Args:
            payload: payload of a stored event.
        """
        return self._read(self.events, payload)

    def snapshot(self, payload: bytes) -> bytes:
        """Read the data of a snapshot's payload; raise `CorruptData` if it has another form.

        Args:
            payload: payload of a stored snapshot.
        """
        return self._read(self.snapshots, payload)[1]

    def type_of(self, payload: bytes) -> str:
        """Read the type of an event's payload; return an empty text if it has no type that can be stored.

        JSON can hold half of a surrogate pair, UTF-8 cannot.

        Args:
            payload: payload of a stored event.
        """
        try:
            kind = self.events.read(payload)[0]
            kind.encode()
        except _UNREADABLE:
            return ""
        return kind

    def _read(self, form: Form, payload: bytes) -> tuple[str, bytes]:
        """Read type and data of a payload in the given form.

        Raises:
            CorruptData: the payload has another form; the message lists the serializers to choose from.
        """
        try:
            return form.read(payload)
        except _UNREADABLE as error:
            cause = str(error) or type(error).__name__
            raise CorruptData(
                f"a payload that the serializer {self.name!r} cannot read: {cause}; libraries write other forms, which "
                f"`serializer` chooses: {', '.join(PAYLOADS)}"
            ) from error


_WRAPPED: Final = Form(write=wrap, read=unwrap)

JAVASCRIPT: Final = Serializer(name="javascript", events=_WRAPPED, snapshots=_WRAPPED)
"""The default serializer, whose payloads are those of the JavaScript library."""


def serializer_of(given: str | Serializer, field: str = "serializer") -> Serializer:
    """Return the serializer of that name; a `Serializer` is returned as it is.

    Raises:
        InvalidInput: there is no serializer of that name; the error names `field`.
    """
    if isinstance(given, Serializer):
        return given
    if given == JAVASCRIPT.name:
        return JAVASCRIPT
    if given not in PAYLOADS:
        raise InvalidInput(field, f"must be one of {', '.join(PAYLOADS)}, or a Serializer")
    return SERIALIZERS[given]


def bare(*members: str, variants: bool = False) -> Form:
    """Make a form of payload in which the payload is the data itself, which may name its type.

    Args:
        members: names of members of an object; the first that is there holds the type. Data without any of them is
            refused in writing, and accepted in reading. Without members the data names no type.
        variants: whether an object of one member, or a text alone, is of the type of that name, as serde tags by
            default.
    """

    def read(payload: bytes) -> tuple[str, bytes]:
        """Return type and data of a payload; raise `ValueError` if it is wrapped or no JSON."""
        data = payload.removeprefix(MARK)
        value = json.loads(data)
        if _looks_wrapped(value):
            raise ValueError("it is of the form {type, data}")
        return _type(value), data

    def write(kind: str, data: bytes) -> bytes:
        """Return data as its own payload, once its form and the type that it names are checked.

        Raises:
            InvalidInput: the data is no JSON to be stored, looks wrapped, or does not name the type `kind`.
        """
        value = checked(data)
        if _looks_wrapped(value):
            raise InvalidInput(
                "data", "may not have the members type and data alone: it would be taken for wrapped"
            )
        type_name = _type(value)
        if (members or variants) and type_name != kind:
            says = f"says {type_name!r}" if type_name else "does not say it"
            raise InvalidInput(
                "data", f"must name the type {kind!r} itself ({', '.join(members)}), and {says}"
            )
        return data

    def _type(value: Any) -> str:
        """Return the type that a value names in a member or as its variant; empty if it names none."""
        fields = value if isinstance(value, dict) else {}
        named = (fields[name] for name in members if isinstance(fields.get(name), str))
        alone = ""
        if variants:
            alone = next(iter(fields)) if len(fields) == 1 else value if isinstance(value, str) else ""
        return next(named, alone)

    return Form(write=write, read=read)


def _looks_wrapped(value: Any) -> bool:
    """Whether a value is an object with the members `type` and `data` alone."""
    return (
        isinstance(value, dict) and value.keys() == {"type", "data"} and isinstance(value["type"], str | None)
    )


SERIALIZERS: Final[Mapping[str, Serializer]] = MappingProxyType(
    {
        each.name: each
        for each in (
            JAVASCRIPT,
            Serializer(name="rust", events=bare("type", variants=True), snapshots=bare()),
            Serializer(name="go", events=bare("TypeName", "typeName", "type_name", "type"), snapshots=bare()),
            Serializer(name="java", events=bare("type"), snapshots=bare()),
            Serializer(name="php", events=bare("typeName", "type"), snapshots=bare(), text=True),
            Serializer(name="plain", events=bare(), snapshots=bare()),
        )
    }
)
"""Serializers by the names of their libraries."""
