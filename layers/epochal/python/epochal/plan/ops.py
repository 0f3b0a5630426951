"""Operations on tables and the replies to them: all that a layout can ask for, and all it can learn.

A layout is a generator: it yields operations, is sent replies, and returns its outcome (`Steps`). Its driver
makes, retries and delays requests, or loses them; the layout cannot tell, except by `Refusal.ambiguous`.
Operations that do not depend on each other may be yielded together (`Several`). A layout that was refused may ask for
a `Pause`.

Every reply says what it cost. A failing condition is a reply, with the item that stood in the way (DESIGN §5.2).
Failures of the store itself are not replies: interpreters raise them (`failures`), and the driver retries.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final, TypeVar

from epochal.lazy_dataclasses import dataclass
from epochal.plan.conditions import Condition
from epochal.plan.values import NONE, AttributeValue, Item, Key, Units

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Get:
    """A read of one item by key; strongly consistent unless `consistent` is False."""

    table: str
    key: Key
    consistent: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchGet:
    """A read of up to 100 items of one table by key, answered with `Items` in no particular order."""

    table: str
    keys: tuple[Key, ...]
    consistent: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A read of one page of a partition, ordered by sort key; at most 1 MB.

    Attributes:
        table: name of the table.
        partition: name and value of the partition key.
        sort: name, lowest and highest value of the sort key (both inclusive); None for all.
        index: name of a secondary index, which must be read without consistency; None for the table.
        consistent: whether the read is strongly consistent.
        forward: whether the sort key ascends.
        limit: number of items at most; None for as many as fit.
        after: last key of the page before; None for the first page.
        only_count: whether to return the number of items alone, which costs as much as reading them.
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
    """A read of one page of a whole table or index, or of one segment; at most 1 MB, in no fixed order.

    A scan pays for every item that it passes over. It is for rebuilding, auditing and exporting, never part of a
    request.

    Attributes:
        table: name of the table.
        segment: number of the segment and number of segments; several may be scanned at the same time.
        where: condition on the items that are returned; the others are read and paid for all the same.
        index: name of a secondary index, which must be read without consistency; None for the table.
        consistent: whether the read is strongly consistent.
        limit: number of items at most, counted before `where`; None for as many as fit.
        after: last key of the page before, of the same segment; None for the first page.
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
    """A write of a whole item, made only if `condition` holds on the stored item.

    Attributes:
        table: name of the table.
        item: the whole item to write.
        condition: condition that the stored item must meet; None to write in any case.
    """

    table: str
    item: Item
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Set:
    """A change of an update: give an attribute a value."""

    name: str
    value: AttributeValue


@dataclass(frozen=True, slots=True)
class Extend:
    """A change of an update: append elements to a list attribute, which may be absent."""

    name: str
    value: AttributeValue


@dataclass(frozen=True, slots=True)
class Add:
    """A change of an update: add a number to an attribute; an absent attribute counts as 0."""

    name: str
    value: AttributeValue


Change = Set | Extend | Add


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """A change of one item, made if `condition` holds; an absent item is created, as in DynamoDB."""

    table: str
    key: Key
    sets: tuple[Change, ...]
    removes: tuple[str, ...] = ()
    condition: Condition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """A deletion of one item, made if `condition` holds; without a condition an absent item is no error."""

    table: str
    key: Key
    condition: Condition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Part of a transaction: a condition that must hold on an item that is not written."""

    table: str
    key: Key
    condition: Condition


TransactionWrite = Put | Update | Delete | Check


@dataclass(frozen=True, slots=True, kw_only=True)
class Transact:
    """A transaction of writes, made all or nothing.

    Attributes:
        writes: the writes and checks.
        token: text of 1 to 36 characters; transactions with the same token within ten minutes are applied once.
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
        """Whether the items that a refusal returns can be requested in smaller parts."""
        return len(self.writes if self.shown is None else self.shown) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactGet:
    """A read of up to 100 items by table and key at one moment, answered with `Together`.

    A plain read may find one item of a transaction written and another not yet. A transactional read is refused while a
    transaction on its items is under way; so an item that it does not find was never committed, or is gone. It costs
    twice as much.

    Items of more than 4 MB together are read in parts, one after another, each part at its own moment. So a caller may
    only conclude what also holds if the later items were read later.
    """

    keys: tuple[tuple[str, Key], ...]

    @property
    def divisible(self) -> bool:
        """Whether the items can be requested in smaller parts."""
        return len(self.keys) > 1


