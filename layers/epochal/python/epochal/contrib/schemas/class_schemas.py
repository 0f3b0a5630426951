"""JSON Schemas (2020-12) of the classes that events are made of.

    dataclass, attrs      their fields' hints, as `deciders.type_hints` writes and reads them
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
from enum import Enum, Flag
from types import NoneType, UnionType
from typing import Any, Final, Literal, NewType, Union, get_args, get_origin
from uuid import UUID

from epochal.deciders.pydantic_fields import fields_in, written_as
from epochal.deciders.shapes import ARRAYS
from epochal.deciders.type_hints import arguments_of, hints_of, is_record

Schema = dict[str, Any]

DEFINITIONS: Final = "#/$defs/"
"""Prefix of a schema's references to its own definitions."""

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
    """Return the JSON Schema of a class that a codec accepts.

    The members of the class are at the root, and schemas of other classes are in `$defs`.
    """
    if hasattr(kind, "__pydantic_validator__"):
        import pydantic.json_schema  # noqa: PLC0415  the author of the class has loaded it

        core = _as_written(pydantic.TypeAdapter(kind).core_schema)
        return _at_root(pydantic.json_schema.GenerateJsonSchema().generate(core))
    if hasattr(kind, "__struct_config__"):
        return _at_root(_of_struct(kind))
    hints = _Hints()
    return _at_root({**hints.of(kind), "$defs": hints.records})


def _of_struct(kind: type) -> Schema:
    """Return the JSON Schema of a msgspec class, in which flags admit every combination of members.

    msgspec's own schema lists single members only, while its decoder accepts combinations.
    """
    import msgspec  # noqa: PLC0415  as above

    flag_classes = _flags_in(msgspec.inspect.type_info(kind))
    flags = sorted(flag_classes, key=lambda flag: (flag.__module__, flag.__qualname__))
    (schema, *of_flags), definitions = msgspec.json.schema_components(
        [kind, *flags], ref_template=f"{DEFINITIONS}{{name}}"
    )
    numbers = {name: {"title": name, "type": "integer"} for of_flag in of_flags for name in referred(of_flag)}
    return {**schema, "$defs": {**definitions, **numbers}}


def _flags_in(info: Any) -> set[type[Flag]]:
    """Collect the `Flag` classes in msgspec's description of a type, at any depth."""
    import msgspec  # noqa: PLC0415  as above

    flags, visited, infos = set[type[Flag]](), set[int](), [info]
    while infos:
        part = infos.pop()
        if isinstance(part, tuple):
            infos += part
        elif isinstance(part, msgspec.inspect.EnumType) and issubclass(part.cls, Flag):
            flags.add(part.cls)
        elif isinstance(part, msgspec.inspect.Type | msgspec.inspect.Field) and id(part) not in visited:
            visited.add(id(part))
            infos += [getattr(part, name) for name in part.__struct_fields__]
    return flags


def _as_written(schema: Any) -> Any:
    """Copy a Pydantic core schema so that each field is read only by the name it is written under.

    Flags become integers.
    """
    if isinstance(schema, list | tuple):
        return type(schema)(map(_as_written, schema))
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "enum" and issubclass(schema["cls"], Flag):
        return {"type": "int", **({"ref": schema["ref"]} if "ref" in schema else {})}
    written = {
        key: part if key in ("config", "metadata") else _as_written(part) for key, part in schema.items()
    }
    for name, field in fields_in(written):
        field["validation_alias"] = written_as(name, field)
    return written


def _at_root(schema: Schema) -> Schema:
    """Return a schema with the definition that its root refers to put in, without unused definitions."""
    root = {name: part for name, part in schema.items() if name != "$defs"}
    definitions: dict[str, Schema] = schema.get("$defs", {})
    while (reference := root.pop("$ref", None)) is not None:
        root = {**definitions[reference.removeprefix(DEFINITIONS)], **root}
    used, pending = dict[str, Schema](), [*referred(root)]
    while pending:
        name = pending.pop()
        if name not in used:
            used[name] = definitions[name]
            pending += referred(used[name])
    return {**root, "$defs": {name: used[name] for name in definitions if name in used}} if used else root


def referred(schema: Any) -> Iterator[str]:
    """Yield the names of the definitions that a schema, or a part of one, refers to."""
    match schema:
        case {"$ref": str(reference), **rest}:
            yield reference.removeprefix(DEFINITIONS)
            yield from referred(list(rest.values()))
        case dict():
            yield from referred(list(schema.values()))
        case list():
            for part in schema:
                yield from referred(part)
        case _:
            pass


class _Hints:
    """A builder of schemas from type hints that `deciders.type_hints` supports.

    Attributes:
        records: schemas of classes, by the names under which other schemas refer to them.
    """

    def __init__(self) -> None:
        self.records: dict[str, Schema] = {}
        self._names: dict[type, str] = {}

    def of(self, hint: Any) -> Schema:
        """Build the schema of a type hint, and collect the schemas of classes in it in `records`."""
        if isinstance(hint, NewType):
            return self.of(hint.__supertype__)
        if hint in _SCALARS:
            return dict(_SCALARS[hint])
        if isinstance(hint, type) and issubclass(hint, Flag):
            return {"type": "integer"}
        if isinstance(hint, type) and issubclass(hint, Enum):
            return _chosen([member.value for member in hint])
        if is_record(hint):
            return {"$ref": DEFINITIONS + self._record(hint)}
        return self._composed(get_origin(hint), get_args(hint))

    def _composed(self, origin: Any, parts: tuple[Any, ...]) -> Schema:
        """Build the schema of a literal, an optional type, a tuple, an array or a mapping."""
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
        """Build the schema of a class if it is new, and return the name under which `records` has it.

        Classes of different modules may have one name; a number is added to it then.
        """
        if kind in self._names:
            return self._names[kind]
        same = sum(class_.__name__ == kind.__name__ for class_ in self._names)
        name = self._names[kind] = f"{kind.__name__}{same + 1 if same else ''}"
        schema = self.records[name] = {"title": kind.__name__, "type": "object"}
        # The docstring that dataclasses generate is only their signature.
        if kind.__doc__ and not kind.__doc__.startswith(f"{kind.__name__}("):
            schema["description"] = " ".join(kind.__doc__.split())
        hints, fields = hints_of(kind), arguments_of(kind)
        schema["properties"] = {field: self.of(hints[field]) for field, _, _ in fields}
        schema["required"] = [field for field, _, optional in fields if not optional]
        return name


def _chosen(values: Sequence[Any]) -> Schema:
    """Build the schema of a fixed choice of strings or integers."""
    kinds = sorted({"string" if isinstance(value, str) else "integer" for value in values})
    return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": list(values)}
