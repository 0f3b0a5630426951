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
from epochal.model.events import MAX_NAME_BYTES, category_of, read_json, write_json
from epochal.model.kinds import must_be
from epochal.model.versions import AtVersion, Expected

_PART: Final = re.compile(r"[A-Za-z0-9\-_.:~@+=]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateId:
    """An aggregate's type and value. Make it with `aggregate_id`, which checks both."""

    type: str
    value: str

    def __str__(self) -> str:
        return f"{self.type}-{self.value}"


Hash = Callable[[AggregateId], int]
"""Spreads aggregates over the shards of their tables' keys."""


def aggregate_id(kind: str, value: str) -> AggregateId:
    """Parse an aggregate's id.

    Raises:
        InvalidInput: `type` or `value` is empty or has other characters than stream names have, or both
            together exceed 512 bytes.
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
    """The types that are declared for the tables; ids of different types can never be equal.

    A type without `-` need not be declared.
    """

    def __init__(self, types: Iterable[str]) -> None:
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
        """The id of an aggregate of a registered type; raises `InvalidInput` for any other."""
        if not self._types:
            raise InvalidInput("type", "no type of aggregate is registered")
        if kind not in self._types:
            raise InvalidInput("type", f"{kind!r} is not registered")
        return aggregate_id(kind, value)

    def read(self, aid: str) -> AggregateId | None:
        """The one aggregate that an id names: its type is the declared one that begins the id, else what precedes the
        first `-`; None where that leaves nothing.
        """
        kind = next((each for each in self._types if aid.startswith(f"{each}-")), category_of(aid))
        value = aid[len(kind) + 1 :]
        return AggregateId(type=kind, value=value) if kind and value else None

    def check(self, aggregate: AggregateId) -> None:
        """Refuse an aggregate whose id stands for another one; raises `InvalidInput`."""
        kind, aid = aggregate.type, str(aggregate)
        found = self.read(aid)
        if found == aggregate:
            return
        if found is not None and found.type in self._types:
            raise InvalidInput("type", f"{aid} is an id of the declared type {found.type!r}, not of {kind!r}")
        raise InvalidInput("type", f"{kind!r} holds - and is not among the types declared for these tables")

    @property
    def names(self) -> frozenset[str]:
        """Those that are declared."""
        return self._types

    def __contains__(self, kind: str) -> bool:
        return kind in self._types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AggregateTypes) and other._types == self._types

    def __hash__(self) -> int:
        return hash(self._types)


UNDECLARED: Final = AggregateTypes(())
"""Tables whose types hold no `-`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateEvent:
    """An event to persist. `data` is UTF-8 JSON; `occurred_at` ISO 8601, or None for the moment of the append."""

    type: str
    data: bytes
    occurred_at: str | None = None

    def __post_init__(self) -> None:
        """Refuse values of another kind, above all bodies that are not encoded yet."""
        must_be(str, self.type, "type", "text")
        must_be(bytes, self.data, "data", "bytes")
        must_be((str, type(None)), self.occurred_at, "occurred_at", "ISO 8601 text")

    @classmethod
    def json(cls, type: str, value: object, /, *, occurred_at: str | None = None) -> AggregateEvent:  # noqa: A002
        """An event whose data are a value in plain JSON: what `json.dumps` takes, and as it writes it.

        Raises:
            InvalidInput: the value, or what is at the path that is named, is not JSON. NaN is not, nor are members
                that only codecs and subjects write.
        """
        return cls(type=type, data=write_json(value), occurred_at=occurred_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAggregateEvent:
    """An event as stored: number `seq_nr` of its aggregate, counted from 1.

    `occurred_at` is as stored; other libraries store a number there, which is kept as its digits.
    """

    aggregate: AggregateId
    seq_nr: int
    type: str
    data: bytes
    occurred_at: str

    @property
    def stream(self) -> str:
        """The aggregate's id, as the feed calls its stream."""
        return str(self.aggregate)

    def json(self) -> Any:
        """The value of data in plain JSON, as `json.loads` reads it.

        Raises:
            InvalidInput: data are sealed, or of a version above 1: its codec reads that.
            CorruptData: they are not JSON.
        """
        return read_json(self.data, f"{self.aggregate} (event {self.seq_nr}), {self.type}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """What the next append to an aggregate needs to be one request.

    Attributes:
        version: of the optimistic lock, from 1, raised by every append.
        seq_nr: the aggregate's last event.
    """

    version: int
    seq_nr: int


ExpectedLock = Expected | AtVersion | Lock
"""What a writer expects of an aggregate. A lock in full makes the append one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateSnapshot:
    """An aggregate's state as of event `seq_nr`, in UTF-8 JSON, and the lock of its head.

    `made_with` says with which class and version a decider made it; empty where nobody says, as for another library's.
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
# Of all but the first, the payload is the data, to the byte: its writer names the type in it, as the other library
# expects. A snapshot names no type. What looks wrapped is refused: it is another library's.
#
# An event is written once and read for ever. So what a reader could not read back is refused: JSON nested so deeply
# that it depends on the reader's stack, and half of a surrogate pair, which UTF-8 cannot hold. Other libraries write
# both: half a pair is read all the same, and stays escaped.

MAX_DEPTH: Final = 500
"""Levels of lists and objects: half of what Python's stack allows."""

_PLAIN: Final = b',"data":'
_MARKED: Final = _PLAIN + MARK


def wrap(kind: str, data: bytes) -> bytes:
    """The payload of an event or a snapshot; raises `InvalidInput` where `data` is not UTF-8 JSON, or is too deep."""
    checked(data)
    # Spliced, not parsed and written again: the user's bytes stay as they are.
    return b'{"type":' + json.dumps(kind) + b',"data":' + data + b"}"


def checked(data: bytes) -> Any:
    """Parse data that is to be stored; raises `InvalidInput` where a reader could not read it back."""
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
    """Type and data of a payload; raises `CorruptData` where it is not of that form."""
    # A mark before the data was taken once, and is no JSON there. In a text, the quotes before it would be escaped.
    plain = payload.replace(_MARKED, _PLAIN, 1) if _MARKED in payload else payload
    try:
        fields = json.loads(plain)
        kind = fields["type"]
        return kind if isinstance(kind, str) else "", json.dumps_again(fields["data"])
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptData("a payload is not JSON of the form {type, data}") from error


def _depth(value: Any) -> int:
    """How deep lists and objects are nested, without a stack of calls."""
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, list | dict)]:
        depth += 1
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    return depth


_UNREADABLE: Final = (CorruptData, ValueError, TypeError, KeyError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One form of payload.

    Attributes:
        write: a payload from a type and its data; raises `InvalidInput` for data that it cannot hold.
        read: type, empty where it names none, and data; raises `ValueError` or `CorruptData` for another form.
    """

    write: Callable[[str, bytes], bytes]
    read: Callable[[bytes], tuple[str, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Serializer:
    """Payloads of one library.

    Attributes:
        name: by which errors call it.
        events, snapshots: the form of each. The type of a snapshot is its aggregate's.
        text: payloads are stored as text, not as bytes; either is read.
    """

    name: str
    events: Form
    snapshots: Form
    text: bool = False

    def event(self, payload: bytes) -> tuple[str, bytes]:
        """Type and data of an event; raises `CorruptData`."""
        return self._read(self.events, payload)

    def snapshot(self, payload: bytes) -> bytes:
        """Data of a snapshot; raises `CorruptData`."""
        return self._read(self.snapshots, payload)[1]

    def type_of(self, payload: bytes) -> str:
        """Type of an event; empty where it tells none that could be stored: JSON can hold half of a surrogate pair,
        UTF-8 cannot.
        """
        try:
            kind = self.events.read(payload)[0]
            kind.encode()
        except _UNREADABLE:
            return ""
        return kind

    def _read(self, form: Form, payload: bytes) -> tuple[str, bytes]:
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
"""The default, and the JavaScript library's."""


def serializer_of(given: str | Serializer, field: str = "serializer") -> Serializer:
    """The serializer that a name stands for; raises `InvalidInput` of `field` for any other name."""
    if isinstance(given, Serializer):
        return given
    if given == JAVASCRIPT.name:
        return JAVASCRIPT
    if given not in PAYLOADS:
        raise InvalidInput(field, f"must be one of {', '.join(PAYLOADS)}, or a Serializer")
    return SERIALIZERS[given]


def bare(*members: str, variants: bool = False) -> Form:
    """Payloads that are the data.

    Args:
        members: of an object; the first that is there holds the type. Data without any is refused, and read
            all the same. Without members the data names no type.
        variants: an object of one member, or a text alone, is of the type of that name, as serde tags by default.
    """

    def read(payload: bytes) -> tuple[str, bytes]:
        data = payload.removeprefix(MARK)
        value = json.loads(data)
        if _looks_wrapped(value):
            raise ValueError("it is of the form {type, data}")
        return _type(value), data

    def write(kind: str, data: bytes) -> bytes:
        value = checked(data)
        if _looks_wrapped(value):
            raise InvalidInput(
                "data", "may not have the members type and data alone: it would be taken for wrapped"
            )
        found = _type(value)
        if (members or variants) and found != kind:
            says = f"says {found!r}" if found else "does not say it"
            raise InvalidInput(
                "data", f"must name the type {kind!r} itself ({', '.join(members)}), and {says}"
            )
        return data

    def _type(value: Any) -> str:
        fields = value if isinstance(value, dict) else {}
        named = (fields[name] for name in members if isinstance(fields.get(name), str))
        alone = ""
        if variants:
            alone = next(iter(fields)) if len(fields) == 1 else value if isinstance(value, str) else ""
        return next(named, alone)

    return Form(write=write, read=read)


def _looks_wrapped(value: Any) -> bool:
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
"""Forms by library."""
