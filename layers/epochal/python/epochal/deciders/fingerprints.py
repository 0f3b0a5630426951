"""Fingerprints of classes: short texts that change when the stored form of a class does.

A snapshot is a cache of the state that events lead to. If a field with a default is added to its class, an old snapshot
is read as a wrong state, and nothing in the snapshot shows it. So the fingerprint of the class is stored beside it, and
compared before it is used.

    changes it           names, aliases, types, order and defaults of fields, at any depth; names and values of the
                         members of enumerations; whether a field has a default factory, and the factory's name
    does not change it   the class's own name and module, docstrings, methods, validators, what a factory returns

What a fingerprint does not show, such as another `evolve`, needs a version that the user raises. A change that does not
matter, such as another order of fields, costs one load from the events.

No text in a fingerprint depends on the version of Python or of the library that the class is made with: otherwise an
upgrade would make every state be loaded from its events.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Final, Literal, NewType, Union, get_args, get_origin, get_type_hints
from uuid import UUID
from weakref import WeakKeyDictionary

from epochal.codec import json

_DIGITS: Final = 12
"""Hexadecimal digits of a fingerprint: a class has few forms in its life, and they need to differ from each other."""

_known: WeakKeyDictionary[type, str] = WeakKeyDictionary()


def fingerprint_of(kind: type) -> str:
    """Return the fingerprint of a class: a dataclass, or a class of attrs, Pydantic or msgspec."""
    fingerprint = _known.get(kind)
    if fingerprint is None:
        description = json.dumps(_Descriptions().of(kind))
        fingerprint = _known[kind] = hashlib.sha256(description).hexdigest()[:_DIGITS]
    return fingerprint


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    """A field as it is stored: its name, its type, and its default, None if it has none."""

    name: str
    hint: Any
    default: Any


class _Descriptions:
    """Describes types as plain JSON, remembering classes, since a class may contain itself."""

    def __init__(self) -> None:
        self._seen: dict[type, int] = {}

    def of(self, hint: Any) -> Any:
        """Describe a type hint as plain JSON: a name, or a list of a name and the parts' descriptions."""
        if isinstance(hint, NewType):
            return self.of(hint.__supertype__)
        if type(hint).__name__ == "TypeAliasType":  # `type X = …`, from Python 3.12 on
            return self.of(hint.__value__)
        origin, parts = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return self.of(parts[0])
        if origin is Literal:
            return ["one of", *map(_value, parts)]
        if origin in (Union, UnionType):
            return ["union", *sorted(map(self.of, parts), key=json.dumps)]
        if origin is not None:
            return [self.of(origin), *map(self._part, parts)]
        if isinstance(hint, type):
            return self._class(hint)
        return "None" if hint is None else str(getattr(hint, "__name__", hint))

    def _part(self, part: Any) -> Any:
        """Describe an argument of a generic type, which need not be a type."""
        if part is Ellipsis:
            return "..."
        return [self.of(element) for element in part] if isinstance(part, list) else self.of(part)

    def _class(self, kind: type) -> Any:
        """Describe a class by its fields or enum members, else by name; by a number if described before."""
        if issubclass(kind, Enum):
            return ["enum", *([name, _value(member.value)] for name, member in kind.__members__.items())]
        fields = _fields(kind)
        if fields is None:
            return "None" if kind is type(None) else kind.__qualname__
        if kind in self._seen:
            return ["class", self._seen[kind]]
        self._seen[kind] = len(self._seen)
        return ["class", *([field.name, self.of(field.hint), field.default] for field in fields)]


def _fields(kind: Any) -> list[_Field] | None:
    """Return the stored fields of a class; None if it is not a class with fields."""
    pydantic = getattr(kind, "__pydantic_fields__", None) or getattr(kind, "model_fields", None)
    if hasattr(kind, "__pydantic_validator__") and isinstance(pydantic, dict):
        return [*_pydantic(pydantic)]
    if hasattr(kind, "__struct_config__"):
        return [*_msgspec(kind)]
    if "__attrs_attrs__" in vars(kind):
        return [*_attrs(kind)]
    if dataclasses.is_dataclass(kind):
        return [*_dataclass(kind)]
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return [*_annotated(kind, kind._fields, kind._field_defaults)]
    if issubclass(kind, dict) and hasattr(kind, "__total__"):
        required: frozenset[str] = getattr(kind, "__required_keys__", frozenset())
        return [
            *_annotated(kind, _hints(kind), {name: None for name in _hints(kind) if name not in required})
        ]
    return None


