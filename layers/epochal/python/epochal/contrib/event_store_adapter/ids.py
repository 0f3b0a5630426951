"""Ids of aggregates, and the declared types by which they are read.

An id is `<type>-<value>`, and values may hold `-`. Where a type held one too, two aggregates could share an id:
`user-account-1` is account 1 of `user-account`, or account-1 of `user`. So such a type must be declared, no declared
type followed by `-` begins another, and every id is read in one way: `AggregateTypes` sees to that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass
from epochal.model.kinds import must_be
from epochal.model.stream_names import MAX_NAME_BYTES, category_of

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
"""Function that hashes an aggregate's id to choose the shard of the tables' keys that the aggregate is stored under."""


def aggregate_id(kind: str, value: str) -> AggregateId:
    """Make an aggregate's id from its type and value; raise `InvalidInput` if one of them is malformed.

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
    """The types of aggregates that the tables hold, by which an id is parsed into its type and value.

    The constructor makes sure that ids of different types can never be equal. A type without `-` need not be declared.
    """

    def __init__(self, types: Iterable[str]) -> None:
        """Declare types of aggregates; raise if ids of two of them could be equal.

        Args:
            types: names of the types.

        Raises:
            InvalidInput: a type is malformed, or one type followed by `-` begins another.
        """
        if isinstance(types, str):  # also a collection of texts: its letters
            raise InvalidInput("types", "must be a list of names, not a string")
        self._types = frozenset(types)
        for kind in self._types:
            aggregate_id(kind, "x")
            for other in self._types:
                if other.startswith(f"{kind}-"):
                    raise InvalidInput(
                        "types", f"{other!r} begins with {kind!r} followed by -: ids would be ambiguous"
                    )

    def id(self, kind: str, value: str) -> AggregateId:
        """Make the id of an aggregate of a declared type; raise `InvalidInput` if the type is not declared.

        Args:
            kind: declared type of the aggregate.
            value: id of the aggregate among those of its type.

        Raises:
            InvalidInput: `kind` is not declared, or the id is malformed.
        """
        if not self._types:
            raise InvalidInput("type", "no aggregate types are registered")
        if kind not in self._types:
            raise InvalidInput("type", f"{kind!r} is not registered")
        return aggregate_id(kind, value)

    def read(self, aid: str) -> AggregateId | None:
        """Parse the text of an aggregate's id into type and value; return None if either would be empty.

        The type is the declared one that begins the id, or else what precedes the first `-`.

        Args:
            aid: id as text: type, `-` and value.
        """
        kind = next((name for name in self._types if aid.startswith(f"{name}-")), category_of(aid))
        value = aid[len(kind) + 1 :]
        return AggregateId(type=kind, value=value) if kind and value else None

    def check(self, aggregate: AggregateId) -> None:
        """Raise `InvalidInput` unless an aggregate's id, written as text, parses to the same type and value.

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
        raise InvalidInput(
            "type", f"{kind!r} contains - but is not among the types declared for these tables"
        )

    @property
    def names(self) -> frozenset[str]:
        """The names of the declared types of aggregates."""
        return self._types

    def __contains__(self, kind: str) -> bool:
        return kind in self._types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AggregateTypes) and other._types == self._types

    def __hash__(self) -> int:
        return hash(self._types)


UNDECLARED: Final = AggregateTypes(())
"""No declared types: for tables whose types hold no `-`."""
