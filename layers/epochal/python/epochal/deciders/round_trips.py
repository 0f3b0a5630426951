"""Whether a value that was read back from JSON is the one that was written: equal, and of equal types, at any depth.

The fields of some classes do not show this: classes of Pydantic and msgspec, and dataclasses and classes of attrs whose
constructors run code of their own. A member may be of a subclass whose own members are dropped, a serializer may write
what its validator reads as something else, and a constructor may change its arguments. So a value of such a class is
read back and compared before it is stored.

Two differences are allowed, since the type of the field implies them:

    an int where the type is float or Decimal        is read back as that, if it is equal
    a subclass of datetime or date                   is read back as those, if its text is the same

Parts that a class excludes from its stored value are not compared: fields that Pydantic excludes, private attributes,
and fields that are neither an argument of the constructor nor part of the comparison.
"""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from datetime import date, datetime
from decimal import Decimal
from types import NoneType
from typing import Any, Final

from epochal.deciders.mismatch import Mismatch

NAIVE: Final = "must have a time zone: datetime.now(UTC), for instance"
"""Rule that an event's time without an offset from UTC breaks."""

_LACKING: Final = object()
_ITSELF: Final = frozenset({str, int, bool, NoneType, bytes})
"""Types whose values are compared by `==` alone."""

Compare = Callable[[Any, Any], None]


def must_come_back(value: Any, back: Any, *, aware: bool = False) -> None:
    """Raise `Mismatch` if a value read back from JSON differs from the one that was written.

    With `aware`, times without an offset are refused, too.

    Raises:
        Mismatch: a part of the value differs; names that part.
    """
    _Comparison(aware).compare(value, back)


class _Comparison:
    """Compares one value with what was read back; `aware` refuses times without an offset."""

    def __init__(self, aware: bool) -> None:
        self.aware = aware

    def compare(self, value: Any, back: Any) -> None:
        """Raise `Mismatch` at the first part of a value that came back different."""
        kind = type(value)
        if kind in _ITSELF and type(back) is kind and value == back:
            return
        if isinstance(value, date):
            self._compare_dates(value, back)
        elif kind is not type(back):
            if not (kind is int and type(back) in (float, Decimal) and value == back):
                raise _other(value, back)
        elif isinstance(value, float | Decimal):
            if not _same_number(value, back):
                raise _other(value, back)
        elif isinstance(value, list | tuple | deque):
            self._compare_members(value, back, enumerate(value), dict(enumerate(back)))
        elif isinstance(value, Mapping):
            self._compare_keys(value, back)
            self._compare_members(value, back, value.items(), back)
        elif isinstance(value, AbstractSet):
            self._compare_keys(value, back)
        else:
            self._compare_objects(value, back)

    def _compare_dates(self, value: date, back: Any) -> None:
        """Raise `Mismatch` if the texts of two dates or times differ, or if a needed offset is missing.

        Times in the hour that a clock repeats are never equal to those of another zone.
        """
        if isinstance(value, datetime) and self.aware and value.utcoffset() is None:
            raise Mismatch(NAIVE, got=value)
        same_kind = isinstance(back, date) and isinstance(value, datetime) == isinstance(back, datetime)
        # By the text, since times in the hour that a clock repeats are never equal to those of another zone.
        if not same_kind or value.isoformat() != back.isoformat():
            raise _other(value, back)

    def _compare_keys(self, value: Any, back: Any) -> None:
        """Raise `Mismatch` if the keys of an object, or the members of a set, came back different."""
        keys = {key: key for key in back}
        if len(value) != len(keys):
            raise _other(value, back)
        for key in value:
            if key not in keys:
                raise _other(value, back)
            self._within(str(key), key, keys[key])

    def _compare_members(self, value: Any, back: Any, members: Any, of_back: Mapping[Any, Any]) -> None:
        """Compare the members of a list or object one by one."""
        if len(value) != len(back):
            raise _other(value, back)
        for name, member in members:
            self._within(str(name), member, of_back[name])

    def _compare_objects(self, value: Any, back: Any) -> None:
        """Raise `Mismatch` if two objects differ in stored members, or as values if they have none."""
        if value is back:
            return
        members = _members_of(value)
        if members is None:
            if not _equal(value, back):
                raise _other(value, back)
            return
        of_back = _members_of(back) or {}
        if members.keys() != of_back.keys():
            raise _other(value, back)
        for name, member in members.items():
            self._within(name, member, of_back[name])

    def _within(self, name: str, value: Any, back: Any) -> None:
        """Compare a member, and put its name into the path of a mismatch."""
        try:
            self.compare(value, back)
        except Mismatch as mismatch:
            raise mismatch.inside(name) from None


