"""Refuses in memory what DynamoDB refuses as malformed: otherwise only the tables of a test would accept a plan.

Rules that need nothing but the operation and the keys of its tables:

    keys          exactly those of the table, of their types, neither empty nor longer than 2,048 and 1,024 bytes
    index keys    where an item has them: likewise
    values        numbers of 38 digits between 1e-130 and 1e126, no empty set and nothing twice in one, 32 levels
    names         1 to 65,535 bytes
    expressions   not empty, at most 4 KB; sizes are compared of texts, numbers and bytes alone
    updates       of something, of no key, of nothing twice; lists are extended by lists, numbers raised by numbers
    queries       upper bounds not below lower ones, a limit of 1 at least, consistent only of the table itself, and a
                  key to go on after that the query could have ended with
    several       not none, and nothing twice; tokens of 1 to 36 characters

And one that needs the item: what is no list is not extended, what is no number not raised (`check_stored`).
`plan.limits` has the limits of sizes.

Source: AWS, "Service, account, and table quotas" and "Expressions", and what DynamoDB Local answers: random plans hold
these rules to it (tests/contract), and name those that it does not check.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Final, NoReturn

from epochal.dynamo.protocol.requests import request_of
from epochal.errors import InvalidRequest, WrongTable
from epochal.plan import effects, ops, tables
from epochal.plan.conditions import Absent, All, AnyOf, BeginsWith, Compare, Condition, Not, Present
from epochal.plan.effects import after
from epochal.plan.values import AttributeValue, Item, Key, value_size

SpecOf = Callable[[str], tables.TableSpec]
"""What a table looks like, by its name; raises `MissingTable`."""

NAME_BYTES: Final = 65_535
PARTITION_KEY_BYTES: Final = 2_048
SORT_KEY_BYTES: Final = 1_024
EXPRESSION_BYTES: Final = 4_096
TOKEN_LENGTH: Final = 36
SEGMENTS: Final = 1_000_000
LEVELS: Final = 32
"""Of an attribute in an item; of a value to compare with, one more."""

DIGITS: Final = 38
HIGHEST: Final = 125
LOWEST: Final = -130
"""Powers of ten of a number's first digit."""

_FEW: Final = 64
"""Clauses that fit an expression, whatever they are."""

_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_ORDERED: Final = frozenset("SNB")
_PYTHON: Final[Mapping[str, type | tuple[type, ...]]] = {
    "S": str,
    "N": str,
    "B": bytes,
    "BOOL": bool,
    "NULL": bool,
    "L": (list, tuple),
    "M": (dict, Mapping),
    "SS": (list, tuple),
    "NS": (list, tuple),
    "BS": (list, tuple),
}
_GROWN: Final[Mapping[type, str]] = {ops.Extend: "L", ops.Add: "N"}
"""What a change adds to is of this kind, and so is what it adds."""


class _MalformedError(Exception):
    """What is wrong, in a few words."""


def check(op: ops.Op, spec_of: SpecOf) -> None:
    """Raise what DynamoDB's interpreter raises for a malformed operation, whatever is stored.

    Raises:
        InvalidRequest: as DynamoDB refuses it.
        WrongTable: the table has other keys or indexes.
        MissingTable: no such table.
    """
    try:
        _check(op, spec_of)
    except _MalformedError as malformed:
        _refuse(op, str(malformed))


def check_stored(op: ops.Op, stored: Callable[[str, Key], Item | None]) -> None:
    """Raise what DynamoDB raises for an update that does not fit the stored item.

    A failed condition comes first.
    """
    for write in op.writes if isinstance(op, ops.Transact) else (op,):
        if not isinstance(write, ops.Update) or not (
            grown := [change for change in write.sets if type(change) in _GROWN]
        ):
            continue
        before = stored(write.table, write.key)
        if before is None or not effects.holds(write.condition, before):
            continue
        if any(change.name in before and _GROWN[type(change)] not in before[change.name] for change in grown):
            _refuse(op, "An operand in the update expression has an incorrect data type")
        item_after = after(write, before) or {}
        for sums in (item_after[change.name]["N"] for change in grown if isinstance(change, ops.Add)):
            try:
                _check_number(sums)
            except _MalformedError as malformed:
                _refuse(op, str(malformed))


