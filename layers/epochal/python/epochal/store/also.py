"""Writes to a program's own tables in the transaction of an append: they are made with the events, or not at all.

    put, update, delete     write one item each
    check                   requires a condition on an item that is not written
    when=                   takes `Absent`, `Present`, `BeginsWith` or `compare`; or `All`, `AnyOf` and `Not` of these

Values are Python's: text, `bytes`, `int`, `Decimal`, `bool`, None, lists, mappings, and sets of text, numbers or bytes.
Conditions and changes are objects, not DynamoDB's expressions, so that tables in memory can evaluate them, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from typing import Any, Final, TypeAlias, get_args

from epochal.errors import InvalidInput, TooLarge
from epochal.model.kinds import must_be, must_be_list, must_be_names, must_be_text
from epochal.plan.conditions import (
    Absent,
    All,
    AnyOf,
    BeginsWith,
    Compare,
    Comparison,
    Condition,
    Not,
    Present,
)
from epochal.plan.limits import ITEM_BYTES, TRANSACTION_BYTES, TRANSACTION_ITEMS
from epochal.plan.ops import Add, Check, Delete, Extend, Put, Set, TransactionWrite, Update
from epochal.plan.values import AttributeValue, Item, item_size

__all__ = [
    "Absent",
    "All",
    "AnyOf",
    "BeginsWith",
    "Not",
    "Present",
    "TransactionWrite",
    "check",
    "compare",
    "delete",
    "plain",
    "put",
    "update",
]

Values: TypeAlias = Mapping[str, Any]
"""Attributes of an item by name. Values are text, `bytes`, `int`, `Decimal`, `bool`, None, lists, mappings, and sets of
text, numbers or bytes.
"""

LEVELS: Final = 32
DIGITS: Final = 38
LEAST_EXPONENT: Final = -130
MOST_EXPONENT: Final = 125
"""DynamoDB's limits for levels of lists and mappings in an attribute, and for digits and exponents of numbers."""

ATTRIBUTE_BYTES: Final = 65_535
"""Largest bytes of an attribute's name."""

NAME_BYTES: Final = 1_024
"""Largest bytes of a table's name, which may be its ARN."""

_SETS: Final = {"S": "SS", "N": "NS", "B": "BS"}


def put(table: str, item: Values, *, when: Condition | None = None) -> Put:
    """Make a write of a whole item, which replaces an existing item with the same key.

    Args:
        table: name of a table of your own, in the same account and region.
        item: attributes of the item by name, as Python values.
        when: a condition on the item that is there: `Absent`, `Present`, `BeginsWith` or `compare` of an attribute, or
            `All`, `AnyOf` and `Not` of such conditions, all of this module. `Absent("email")`, where `email` is the
            partition key, writes only a new item. None writes in any case.

    Raises:
        InvalidInput: a value that DynamoDB does not have: a `float`, a number of more than 38 digits or beyond 1E125,
            or more than 32 levels of lists and mappings.
    """
    return Put(table=_table(table), item=_item(item), condition=_when(when))


