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
    """A key attribute of a table: its name and DynamoDB scalar type."""

    name: str
    type: KeyType


class PlacedName(str):
    """A table's name with the place of the table, since another region or account may have the same name.

    A place is a number that identifies an interpreter (an account and region) within the process.
    """

    __slots__ = ("place",)
    place: int

    def __new__(cls, name: str, place: int) -> Self:
        """Make the name of a table in a place."""
        placed = super().__new__(cls, name)
        placed.place = place
        return placed

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the plain name, since the numbers of places differ in another process."""
        return str, (str(self),)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSpec:
    """A global secondary index; `keys_only` projects only keys, else every attribute."""

    name: str
    partition: KeyAttribute
    sort: KeyAttribute | None = None
    keys_only: bool = False

    def key_names(self, table: TableSpec) -> tuple[str, ...]:
        """Return the key attributes of an entry: those of the index, then those of the table."""
        own = (self.partition.name,) if self.sort is None else (self.partition.name, self.sort.name)
        return (*own, *(name for name in table.keys if name not in own))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """The keys, indexes, expiry and stream that one table must have.

    `kind` names the table among the layouts (`tips`, `index`, …), not in an account.

    Attributes:
        kind: kind of the table.
        help: contents of the table, in a few words that the command line and the outputs of stacks show.
        partition: partition key.
        sort: sort key; None if the table has none.
        indexes: secondary indexes.
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
        """Names of the primary key's attributes, partition key first."""
        return (self.partition.name,) if self.sort is None else (self.partition.name, self.sort.name)