def _members_of(value: Any) -> dict[str, Any] | None:
    """Return the stored members of an object by name; None if it is a single value."""
    kind: Any = type(value)
    if hasattr(kind, "__pydantic_fields__") and not dataclasses.is_dataclass(kind):
        stored = [name for name, field in kind.__pydantic_fields__.items() if not field.exclude]
        return {**_present(value, stored), **(value.__pydantic_extra__ or {})}
    if hasattr(kind, "__struct_fields__"):
        return _present(value, kind.__struct_fields__)
    if "__attrs_attrs__" in vars(kind):
        return _present(value, [field.name for field in kind.__attrs_attrs__ if field.init or field.eq])
    if dataclasses.is_dataclass(kind):
        excluded = [name for name, field in getattr(kind, "__pydantic_fields__", {}).items() if field.exclude]
        fields = [field.name for field in dataclasses.fields(kind) if field.init or field.compare]
        return _present(value, [name for name in fields if name not in excluded])
    if kind.__eq__ is object.__eq__ and hasattr(value, "__dict__"):
        return dict(vars(value))
    return None


def _present(value: Any, names: Any) -> dict[str, Any]:
    """Return those attributes of an object that it has."""
    members = {name: getattr(value, name, _LACKING) for name in names}
    return {name: member for name, member in members.items() if member is not _LACKING}


def _same_number(value: float | Decimal, back: float | Decimal) -> bool:
    """Return whether two numbers are the same to the digit and the sign."""
    if isinstance(value, Decimal) and isinstance(back, Decimal):
        return not value.is_nan() and value.as_tuple() == back.as_tuple()
    return value == back and math.copysign(1, value) == math.copysign(1, back)


def _equal(value: Any, back: Any) -> bool:
    """Return whether two values are equal; False if comparing them fails."""
    try:
        return value is back or bool(value == back)
    except Exception:  # noqa: BLE001  the code of whoever made the type
        return False


def _other(value: Any, back: Any) -> Mismatch:
    """Build the mismatch of a value that came back as another."""
    if type(value) is not type(back):
        kind = type(back).__name__
        return Mismatch(f"must be of type {kind}, the type that is read back", got=value)
    return Mismatch("must not change when it is written as JSON and read back", got=value)


def unwritable_in(value: Any) -> Mismatch | None:
    """Return a `Mismatch` for the first part of a value that JSON cannot hold; None if there is none.

    Such parts are lone surrogates, numbers that are not finite, and integers with more digits than Python writes.
    """
    if isinstance(value, str | int | float):
        return None if (rule := _rule_broken_by(value)) is None else Mismatch(rule, got=value)
    if isinstance(value, Mapping):
        keys = [mismatch for key in value if (mismatch := unwritable_in(key))]
        if keys:
            return keys[0]
        members: Any = value.items()
    elif isinstance(value, list | tuple | deque | AbstractSet):
        members = enumerate(value)
    else:
        members = (_members_of(value) or {}).items()
    for name, member in members:
        if mismatch := unwritable_in(member):
            return mismatch.inside(str(name))
    return None


def _rule_broken_by(value: str | float) -> str | None:
    """Return the rule that a text or number breaks; None if JSON can hold it."""
    if isinstance(value, float):
        return None if math.isfinite(value) else "must be a finite number"
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return "must not contain a lone surrogate"
    except ValueError:
        return "must be an integer of fewer digits"
    return None
