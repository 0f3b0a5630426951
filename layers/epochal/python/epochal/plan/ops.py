"""Operations on tables and the replies to them: all that a layout can ask for, and all it can learn.

A layout is a generator: it yields operations, is sent replies, and returns its outcome (`Steps`). Its driver
makes, retries and delays requests, or loses them; the layout cannot tell, except by `Refusal.ambiguous`.
Operations that do not depend on each other may be yielded together (`Several`).

Every reply says what it cost. A failing condition is a reply, with the item that stood in the way (DESIGN §5.2).
Failures of the store itself are not replies: interpreters raise them, and the driver retries.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from decimal import Context, Decimal
from typing import Any, Final, Literal, Self, TypeVar

from epochal.errors import TooLarge
from epochal.lazy_dataclasses import dataclass
from epochal.plan.values import (
    NONE,
    AttributeValue,
    Item,
    Key,
    Units,
    item_size,
    read_units,
    value_size,
    write_units,
)

# Conditions on an item, as values that both interpreters evaluate alike.
#
# Top-level attributes only: nothing Epochal stores needs a deeper path. A comparison with an absent attribute
# is false, as in DynamoDB.


Comparison = Literal["=", "<", "<=", ">="]


@dataclass(frozen=True, slots=True)
class Absent:
    """The attribute does not exist. On a key attribute: the item does not exist."""

    name: str


@dataclass(frozen=True, slots=True)
class Present:
    """The attribute exists. A filter of a stream has to be told its type: `kind`, which is `S`, `N`, `L`, …"""

    name: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Compare:
    """The attribute exists and compares with `value`, of the same type."""

    name: str
    operator: Comparison
    value: AttributeValue


@dataclass(frozen=True, slots=True)
class BeginsWith:
    """The attribute exists, is text, and begins with `prefix`."""

    name: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Not:
    """A comparison does not hold: with an absent attribute, too."""

    condition: Compare


@dataclass(frozen=True, slots=True)
class All:
    """Every one holds."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one holds."""

    conditions: tuple[Condition, ...]


Condition = Absent | Present | Compare | BeginsWith | Not | All | AnyOf


def equals(name: str, value: AttributeValue) -> Compare:
    """`name = value`."""
    return Compare(name, "=", value)


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


# DynamoDB's limits, checked on a plan before it is sent, so that nothing too large fails late (DESIGN §5.13).
#
# Source: AWS, "Service, account, and table quotas in Amazon DynamoDB".

ITEM_BYTES: Final = 400 * 1024
TRANSACTION_ITEMS: Final = 100
TRANSACTION_BYTES: Final = 4 * 1024 * 1024
PAGE_BYTES: Final = 1024 * 1024
BATCH_KEYS: Final = 100
RESPONSE_BYTES: Final = 4 * 1024 * 1024
"""Of the items in the response to a TransactGet, and to a Transact that is refused."""

_RESPONSE_ITEM_BYTES: Final = 4
"""What each item adds to its size there, also one that is not there: found by bisection on DynamoDB Local."""


def fits_response(items: Iterable[Item | None], most: int = RESPONSE_BYTES) -> bool:
    """Whether the response to a TransactGet, or to a Transact of which some writes are refused, has room for what is
    stored under the keys of these reads or writes.
    """
    return sum(_size(item) + _RESPONSE_ITEM_BYTES for item in items) <= most


def refusal_units(items: Iterable[Item | None], times: int) -> Units:
    """Units of a refused write, which DynamoDB does not report, as far as the items that came back tell them: by its
    rules it costs the write of what is stored. `times` is 2 in a transaction.
    """
    return Units(write=times * sum(write_units(_size(item)) for item in items))


def check(op: Op) -> None:
    """Raise `TooLarge`, with sizes, where a plan cannot succeed whatever is stored."""
    match op:
        case Put() | Update():
            _at_most(ITEM_BYTES, "item", _bytes(op))
        case Transact(writes=writes):
            _at_most(TRANSACTION_ITEMS, "transaction", len(writes), "items")
            sizes = list(map(_bytes, writes))
            for size in sizes:
                _at_most(ITEM_BYTES, "item", size)
            _at_most(TRANSACTION_BYTES, "transaction", sum(sizes))
        case BatchGet(keys=keys):
            _at_most(BATCH_KEYS, "keys", len(keys), "items")
        case TransactGet(keys=keys):
            _at_most(TRANSACTION_ITEMS, "keys", len(keys), "items")
        case _:
            pass


def _bytes(op: Op) -> int:
    """Bytes that a write carries: of an update no more can be said before what is stored is known."""
    match op:
        case Put(item=item):
            return item_size(item)
        case Update(sets=sets):
            return sum(value_size(change.value) for change in sets)
        case _:
            return 0


def _at_most(most: int, what: str, size: int, *unit: str) -> None:
    if size > most:
        raise TooLarge(what, size, most, *unit)


# How a request can fail without an answer: what an interpreter raises, and a driver retries.