def update(
    table: str,
    key: Values,
    *,
    sets: Values | None = None,
    adds: Mapping[str, int | Decimal] | None = None,
    extends: Mapping[str, Sequence[Any]] | None = None,
    removes: Sequence[str] = (),
    when: Condition | None = None,
) -> Update:
    """Make a write that changes attributes of an item, or creates the item.

    Args:
        table: name of a table of your own, in the same account and region.
        key: attributes of the item's primary key.
        sets: new values of attributes.
        adds: numbers that are added to attributes; an absent attribute counts as 0.
        extends: members that are added at the end of lists; an absent attribute counts as an empty list.
        removes: names of attributes that are removed.
        when: condition on the existing item, as for `put`.

    Raises:
        InvalidInput: as `put`; a value of the key is empty; nothing changes, an attribute changes twice, or one of the
            key does; an attribute is raised by what is no number, or extended by what is no list.
    """
    must_be(Mapping, key, "key", "a mapping of attributes")
    must_be_names(removes, "removes")
    for field, values in (("sets", sets), ("adds", adds), ("extends", extends)):
        must_be((Mapping, type(None)), values, field, "a mapping of attributes")
    for name, value in (adds or {}).items():
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            raise InvalidInput(name, f"must be increased by an int or a Decimal, not {type(value).__name__}")
    for name, elements in (extends or {}).items():
        must_be_list(object, elements, name)
    changed = [*(sets or {}), *(adds or {}), *(extends or {}), *removes]
    if not changed:
        raise InvalidInput("update", "must change something: give sets, adds, extends or removes")
    for place, name in enumerate(changed):
        if name in key or name in changed[:place]:
            rule = "must not change: it is part of the key" if name in key else "must be changed only once"
            raise InvalidInput(name, rule)
    changes: list[Set | Add | Extend] = [Set(name, value) for name, value in _item(sets or {}).items()]
    changes += (Add(name, value) for name, value in _item(adds or {}).items())
    changes += (Extend(name, value) for name, value in _item(extends or {}).items())
    return Update(
        table=_table(table), key=_key(key), sets=tuple(changes), removes=tuple(removes), condition=_when(when)
    )


def delete(table: str, key: Values, *, when: Condition | None = None) -> Delete:
    """Make a write that deletes an item; if there is no such item, it changes nothing.

    Args:
        table: name of a table of your own, in the same account and region.
        key: attributes of the item's primary key.
        when: condition on the existing item, as for `put`.

    Raises:
        InvalidInput: as `update`.
    """
    return Delete(table=_table(table), key=_key(key), condition=_when(when))


def check(table: str, key: Values, when: Condition) -> Check:
    """Make a check that stops the append unless a condition holds on an item; the item is not written.

    Args:
        table: name of a table of your own, in the same account and region.
        key: attributes of the item's primary key.
        when: condition on the item, as for `put`.

    Raises:
        InvalidInput: as `update`.
    """
    _check_condition(when, "when")
    return Check(table=_table(table), key=_key(key), condition=when)


def compare(name: str, operator: Comparison, value: object) -> Compare:
    """Make the condition that an attribute exists and is `=`, `<`, `<=` or `>=` a value of its type.

    Args:
        name: name of the attribute.
        operator: `=`, `<`, `<=` or `>=`.
        value: Python value that the attribute is compared with.

    Raises:
        InvalidInput: as `put`; the operator is none of `Comparison`.
    """
    if operator not in get_args(Comparison):
        raise InvalidInput("operator", f"must be one of {', '.join(get_args(Comparison))}")
    return Compare(name, operator, _value(value, name, -1))  # which may go a level deeper than in an item


def plain(item: Item) -> dict[str, Any]:
    """Convert a DynamoDB item to Python values; whole numbers become `int`, others `Decimal`.

    Args:
        item: attributes by name, each as DynamoDB's client has it: `{"S": "text"}`.
    """
    return {name: _plain(value) for name, value in item.items()}


def validate_writes(also: Sequence[TransactionWrite], own: Container[str]) -> tuple[TransactionWrite, ...]:
    """Return the writes that go with an append as a tuple; raise if they are not allowed or too large.

    Args:
        also: puts, updates, deletes and checks.
        own: names of the store's own tables, which such writes must not touch.

    Raises:
        InvalidInput: something that is no such write; an item in a table of the store's; two writes on one item.
        TooLarge: more items or bytes than DynamoDB allows in an item or a transaction.
    """
    must_be_list(object, also, "also")
    if len(also) >= TRANSACTION_ITEMS:
        raise TooLarge("also", len(also), TRANSACTION_ITEMS - 1, "items")
    earlier, total = list[TransactionWrite](), 0
    for place, write in enumerate(also):
        must_be(
            (Put, Update, Delete, Check),
            write,
            f"also[{place}]",
            "a put, update, delete or check of `epochal.store.also`",
        )
        if write.table in own:
            raise InvalidInput(f"also[{place}]", f"must not name a table of the store itself: {write.table}")
        if any(_one_item(write, other) for other in earlier):
            raise InvalidInput(f"also[{place}]", "must not name an item that an earlier write names")
        size = _size(write)
        if size > ITEM_BYTES:
            raise TooLarge(f"also[{place}]", size, ITEM_BYTES)
        earlier.append(write)
        total += size
    if total > TRANSACTION_BYTES:
        raise TooLarge("also", total, TRANSACTION_BYTES)
    return tuple(also)