def _dataclass(kind: Any) -> Iterator[_Field]:
    """Iterate over the stored fields of a dataclass."""
    hints = _hints(kind)
    for field in dataclasses.fields(kind):
        if field.init:
            default = _default(field.default, field.default_factory, dataclasses.MISSING)
            yield _Field(field.name, hints.get(field.name, field.type), default)


def _attrs(kind: Any) -> Iterator[_Field]:
    """Yield the fields that the constructor of a class of attrs takes, with types and defaults."""
    from attrs import NOTHING  # noqa: PLC0415  whoever made the class has loaded it

    hints = _hints(kind)
    for field in kind.__attrs_attrs__:
        if field.init:
            factory = getattr(field.default, "factory", NOTHING)
            default = NOTHING if factory is not NOTHING else field.default
            yield _Field(field.name, hints.get(field.name, field.type), _default(default, factory, NOTHING))


def _pydantic(fields: Mapping[str, Any]) -> Iterator[_Field]:
    """Yield the fields of a Pydantic model by the names they are written as, with types and defaults."""
    from pydantic_core import PydanticUndefined  # noqa: PLC0415  as above

    for name, field in fields.items():
        factory = PydanticUndefined if field.default_factory is None else field.default_factory
        alias = field.serialization_alias or field.alias or name
        yield _Field(alias, field.annotation, _default(field.default, factory, PydanticUndefined))


def _msgspec(kind: Any) -> Iterator[_Field]:
    """Iterate over the stored fields of a msgspec struct."""
    import msgspec  # noqa: PLC0415  as above

    for field in msgspec.structs.fields(kind):
        default = _default(field.default, field.default_factory, msgspec.NODEFAULT)
        yield _Field(field.encode_name, field.type, default)


def _annotated(kind: type, names: Iterable[str], defaults: Mapping[str, Any]) -> Iterator[_Field]:
    """Iterate over the fields of a named tuple or typed dictionary."""
    hints = _hints(kind)
    for name in names:
        yield _Field(name, hints.get(name, Any), [_value(defaults[name])] if name in defaults else None)


def _hints(kind: type) -> dict[str, Any]:
    """Return the types of a class's fields; none if a name in them cannot be resolved here."""
    try:
        return get_type_hints(kind)
    except (NameError, TypeError, AttributeError):
        return {}


def _default(value: Any, factory: Any, missing: Any) -> Any:
    """Describe the default of a field, a factory only by its name; None if it has no default.

    A factory is never called: it may read a clock.
    """
    if factory is not missing:
        return ["factory", str(getattr(factory, "__qualname__", type(factory).__qualname__))]
    return None if value is missing else [_value(value)]


def _value(value: Any) -> Any:
    """Describe a value by its content; a value of an unknown class only by that class.

    Its text may contain an address.
    """
    name = type(value).__qualname__
    if isinstance(value, Enum):
        return ["enum", value.name]
    if value is None or isinstance(
        value, str | bytes | int | float | Decimal | date | time | timedelta | UUID
    ):
        return [name, ascii(value) if isinstance(value, str) else str(value)]
    if isinstance(value, Mapping):
        return [
            name,
            sorted(([_value(key), _value(member)] for key, member in value.items()), key=json.dumps),
        ]
    if isinstance(value, AbstractSet):
        return [name, sorted(map(_value, value), key=json.dumps)]
    if isinstance(value, list | tuple):
        return [name, *map(_value, value)]
    fields = _fields(type(value))
    if fields is None:
        return [name]
    return ["class", *([member.name, _value(getattr(value, member.name, None))] for member in fields)]
