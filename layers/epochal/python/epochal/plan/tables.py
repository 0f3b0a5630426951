"""What a table must look like for a layout to work: keys, indexes, expiry, stream.

Written once, read by the stacks that deploy tables, by the tests that create them, and by the memory interpreter.
Billing, recovery and encryption are a deployment's business and are not here.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from epochal.lazy_dataclasses import dataclass

KeyType = Literal["S", "N", "B"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAttribute:
    """A key attribute: its name and DynamoDB scalar type."""

    name: str
    type: KeyType


class PlacedName(str):
    """A table's name, and which of the places that have tables this process means: another region may have one of that
    name, and so may another account.
    """

    __slots__ = ("place",)
    place: int

    def __new__(cls, name: str, place: int) -> Self:
        """The name, as that of a table in a place."""
        placed = super().__new__(cls, name)
        placed.place = place
        return placed

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process has other places: there it is a name."""
        return str, (str(self),)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSpec:
    """A global secondary index. `keys_only` projects keys; otherwise every attribute."""

    name: str
    partition: KeyAttribute
    sort: KeyAttribute | None = None
    keys_only: bool = False

    def key_names(self, table: TableSpec) -> tuple[str, ...]:
        """Key attributes of an entry: the index's own, then the table's."""
        own = (self.partition.name,) if self.sort is None else (self.partition.name, self.sort.name)
        return (*own, *(name for name in table.keys if name not in own))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """One table. `kind` names it among the layouts (`tips`, `index`, ...), not in an account.

    Attributes:
        help: what it holds, in a few words: the command line and the outputs of stacks show them.
        ttl: attribute that holds the expiry time in epoch seconds, if items of this table may expire.
        stream: whether the table feeds DynamoDB Streams with new images.
    """

    kind: str
    help: str = ""
    partition: KeyAttribute
    sort: KeyAttribute | None = None
    indexes: tuple[IndexSpec, ...] = ()
    ttl: str | None = None
    stream: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the primary key's attributes, partition first."""
        return (self.partition.name,) if self.sort is None else (self.partition.name, self.sort.name)