def digest(also: Sequence[TransactionWrite]) -> bytes:
    """Compute the digest of the writes that go with an append; empty bytes for no writes.

    Under an idempotency key the digest distinguishes a repeat from an append with other writes.
    """
    return hashlib.sha256(repr([*also]).encode()).digest() if also else b""


def _one_item(left: TransactionWrite, right: TransactionWrite) -> bool:
    """Return whether two writes are known to be on the same item.

    Only the table knows which attributes of a `put` are the key, so two puts count as one item only if they are equal.
    """
    if left.table != right.table:
        return False
    if isinstance(left, Put) and isinstance(right, Put):
        return left.item == right.item
    if isinstance(left, Put):
        left, right = right, left
    place = right.item if isinstance(right, Put) else right.key
    return not isinstance(left, Put) and all(place.get(name) == value for name, value in left.key.items())


def _size(write: TransactionWrite) -> int:
    """Compute the bytes that a write adds to a transaction: item, or key and changed attributes."""
    if isinstance(write, Put):
        return item_size(write.item)
    changes = {change.name: change.value for change in write.sets} if isinstance(write, Update) else {}
    return item_size(write.key) + item_size(changes)


def _table(name: str) -> str:
    must_be_text(name, NAME_BYTES, "table")
    return name


def _key(values: Values) -> dict[str, AttributeValue]:
    """Convert Python values to a DynamoDB key; raise unless each is a number or non-empty text or bytes.

    Raises:
        InvalidInput: a value that is neither a number nor non-empty text or bytes.
    """
    key = _item(values)
    for name, value in key.items():
        if not any(map(value.get, "SNB")):
            raise InvalidInput(name, "is part of the key, so it must be a number, or non-empty text or bytes")
    return key


def _item(values: Values, within: str = "", depth: int = 0) -> dict[str, AttributeValue]:
    """Convert a mapping of Python values to a DynamoDB item, with its attributes sorted by name.

    Args:
        within: name of the attribute that the mapping lies in, for error messages; empty for a whole item.
        depth: level of nesting.

    Raises:
        InvalidInput: a name that is no text, or a value that DynamoDB does not have.
    """
    must_be(Mapping, values, "also", "a mapping of attributes")
    for name in values:
        must_be(str, name, "also", "a mapping whose keys are attribute names (text)")
        if not name and not depth:
            raise InvalidInput("also", "must not contain an empty attribute name")
        _utf8(name, "also")
    # Sorted, so that a repeat under an idempotency key has the same digest whatever the caller's order is.
    return {name: _value(values[name], within or name, depth) for name in sorted(values)}


def _check_number(value: Decimal, name: str) -> None:
    """Raise `InvalidInput` unless DynamoDB can hold a number: finite, 38 digits, 1E-130 to 1E125."""
    if not value.is_finite():
        raise InvalidInput(name, "must be a finite number")
    digits = len("".join(map(str, value.as_tuple().digits)).strip("0"))
    if digits > DIGITS or (value and not LEAST_EXPONENT <= value.adjusted() <= MOST_EXPONENT):
        raise InvalidInput(
            name, f"must have at most {DIGITS} digits, and a size of 1E{LEAST_EXPONENT} to 1E{MOST_EXPONENT}"
        )


