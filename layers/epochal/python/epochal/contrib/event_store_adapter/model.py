"""Aggregates: ids, events, snapshots, and what a writer expects.

An id is `<type>-<value>`, and values may hold `-`. Where a type held one too, two aggregates could share an id:
`user-account-1` is account 1 of `user-account`, or account-1 of `user`. So such a type must be declared, no declared
type followed by `-` begins another, and every id is read in one way: `AggregateTypes` sees to that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from epochal.errors import InvalidInput
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
    """An aggregate's state as of event `seq_nr`, in UTF-8 JSON, and the lock of its head."""

    aggregate: AggregateId
    data: bytes
    seq_nr: int
    lock: Lock