def _refuse(op: ops.Op, words: str) -> NoReturn:
    """Raise DynamoDB's error for a malformed operation."""
    raise InvalidRequest(request_of(op).operation, "ValidationException", words)


def _check(op: ops.Op, spec_of: SpecOf) -> None:
    """Raise unless an operation is well-formed by the rules of its kind."""
    match op:
        case ops.Get() | ops.BatchGet() | ops.TransactGet():
            _check_keys_read(op, spec_of)
        case ops.Query():
            _check_query(op, spec_of(op.table))
        case ops.Scan():
            _check_scan(op, spec_of(op.table))
        case ops.Transact():
            _check_transaction(op, spec_of)
        case ops.Check():
            raise TypeError("a Check stands only in a transaction")
        case _:
            _check_write(op, spec_of(op.table))


def _check_keys_read(op: ops.Get | ops.BatchGet | ops.TransactGet, spec_of: SpecOf) -> None:
    """Check the keys of an operation that reads items: their form, and that none is given twice."""
    if isinstance(op, ops.Get):
        _check_key(spec_of(op.table), op.table, op.key)
        return
    places = op.keys if isinstance(op, ops.TransactGet) else [(op.table, key) for key in op.keys]
    for table, key in places:
        _check_key(spec_of(table), table, key)
    _check_several(places, spec_of)


def _check_several(places: Sequence[tuple[str, Key]], spec_of: SpecOf) -> None:
    """Check that there is at least one key, and none twice."""
    if not places:
        raise _MalformedError("of nothing")
    items = {
        (table, *(effects.comparable(key[name]) for name in spec_of(table).keys)) for table, key in places
    }
    if len(items) < len(places):
        raise _MalformedError("multiple operations on one item")


def _check_transaction(op: ops.Transact, spec_of: SpecOf) -> None:
    """Check a transaction's token and writes; raise if there are none, or two on one item."""
    if op.token is not None and not 1 <= len(op.token) <= TOKEN_LENGTH:
        raise _MalformedError("a token of 1 to 36 characters is wanted")
    for write in op.writes:
        _check_write(write, spec_of(write.table))
    _check_several(
        [(write.table, write.item if isinstance(write, ops.Put) else write.key) for write in op.writes],
        spec_of,
    )


def _check_write(write: ops.TransactionWrite, spec: tables.TableSpec) -> None:
    """Check the item or key, changes, condition and lengths of expressions of a write."""
    clauses = 0
    if isinstance(write, ops.Put):
        _check_item(spec, write.table, write.item)
    else:
        _check_key(spec, write.table, write.key)
    if isinstance(write, ops.Update):
        _check_update(write, spec)
        clauses = len(write.sets) + len(write.removes)
    if write.condition is not None:
        clauses += _clauses_of(write.condition)
    if clauses > _FEW:
        alone = ops.Transact(writes=(write,))
        ((request,),) = (values.values() for values in request_of(alone).parameters["TransactItems"])
        _check_expressions(request)


def _check_expressions(request: Mapping[str, object]) -> None:
    """Check that no expression of a request is too long."""
    for name, expression in request.items():
        if name.endswith("Expression") and len(str(expression)) > EXPRESSION_BYTES:
            raise _MalformedError(f"Invalid {name}: Expression size has exceeded the maximum allowed size")


def _check_item(spec: tables.TableSpec, table: str, item: Item) -> None:
    """Check the keys, names and values of an item, and its keys in indexes."""
    _check_key_types(spec, table, item)
    for name, value in item.items():
        _check_name(name)
        _check_value(value, LEVELS)
    for index in spec.indexes:
        _check_key_values(index, item)


def _check_update(update: ops.Update, spec: tables.TableSpec) -> None:
    """Check an update: at least one change, none of a key or twice, with valid names and values."""
    names = [*(change.name for change in update.sets), *update.removes]
    if not names:
        raise _MalformedError("Invalid UpdateExpression: The expression can not be empty")
    if len(set(names)) < len(names):
        raise _MalformedError("Invalid UpdateExpression: Two document paths overlap with each other")
    for name in names:
        _check_name(name)
        if name in spec.keys:
            raise _MalformedError(f"Cannot update attribute {name}. This attribute is part of the key")
    for change in update.sets:
        _check_value(change.value, LEVELS)
        if type(change) in _GROWN and _GROWN[type(change)] not in change.value:
            raise _MalformedError("Invalid UpdateExpression: Incorrect operand type for operator or function")
    values = {change.name: change.value for change in update.sets}
    for index in spec.indexes:
        _check_key_values(index, values)