def _value(value: object, name: str, depth: int = 0) -> AttributeValue:
    """Convert a Python value to a DynamoDB attribute value.

    Args:
        name: name of the attribute, for error messages.
        depth: level of nesting, less than 32.

    Raises:
        InvalidInput: a value that DynamoDB does not have.
    """
    if depth >= LEVELS:
        raise InvalidInput(name, f"has more than {LEVELS} levels of lists and mappings")
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": _utf8(value, name)}
        case bytes():
            return {"B": value}
        case int() | Decimal():
            _check_number(Decimal(value), name)
            return {"N": str(value)}
        case Mapping():
            return {"M": _item(value, name, depth + 1)}
        case list() | tuple():
            return {"L": [_value(member, name, depth + 1) for member in value]}
        case AbstractSet() if value:
            return _set(value, name)
        case _:
            rule = f"is {type(value).__name__}, not a DynamoDB type; use int or Decimal for numbers"
            raise InvalidInput(name, rule)


def _when(condition: Condition | None) -> Condition | None:
    if condition is not None:
        _check_condition(condition, "when")
    return condition


def _check_condition(condition: object, field: str) -> None:
    """Raise `InvalidInput` unless a condition is well-formed, with the field of the faulty part.

    Conditions that only DynamoDB would refuse are refused here, too.
    """
    match condition:
        case All(conditions=parts) | AnyOf(conditions=parts):
            must_be((list, tuple), parts, f"{field}.conditions", "a list of conditions")
            if not parts:
                raise InvalidInput(f"{field}.conditions", "must not be empty")
            for place, member in enumerate(parts):
                _check_condition(member, f"{field}.conditions[{place}]")
        case Not(condition=part):
            _check_condition(part, f"{field}.condition")
        case Absent(name=name) | Present(name=name) | BeginsWith(name=name) | Compare(name=name):
            must_be_text(name, ATTRIBUTE_BYTES, f"{field}.name")
            if isinstance(condition, BeginsWith):
                must_be(str, condition.prefix, f"{field}.prefix", "text")
                _utf8(condition.prefix, f"{field}.prefix")
            if isinstance(condition, Compare):
                must_be(
                    Mapping,
                    condition.value,
                    f"{field}.value",
                    "a value made by `compare` of `epochal.store.also`",
                )
        case _:
            must_be(get_args(Condition), condition, field, "a condition of `epochal.store.also`")


def _utf8(text: str, name: str) -> str:
    """Return the given text; raise `InvalidInput` if UTF-8 cannot encode it.

    Args:
        name: name of the attribute, for error messages.

    Raises:
        InvalidInput: the text has lone surrogates.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(name, "must be text without lone surrogates, which UTF-8 cannot encode") from error
    return text


def _set(values: AbstractSet[object], name: str) -> AttributeValue:
    """Convert a set to a sorted DynamoDB set; raise unless all are text, all numbers or all bytes.

    Raises:
        InvalidInput: members of different types, or of types that DynamoDB has no sets of.
    """
    members = [_value(value, name) for value in values]
    kinds = {kind for member in members for kind in member}
    if len(kinds) > 1 or not kinds <= _SETS.keys():
        raise InvalidInput(name, "must be a set of only text, only numbers or only bytes")
    (kind,) = kinds
    return {_SETS[kind]: sorted(member[kind] for member in members)}


def _plain(value: AttributeValue) -> Any:
    """Convert a DynamoDB attribute value to a Python value."""
    ((kind, content),) = value.items()
    match kind:
        case "NULL":
            return None
        case "N":
            return _number(content)
        case "L":
            return [_plain(member) for member in content]
        case "M":
            return plain(content)
        case "SS" | "BS":
            return set(content)
        case "NS":
            return set(map(_number, content))
        case "B":
            return bytes(content)
        case _:
            return content


def _number(text: str) -> int | Decimal:
    number = Decimal(text)
    return int(number) if number == number.to_integral_value() else number
