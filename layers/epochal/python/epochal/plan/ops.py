"""Operations on tables and the replies to them: all that a layout can ask for, and all it can learn.

A layout is a generator: it yields operations, is sent replies, and returns its outcome (`Steps`). Its driver
makes, retries and delays requests, or loses them; the layout cannot tell, except by `Refusal.ambiguous`.
Operations that do not depend on each other may be yielded together (`Several`).

Every reply says what it cost. A failing condition is a reply, with the item that stood in the way (DESIGN §5.2).
Failures of the store itself are not replies: interpreters raise them (`failures`), and the driver retries.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from epochal.lazy_dataclasses import dataclass
from epochal.plan.conditions import Condition
from epochal.plan.values import NONE, AttributeValue, Item, Key, Units

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Get:
    """One item by key. Strongly consistent unless said otherwise."""

    table: str
    key: Key
    consistent: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchGet:
    """Up to 100 items of one table by key. Replied to with `Items` in no particular order."""

    table: str
    keys: tuple[Key, ...]
    consistent: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A page of one partition, ordered by sort key; at most 1 MB.

    Attributes:
        partition: name and value of the partition key.
        sort: name, lowest and highest value of the sort key (both inclusive), where it is bounded.
        index: a secondary index, which must be read without consistency.
        limit: items at most.
        after: the last key of the page before.
        only_count: return the number of items alone; it costs as much as reading them.
    """

    table: str
    partition: tuple[str, AttributeValue]
    sort: tuple[str, AttributeValue, AttributeValue] | None = None
    index: str | None = None
    consistent: bool = True
    forward: bool = True
    limit: int | None = None
    after: Key | None = None
    only_count: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """A page of a whole table or index, or of one segment of it; at most 1 MB, in an order of the store's own.

    It pays for everything it passes over: for rebuilding, auditing and exporting, never on a request's way.

    Attributes:
        segment: which of how many segments, from (0, 1): several may be scanned at the same time.
        where: leaves out items on which it does not hold, after they have been read and paid for.
        index: a secondary index, which must be read without consistency.
        limit: items at most, counted before `where`.
        after: the last key of the page before, of the same segment.
    """

    table: str
    segment: tuple[int, int] = (0, 1)
    where: Condition | None = None
    index: str | None = None
    consistent: bool = True
    limit: int | None = None
    after: Key | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """Write a whole item, if `condition` holds on what is there."""

    table: str
    item: Item
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Set:
    """Give an attribute a value."""

    name: str
    value: AttributeValue


@dataclass(frozen=True, slots=True)
class Extend:
    """Append a list's elements to a list attribute, which may be absent."""

    name: str
    value: AttributeValue


@dataclass(frozen=True, slots=True)
class Add:
    """Add a number to an attribute, which counts as 0 where it is absent."""

    name: str
    value: AttributeValue


Change = Set | Extend | Add


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Change one item, if `condition` holds. An absent item is created, as in DynamoDB."""

    table: str
    key: Key
    sets: tuple[Change, ...]
    removes: tuple[str, ...] = ()
    condition: Condition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete one item, if `condition` holds. An absent item is success without a condition."""

    table: str
    key: Key
    condition: Condition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Within a transaction: `condition` must hold on an item that is not written."""

    table: str
    key: Key
    condition: Condition


TransactionWrite = Put | Update | Delete | Check


@dataclass(frozen=True, slots=True, kw_only=True)
class Transact:
    """All writes or none. The same `token` within ten minutes is applied once (1 to 36 characters).

    Attributes:
        shown: positions of the writes whose items a refusal returns; None for all of them.
    """

    writes: tuple[TransactionWrite, ...]
    token: str | None = None
    shown: range | None = None

    def shows(self, position: int) -> bool:
        """Whether a refusal returns the item of the write at this position."""
        return self.shown is None or position in self.shown

    @property
    def divisible(self) -> bool:
        """Whether another request can ask for fewer of the items that a refusal returns."""
        return len(self.writes if self.shown is None else self.shown) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactGet:
    """Up to 100 items, each by table and key, as they are at one moment. Replied to with `Together`.

    A plain read answers whatever is under way: of a transaction it may find one item written and another not yet. This
    one is refused until all that concerns its items is over; so what it does not find was never committed, or is gone.
    It costs twice as much.

    Items of more than 4 MB together are read in parts, one after another, each as it is at its own moment. So a caller
    may only conclude what also holds if the later items were read later.
    """

    keys: tuple[tuple[str, Key], ...]

    @property
    def divisible(self) -> bool:
        """Whether another request can ask for fewer of the items."""
        return len(self.keys) > 1


Op = Get | BatchGet | TransactGet | Query | Scan | Put | Update | Delete | Check | Transact


def tables_of(op: Op) -> set[str]:
    """The tables that an operation touches."""
    match op:
        case Transact(writes=writes):
            return {write.table for write in writes}
        case TransactGet(keys=keys):
            return {table for table, _ in keys}
        case _:
            return {op.table}


@dataclass(frozen=True, slots=True, kw_only=True)
class Several:
    """Operations that may be performed in any order, and at the same time. Replied to with a list of their replies, in
    the order of `ops`.

    Each is a request of its own: one may succeed where another fails, and none is undone. So the same operations must
    be harmless when they are performed again.
    """

    ops: tuple[Op, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Reply to Get."""

    item: Item | None
    units: Units = NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """Reply to Query, Scan and BatchGet.

    Attributes:
        last: the key to go on after; None at the end.
        counted: how many items there are, where only that was asked for.
    """

    items: tuple[Item, ...]
    last: Key | None = None
    units: Units = NONE
    counted: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Reply to TransactGet: an item for each key, in their order; None where there is none."""

    items: tuple[Item | None, ...]
    units: Units = NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Reply to a write that was applied."""

    units: Units = NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Reply to a write whose condition failed.

    Attributes:
        items: what stood in the way, one for each write of the operation; None where that write was not refused, or
            there was no item.
        failed: which writes were refused, parallel to `items`.
        ambiguous: an earlier try of the same request may have been applied, so this refusal may be its echo.
        reused: the transaction's token went with another transaction; which writes would have failed is not told.
    """

    items: tuple[Item | None, ...]
    failed: tuple[bool, ...] = (True,)
    ambiguous: bool = False
    reused: bool = False
    units: Units = NONE

    @property
    def item(self) -> Item | None:
        """The item that made the condition of a single write fail."""
        return self.items[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflow:
    """Reply to an Update that would have pushed its item over 400 KB: nothing was written.

    Attributes:
        over: of a transaction, which of its writes; empty where that is not told.
    """

    over: tuple[bool, ...] = ()
    units: Units = NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Oversized:
    """Reply to a Transact that was refused, or to a TransactGet, whose items do not fit into one response. Nothing was
    written. Only a driver sees it: it asks for the items in parts.

    Attributes:
        ambiguous: as in `Refusal`.
    """

    ambiguous: bool = False
    units: Units = NONE


Reply = Found | Items | Together | Done | Refusal | Overflow | Oversized

Execute = Callable[[Op], Reply]
"""An interpreter: performs one operation, or raises a `RequestFailure`."""

Steps = Generator[Op | Several, Any, T]
"""A layout's conversation with the store: yields operations, is sent the reply to each, returns its outcome."""