def _check_key(spec: tables.TableSpec, table: str, key: Key) -> None:
    """Check that a key has exactly the attributes of the table's key."""
    if len(key) != (1 if spec.sort is None else 2):
        raise WrongTable(table)
    _check_key_types(spec, table, key)


def _check_key_types(spec: tables.TableSpec, table: str, item: Item) -> None:
    """Check that key attributes are present and of the right types."""
    if any(attribute.type not in item.get(attribute.name, ()) for attribute, _ in _limits(spec)):
        raise WrongTable(table)
    _check_key_values(spec, item)


def _check_key_values(spec: tables.TableSpec | tables.IndexSpec, item: Item) -> None:
    """Check those key attributes of a table or index that an item has."""
    for attribute, limit in _limits(spec):
        if attribute.name in item:
            _check_key_value(attribute, item[attribute.name], limit)


def _limits(spec: tables.TableSpec | tables.IndexSpec) -> list[tuple[tables.KeyAttribute, int]]:
    """Return the key attributes, and the largest number of bytes of each."""
    partition = (spec.partition, PARTITION_KEY_BYTES)
    return [partition] if spec.sort is None else [partition, (spec.sort, SORT_KEY_BYTES)]


def _check_key_value(attribute: tables.KeyAttribute, value: AttributeValue, limit: int) -> None:
    """Check the type, the size and the content of a key attribute."""
    text = value.get("S")
    if attribute.type == "S" and type(text) is str and 0 < 4 * len(text) <= limit and len(value) == 1:
        return  # as nearly all are
    if attribute.type not in value:
        raise _MalformedError(f"{attribute.name}: Type mismatch")
    _check_value(value, LEVELS)
    if not value[attribute.type]:
        raise _MalformedError(f"{attribute.name}: a key attribute cannot contain an empty value")
    if value_size(value) > limit:
        raise _MalformedError(f"{attribute.name}: a key attribute of more than {limit} bytes")


def _check_query(query: ops.Query, spec: tables.TableSpec) -> None:
    """Check the key conditions, the bounds and the start key of a query."""
    index = _index_of(query, spec)
    partition, sort = (spec.partition, spec.sort) if index is None else (index.partition, index.sort)
    name, value = query.partition
    if name != partition.name:
        raise WrongTable(query.table)
    _check_key_value(partition, value, PARTITION_KEY_BYTES)
    if query.sort is not None:
        if sort is None:
            raise _MalformedError("Query key condition not supported")
        if query.sort[0] != sort.name:
            raise WrongTable(query.table)
        low, high = query.sort[1:]
        _check_key_value(sort, low, SORT_KEY_BYTES)
        _check_key_value(sort, high, SORT_KEY_BYTES)
        if effects.comparable(low) > effects.comparable(high):
            raise _MalformedError(
                "Invalid KeyConditionExpression: The BETWEEN operator requires upper bound to be greater than or equal "
                "to lower bound"
            )
    _check_paging(query, spec, index)
    if query.after is not None and not _could_end(query, query.after):
        raise _MalformedError(
            "The provided starting key is outside query boundaries based on provided conditions"
        )


def _could_end(query: ops.Query, after: Key) -> bool:
    """Return whether a page of the query may have ended with this key."""
    name, value = query.partition
    if effects.comparable(after[name]) != effects.comparable(value):
        return False
    if query.sort is None:
        return True
    name, low, high = query.sort
    return bool(effects.comparable(low) <= effects.comparable(after[name]) <= effects.comparable(high))


def _check_scan(scan: ops.Scan, spec: tables.TableSpec) -> None:
    """Check the segment, the paging and the filter of a scan."""
    segment, total = scan.segment
    if not 0 <= segment < total <= SEGMENTS:
        raise _MalformedError(f"there is no segment {segment} of {total}")
    _check_paging(scan, spec, _index_of(scan, spec))
    if scan.where is not None and _clauses_of(scan.where) > _FEW:
        _check_expressions(request_of(scan).parameters)