class RequestFailure(Exception):
    """A request that got no answer of substance. `cause` names it for logs."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


class NotApplied(RequestFailure):
    """Throttled, or in conflict with a transaction: certainly not applied, worth trying again."""


class Unreached(NotApplied):
    """No connection, at an address that has never answered: it may be a wrong one, which no waiting mends."""


class Lost(RequestFailure):
    """Timed out, cut off, or an internal error: it may have been applied, or may still be."""


# Items by key, however many they are: in requests for as many as each may ask for. Requests side by side.


def get_all(table: str, keys: Iterable[Key]) -> Steps[list[Item]]:
    """The items that exist, in no order. `keys` may have none twice."""
    wanted = tuple(keys)
    starts = range(0, len(wanted), BATCH_KEYS)
    replies = yield from side_by_side(
        BatchGet(table=table, keys=wanted[start : start + BATCH_KEYS]) for start in starts
    )
    return [item for reply in replies for item in reply.items]


def side_by_side(ops: Iterable[Op]) -> Steps[list[Any]]:
    """Replies to operations that do not depend on each other, in their order."""
    together = tuple(ops)
    if not together:
        return []
    if len(together) == 1:
        return [(yield together[0])]
    replies: list[Any] = yield Several(ops=together)
    return replies


def settled(places: Iterable[tuple[str, Key]]) -> Steps[None]:
    """Reads that wait for what is under way on these items, each by table and key; none may come twice."""
    wanted = tuple(places)
    for start in range(0, len(wanted), TRANSACTION_ITEMS):
        yield TransactGet(keys=wanted[start : start + TRANSACTION_ITEMS])


# What a table must look like for a layout to work: keys, indexes, expiry, stream.
#
# Written once, read by the stacks that deploy tables, by the tests that create them, and by the memory interpreter.
# Billing, recovery and encryption are a deployment's business and are not here.

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


# What a plan does and costs, before it is sent.

# What a write does to an item, and whether a condition holds: DynamoDB's semantics, as far as we use them.
#
# The memory interpreter applies these, and the capacity figures are derived from them; the contract tests hold
# them to DynamoDB Local.

_ARITHMETIC: Final = Context(prec=300)
"""Of any two numbers that DynamoDB has, the sum is exact."""


def holds(condition: Condition | None, item: Item | None) -> bool:
    """Evaluate a condition against what is stored; None always holds."""
    match condition:
        case None:
            return True
        case Absent(name):
            return item is None or name not in item
        case Present(name):
            return item is not None and name in item
        case Compare():
            return item is not None and condition.name in item and _compares(condition, item[condition.name])
        case BeginsWith(name, prefix):
            found = None if item is None else item.get(name, {}).get("S")
            return found is not None and found.startswith(prefix)
        case Not(compared):
            return not holds(compared, item)
        case All(conditions):
            return all(holds(each, item) for each in conditions)
        case AnyOf(conditions):
            return any(holds(each, item) for each in conditions)


def after(write: TransactionWrite, before: Item | None) -> Item | None:
    """The item that a write leaves behind."""
    match write:
        case Put(item=item):
            return item
        case Update():
            return _updated(write, before)
        case Delete():
            return None
        case Check():
            return before


def comparable(value: AttributeValue) -> Any:
    """A value as Python may compare it: numbers by size, strings by their UTF-8."""
    ((kind, content),) = value.items()
    if kind == "N":
        return Decimal(content)
    return content.encode("utf-8") if kind == "S" else content


def _compares(condition: Compare, stored: AttributeValue) -> bool:
    if stored.keys() != condition.value.keys():
        return False
    left, right = comparable(stored), comparable(condition.value)
    match condition.operator:
        case "=":
            return bool(left == right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">=":
            return bool(left >= right)


def _updated(update: Update, before: Item | None) -> Item:
    item = dict(update.key if before is None else before)
    for name in update.removes:
        item.pop(name, None)
    for change in update.sets:
        if isinstance(change, Extend):
            present = item[change.name]["L"] if change.name in item else []
            item[change.name] = {"L": [*present, *change.value["L"]]}
        elif isinstance(change, Add):
            number = item.get(change.name, {"N": "0"})["N"]
            total = _ARITHMETIC.add(Decimal(number), Decimal(change.value["N"]))
            item[change.name] = {"N": f"{total.normalize(_ARITHMETIC):f}" if total else "0"}
        else:
            item[change.name] = change.value
    return item


# What a plan costs, in DynamoDB's capacity units, before it is sent.
#
#     write   1 unit a KB, of the larger of the item before and after; a failed condition costs as much as a write
#     read    1 unit per 4 KB strongly consistent, half eventually; a query or a scan rounds the sum of its items up,
#             not each
#
# In a transaction both count twice; each index of a table is written besides.
#
# Source: AWS, "Read/write capacity mode" and "DynamoDB item sizes and formats". A cost depends on what is
# stored, so `units` takes a function that tells the item under a key.

Lookup = Callable[[str, Key], Item | None]
"""The item stored under a key of a table (for a Put: under the whole item's own key attributes), or None."""


def units(op: Op, stored: Lookup, results: Iterable[Item] = ()) -> Units:
    """Units of one operation on a table without indexes.

    Args:
        op: what would be sent.
        stored: what is there now.
        results: for a Query or a Scan, the items it would read, since only they tell.
    """
    match op:
        case Get(table=table, key=key, consistent=consistent):
            return Units(read=read_units(_size(stored(table, key)), consistent=consistent))
        case BatchGet(table=table, keys=keys, consistent=consistent):
            return Units(
                read=sum(read_units(_size(stored(table, key)), consistent=consistent) for key in keys)
            )
        case TransactGet(keys=keys):
            return Units(read=sum(2 * read_units(_size(stored(table, key))) for table, key in keys))
        case Query(consistent=consistent) | Scan(consistent=consistent):
            return Units(read=read_units(sum(map(item_size, results)), consistent=consistent))
        case Transact(writes=writes):
            return Units(write=sum(2 * _written(write, stored) for write in writes))
        case _:
            return Units(write=_written(op, stored))


def _written(write: TransactionWrite, stored: Lookup) -> int:
    before = stored(write.table, write.item if isinstance(write, Put) else write.key)
    left = after(write, before) if holds(write.condition, before) else before
    return write_units(max(_size(before), _size(left)))


def _size(item: Item | None) -> int:
    return 0 if item is None else item_size(item)