Op = Get | BatchGet | TransactGet | Query | Scan | Put | Update | Delete | Check | Transact


def tables_of(op: Op) -> set[str]:
    """Return the names of the tables that an operation reads or writes."""
    match op:
        case Transact(writes=writes):
            return {write.table for write in writes}
        case TransactGet(keys=keys):
            return {table for table, _ in keys}
        case _:
            return {op.table}


@dataclass(frozen=True, slots=True, kw_only=True)
class Several:
    """Operations that may be performed in any order or in parallel, answered with a list of replies.

    The replies are in the order of `ops`.

    Each operation is a request of its own: one may succeed where another fails, and none is undone. So it must be
    harmless to perform the same operations again.
    """

    ops: tuple[Op, ...]


QUICKEST: Final = 0.005
SLOWEST: Final = 0.04
"""Bounds of the seconds that a request counts for in the length of a pause. A request that took longer was retried or
throttled, which tells nothing about other writers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A pause of random length, in which other writers can finish; no request is made, and the answer is None.

    Attributes:
        least, most: bounds of the length, as multiples of the duration of the request before.
    """

    least: float
    most: float

    def seconds(self, took: float, luck: float) -> float:
        """Return the pause in seconds: a multiple, by `luck`, of the last request's duration within bounds.

        Args:
            took: seconds that the request before took.
            luck: random number from 0 to 1, which spreads writers out.
        """
        return (self.least + (self.most - self.least) * luck) * min(max(took, QUICKEST), SLOWEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The reply to a Get; `item` is None where there is no item."""

    item: Item | None
    units: Units = NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """The reply to a Query, Scan or BatchGet.

    Attributes:
        items: the items that were read.
        last: key after which the next page starts; None at the end.
        units: capacity units of the request.
        counted: number of items, if only their number was requested.
    """

    items: tuple[Item, ...]
    last: Key | None = None
    units: Units = NONE
    counted: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """The reply to a TransactGet: an item for each key, in the same order; None for no item."""

    items: tuple[Item | None, ...]
    units: Units = NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The reply to a write that was applied."""

    units: Units = NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The reply to a write whose condition failed.

    Attributes:
        items: the item that made the condition fail, one for each write of the operation; None where that write was not
            refused, or there was no item.
        failed: for each write, whether it was refused.
        ambiguous: whether an earlier try of the same request may have been applied, and may have caused this refusal.
        reused: whether the transaction's token had been used for another transaction; `failed` is then not known.
        units: capacity units of the request.
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
    """The reply to an Update that would have made its item larger than 400 KB: nothing was written.

    Attributes:
        over: for each write of a transaction, whether its item would have been too large; empty if not known.
        units: capacity units of the request.
    """

    over: tuple[bool, ...] = ()
    units: Units = NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Oversized:
    """The reply to a TransactGet or refused Transact whose items do not fit into one response.

    Nothing was written. Only a driver gets this reply: it requests the items in parts.

    Attributes:
        ambiguous: as in `Refusal`.
    """

    ambiguous: bool = False
    units: Units = NONE


Reply = Found | Items | Together | Done | Refusal | Overflow | Oversized

Execute = Callable[[Op], Reply]
"""An interpreter: performs one operation, or raises a `RequestFailure`."""

Steps = Generator[Op | Several | Pause, Any, T]
"""A layout's conversation with the store: yields operations, is sent the reply to each, returns its outcome.

It may yield pauses in between."""