def _check_paging(op: ops.Query | ops.Scan, spec: tables.TableSpec, index: tables.IndexSpec | None) -> None:
    """Check the limit and the start key of a query or scan."""
    if op.limit is not None and op.limit < 1:
        raise _MalformedError("Limit must be greater than or equal to 1")
    if op.after is None:
        return
    if op.after.keys() != set(spec.keys if index is None else index.key_names(spec)):
        raise _MalformedError("Exclusive Start Key must have same size as table's key schema")
    _check_key_values(spec, op.after)
    if index is not None:
        _check_key_values(index, op.after)


def _index_of(op: ops.Query | ops.Scan, spec: tables.TableSpec) -> tables.IndexSpec | None:
    """Return the index of a query or scan, None for the table; raise if missing or read consistently."""
    if op.index is None:
        return None
    index = next((candidate for candidate in spec.indexes if candidate.name == op.index), None)
    if index is None:
        raise WrongTable(op.table)
    if op.consistent:
        raise _MalformedError("Consistent read cannot be true when querying a GSI")
    return index


def _clauses_of(condition: Condition) -> int:
    """Count the clauses of a condition; raise if it is malformed."""
    match condition:
        case Absent(name) | Present(name) | BeginsWith(name):
            _check_name(name)
        case Compare(name, operator, value):
            _check_name(name)
            _check_value(value, LEVELS + 1)
            if operator != "=" and not value.keys() & _ORDERED:
                raise _MalformedError(
                    f"Invalid ConditionExpression: Incorrect operand type for operator {operator}"
                )
        case Not(compared):
            return _clauses_of(compared)
        case All(conditions) | AnyOf(conditions):
            if not conditions:
                raise _MalformedError("Invalid ConditionExpression: The expression can not be empty")
            return sum(map(_clauses_of, conditions))
    return 1


@lru_cache(maxsize=1024)  # names are few, and each is looked at in every request
def _check_name(name: str) -> None:
    """Check the length of an attribute's name."""
    if not 1 <= len(name.encode()) <= NAME_BYTES:
        raise _MalformedError("an attribute's name has 1 to 65,535 bytes")


def _check_value(value: AttributeValue, levels: int) -> None:
    """Check that DynamoDB can hold a value, with lists and maps nested at most `levels` deep."""
    if not levels:
        raise _MalformedError("Nesting Levels have exceeded supported limits")
    ((kind, content),) = value.items()
    if not isinstance(value[kind], _PYTHON.get(kind, ())):
        raise _MalformedError(f"a value of the type {kind} that is none")
    if kind == "N":
        _check_number(content)
    elif kind == "L":
        for member in content:
            _check_value(member, levels - 1)
    elif kind == "M":
        for name, member in content.items():
            _check_name(name)
            _check_value(member, levels - 1)
    elif kind == "NULL" and not content:
        raise _MalformedError("Null attribute value types must have the value of true")
    elif kind in ("SS", "NS", "BS"):
        _check_set(kind[0], content)


def _check_set(kind: str, members: Iterable[str | bytes]) -> None:
    """Check that a set is not empty, has nothing twice, and has only values that DynamoDB has."""
    single_sets = [{kind: member} for member in members]
    for single_set in single_sets:
        _check_value(single_set, 1)
    if not single_sets or len({effects.comparable(single_set) for single_set in single_sets}) < len(
        single_sets
    ):
        raise _MalformedError("a set has something, and nothing twice")


def _check_number(digits: str) -> None:
    """Check that a number has a form, a precision and a magnitude that DynamoDB supports."""
    if len(digits) <= DIGITS and digits.isascii() and digits.isdecimal():
        return  # as nearly all are
    if not _NUMBER.fullmatch(digits):
        raise _MalformedError("A value provided cannot be converted into a number")
    number = Decimal(digits)
    significant = "".join(map(str, number.as_tuple().digits)).strip("0")
    if len(significant) > DIGITS:
        raise _MalformedError("DynamoDB only supports precision up to 38 digits")
    if significant and not LOWEST <= number.adjusted() <= HIGHEST:
        raise _MalformedError("a number with a magnitude out of the supported range")
