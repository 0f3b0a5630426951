"""JSON Schemas (2020-12) of the classes that events are made of, by the library that a class is made with.

    dataclass, attrs      their fields' hints, as `deciders.shapes` writes and reads them
    pydantic              `TypeAdapter.json_schema`, of what the model reads, by the names that it writes
    msgspec.Struct        `msgspec.json.schema`

What a codec writes fits its schema. What fits is read, as far as types say: a class may have rules that no type has.
Readers are more tolerant, as of forms of times. Members that a class ignores fit, and one with a
default may be missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Final, Literal, NewType, Union, get_args, get_origin
from uuid import UUID

from epochal.deciders.shapes import ARRAYS, arguments_of, fields_in, hints_of, is_record, written_as

Schema = dict[str, Any]

DEFINITIONS: Final = "#/$defs/"
"""Where a schema refers to parts of itself."""

_SCALARS: Final[dict[Any, Schema]] = {
    Any: {},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Decimal: {"type": "number", "format": "decimal"},
    None: {"type": "null"},
    NoneType: {"type": "null"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    UUID: {"type": "string", "format": "uuid"},
}


def schema_of(kind: type) -> Schema:
    """The schema of a class that a codec takes, its own members at the root, and others in `$defs`."""
    if hasattr(kind, "__pydantic_validator__"):
        import pydantic.json_schema  # noqa: PLC0415  whoever made the class has loaded it

        core = _as_written(pydantic.TypeAdapter(kind).core_schema)
        return _at_root(pydantic.json_schema.GenerateJsonSchema().generate(core))
    if hasattr(kind, "__struct_config__"):
        import msgspec  # noqa: PLC0415  as above

        return _at_root(msgspec.json.schema(kind))
    made = _Hints()
    return _at_root({**made.of(kind), "$defs": made.records})


def _as_written(schema: Any) -> Any:
    """A core schema of Pydantic's that reads each field by the name alone that it is written under."""
    if isinstance(schema, list | tuple):
        return type(schema)(map(_as_written, schema))
    if not isinstance(schema, dict):
        return schema
    made = {key: part if key in ("config", "metadata") else _as_written(part) for key, part in schema.items()}
    for name, field in fields_in(made):
        field["validation_alias"] = written_as(name, field)
    return made


def _at_root(schema: Schema) -> Schema:
    """The same with what the root refers to in its place, and without definitions that nothing refers to."""
    found = {name: each for name, each in schema.items() if name != "$defs"}
    definitions: dict[str, Schema] = schema.get("$defs", {})
    while (reference := found.pop("$ref", None)) is not None:
        found = {**definitions[reference.removeprefix(DEFINITIONS)], **found}
    used, wanted = dict[str, Schema](), [*referred(found)]
    while wanted:
        name = wanted.pop()
        if name not in used:
            used[name] = definitions[name]
            wanted += referred(used[name])
    return {**found, "$defs": {name: used[name] for name in definitions if name in used}} if used else found


def referred(schema: Any) -> Iterator[str]:
    """The definitions that a schema, or a part of one, refers to."""
    match schema:
        case {"$ref": str(reference), **rest}:
            yield reference.removeprefix(DEFINITIONS)
            yield from referred(list(rest.values()))
        case dict():
            yield from referred(list(schema.values()))
        case list():
            for each in schema:
                yield from referred(each)
        case _:
            pass


class _Hints:
    """Schemas of hints, which `deciders.shapes` has found to have forms in JSON.

    Attributes:
        records: of classes, by the names under which others refer to them.
    """

    def __init__(self) -> None:
        self.records: dict[str, Schema] = {}
        self._names: dict[type, str] = {}

    def of(self, hint: Any) -> Schema:
        if isinstance(hint, NewType):
            return self.of(hint.__supertype__)
        if hint in _SCALARS:
            return dict(_SCALARS[hint])
        if isinstance(hint, type) and issubclass(hint, Enum):
            return _chosen([member.value for member in hint])
        if is_record(hint):
            return {"$ref": DEFINITIONS + self._record(hint)}
        return self._composed(get_origin(hint), get_args(hint))

    def _composed(self, origin: Any, parts: tuple[Any, ...]) -> Schema:
        if origin is Literal:
            return _chosen(parts)
        if origin in (Union, UnionType):
            (one,) = (part for part in parts if part is not NoneType)
            return {"anyOf": [self.of(one), {"type": "null"}]}
        if origin is tuple and parts[-1:] != (Ellipsis,):
            many = {"minItems": len(parts), "maxItems": len(parts)}
            first = {"prefixItems": [self.of(part) for part in parts]} if parts else {}
            return {"type": "array", **first, **many}
        if origin in ARRAYS:
            return {"type": "array", "items": self.of(parts[0])}
        return {"type": "object", "additionalProperties": self.of(parts[1])}

    def _record(self, kind: type) -> str:
        """The name of a class's schema. Two classes may have one name, of two modules."""
        if kind in self._names:
            return self._names[kind]
        same = sum(each.__name__ == kind.__name__ for each in self._names)
        name = self._names[kind] = f"{kind.__name__}{same + 1 if same else ''}"
        schema = self.records[name] = {"title": kind.__name__, "type": "object"}
        # What dataclasses say of themselves is their signature.
        if kind.__doc__ and not kind.__doc__.startswith(f"{kind.__name__}("):
            schema["description"] = " ".join(kind.__doc__.split())
        hints, fields = hints_of(kind), arguments_of(kind)
        schema["properties"] = {field: self.of(hints[field]) for field, _, _ in fields}
        schema["required"] = [field for field, _, optional in fields if not optional]
        return name


def _chosen(values: Sequence[Any]) -> Schema:
    kinds = sorted({"string" if isinstance(value, str) else "integer" for value in values})
    return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": list(values)}
