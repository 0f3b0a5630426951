"""JSON Schemas (2020-12) of the classes that events are made of, of a codec's events, and an AsyncAPI 3.0 document.

    dataclass, attrs      their fields' hints, as `deciders.type_hints` writes and reads them
    pydantic              `TypeAdapter.json_schema`, of what the model reads, by the names that it writes
    msgspec.Struct        `msgspec.json.schema`

What a codec writes fits its schema. What fits is read, as far as types say: a class may have rules that no type has.
Readers are more tolerant, as of forms of times. Members that a class ignores fit, and one with a
default may be missing.

The AsyncAPI document of a store has a channel for each category, and a message for each type of event. It is its
owner's, who sends events; others follow the feed, or get CloudEvents from `Publish`. It takes, and compilers know,
schemas of draft 7 (`draft7`): what 2020-12 says otherwise, as it was said before.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import Enum, Flag
from types import NoneType, UnionType
from typing import Any, Final, Literal, NewType, Union, get_args, get_origin
from urllib.parse import quote
from uuid import UUID

from epochal.deciders.codecs import EventCodec, StoredClass
from epochal.deciders.pydantic_fields import fields_in, written_as
from epochal.deciders.shapes import ARRAYS
from epochal.deciders.type_hints import arguments_of, hints_of, is_record
from epochal.errors import InvalidInput, brought_by
from epochal.model.body_marks import VERSION

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
    """Inline the definition that a schema's root refers to, and drop definitions that are not used."""
    root = {name: each for name, each in schema.items() if name != "$defs"}
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
            for each in schema:
                yield from referred(each)
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
        same = sum(each.__name__ == kind.__name__ for each in self._names)
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


_HOLDERS: Final = (
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
)
"""Keywords whose members are schemas, under names that are not keywords."""

_VALUES: Final = ("const", "enum", "default", "examples", "required", "dependentRequired")
"""Keywords that hold no schemas."""

_SINCE: Final = frozenset(
    (
        "$dynamicRef",
        "$recursiveRef",
        "minContains",
        "maxContains",
        "unevaluatedItems",
        "unevaluatedProperties",
    )
)
"""Keywords for which draft 7 has no equivalent."""


def each_schema(schema: Any, change: Callable[[Schema], Schema]) -> Any:
    """Rebuild a schema by calling `change` on it and every schema in it, the inner ones first."""
    if isinstance(schema, list):
        return [each_schema(each, change) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return change(
        {
            name: value
            if name in _VALUES
            else {each: each_schema(inner, change) for each, inner in value.items()}
            if name in _HOLDERS
            else each_schema(value, change)
            for name, value in schema.items()
        }
    )


def draft7(schema: Any, refer: Callable[[str], str] = str) -> Any:
    """Convert a schema from draft 2020-12 to draft 7, with `refer` mapping its references.

    Raises:
        ValueError: the schema has a keyword that draft 7 cannot express.
    """

    def older(found: Schema) -> Schema:
        """Convert one schema, whose inner schemas have been converted, to draft 7."""
        if since := sorted(_SINCE & found.keys()):
            raise ValueError(f"{since[0]} has no form in draft 7")
        if "prefixItems" in found:
            if "items" in found:
                found["additionalItems"] = found["items"]
            found["items"] = found.pop("prefixItems")
        needed = {**found.pop("dependentRequired", {}), **found.pop("dependentSchemas", {})}
        if needed:
            found["dependencies"] = needed
        if "$ref" in found:
            # Draft 7 ignores all keywords beside a reference.
            reference = {"$ref": refer(found.pop("$ref"))}
            return {**found, "allOf": [reference, *found.get("allOf", [])]} if found else reference
        return found

    return each_schema(schema, older)


def define(schemas: Schema, place: str, key: str, schema: Schema) -> None:
    """Add a schema and its definitions to a document's schemas, as draft 7.

    Args:
        schemas: schemas of the document, which this function adds to.
        place: prefix of references to these schemas.
        key: key of the new schema; its definitions get `key` and a number.
        schema: the schema to add, of draft 2020-12.

    Raises:
        ValueError: draft 7 cannot express the schema, or it refers to a definition that it does not contain.
    """
    inner = {f"#/$defs/{name}": f"{key}.{position}" for position, name in enumerate(schema.get("$defs", {}))}

    def refer(reference: str) -> str:
        """Map a reference of the schema to the place of its target in the document."""
        if reference not in inner and reference != "#":
            raise ValueError(f"refers to {reference}, which is not in its $defs")
        return place + inner.get(reference, key)

    own = {name: each for name, each in schema.items() if name not in ("$schema", "$id", "$defs")}
    schemas[key] = draft7(own, refer)
    for name, each in schema.get("$defs", {}).items():
        schemas[inner[f"#/$defs/{name}"]] = draft7(each, refer)


# Schemas of events as a Python module that checks bodies, generated when a stage is synthesised: a function with it
# needs no library for schemas, and starts as fast as without. `fastjsonschema` generates it. The formats date-time,
# date and uuid are checked, as readers accept them: a time may have no offset. Other formats are hints, as JSON Schema
# specifies.

_DAY: Final = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_CLOCK: Final = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.,][0-9]+)?)?"
_ZONE: Final = r"([Zz]|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9](:?[0-5][0-9](\.[0-9]+)?)?)?)"
_FORMATS: Final = {
    "date-time": f"^{_DAY}[Tt ]{_CLOCK}{_ZONE}?$",
    "date": f"^{_DAY}$",
    "uuid": "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$",
}
_HINTS: Final = ("default", "contentEncoding", "contentMediaType", "title", "description", "examples")

_RAISED: Final = re.compile(r"^from fastjsonschema import .*$", re.MULTILINE)
_RAISED_HERE: Final = (
    "from epochal.http.checked import Unfit as JsonSchemaValueException, Unfit as JsonSchemaValuesException"
)


def schemas_in(document: Any) -> Mapping[str, Schema]:
    """Return the schemas by event type in a document that `epochal schema` has printed.

    Raises:
        ValueError: the document has no schemas of types.
    """
    match document:
        case {"$defs": dict(found)} if found:
            return found
    raise ValueError("must be a document of `epochal schema`, with the schemas of types in its $defs")


def compiled_from(document: Any) -> str:
    """Generate the module that checks events, from a document that `epochal schema` has printed.

    Raises:
        ValueError: the document has no schemas of types, or a schema has a keyword that cannot be checked.
    """
    return compiled(schemas_in(document))


def compiled(schemas: Mapping[str, Schema]) -> str:
    """Generate the source of a module that checks events by the schemas of their types.

    In the module, `KEYS` has a key for each type, and `validate({key: body})` raises `Unfit`.

    Raises:
        ValueError: a schema has what cannot be checked.
    """
    with brought_by("cdk", "compiled schemas", "fastjsonschema"):
        from fastjsonschema import compile_to_code  # noqa: PLC0415  of synthesis alone

    definitions, keys = Schema(), {name: f"t{position}" for position, name in enumerate(schemas)}
    for name, schema in schemas.items():
        try:
            define(definitions, "#/definitions/", keys[name], schema)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    properties = {key: {"$ref": f"#/definitions/{key}"} for key in keys.values()}
    try:
        checks = {name: each_schema(each, _asserted) for name, each in definitions.items()}
        source = compile_to_code(
            {"properties": properties, "definitions": checks}, use_default=False, use_formats=False
        )
    except re.error as error:
        raise ValueError(str(error)) from error
    lean = ast.unparse(_Lean().visit(ast.parse(_RAISED.sub(_RAISED_HERE, source))))
    return f"{lean}\n\nKEYS = {keys!r}\n"


class _Lean(ast.NodeTransformer):
    """A transformer of the module's syntax tree that shortens its errors to message and place.

    The schemas that errors would else contain are most of the module.
    """

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """Remove every argument but the message and `name` from the call that makes an error."""
        if isinstance(node.func, ast.Name) and node.func.id == "JsonSchemaValueException":
            node.keywords = [keyword for keyword in node.keywords if keyword.arg == "name"]
        return node


def _asserted(schema: Schema) -> Schema:
    """Return the part of a schema that is checked: `format` as a pattern, and no annotations.

    Some annotations would change the body.

    Raises:
        ValueError: `multipleOf` is used for anything but integers.
    """
    if "multipleOf" in schema and not (schema.get("type") == "integer" and type(schema["multipleOf"]) is int):
        # A decimal of a few bytes may have a million digits.
        raise ValueError("multipleOf can be checked of integers alone")
    rules = {name: each for name, each in schema.items() if name not in (*_HINTS, "format")}
    pattern = _FORMATS.get(str(schema.get("format")))
    if pattern is None:
        return rules
    return {"allOf": [rules, {"pattern": pattern}]} if "pattern" in rules else {**rules, "pattern": pattern}


# JSON Schemas of a codec's events, by type. {"Boarded": {"$id": "urn:epochal:event:Boarded", "type": "object",
# "properties": {"$v": {"const": 3}, …}}} A schema describes the version that is currently written. The member `$v` has
# its number, and may be missing if there has been only one version. Older versions, whose classes no longer exist, are
# listed in `x-upcast-from`: readers upcast them to the current one.

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

OLDER: Final = "x-upcast-from"
"""The member that lists the versions from which upcasts start."""

_URN: Final = "urn:epochal:event:"


def event_schemas(codec: EventCodec[Any], *, marked: bool = True) -> dict[str, Schema]:
    """Return the schema of each event type of a codec made by `json_codec`.

    Each schema is a document that stands alone.

    Args:
        codec: codec of the events.
        marked: whether the bodies are described as they are stored, with their version; else as `Publish` sends them,
            without it.

    Raises:
        InvalidInput: the codec was not made by `json_codec`, so its classes are unknown.
    """
    if not codec.classes:
        raise InvalidInput("codec", "must be made by json_codec: others do not say which classes they are of")
    return {name: _event(each, marked=marked) for name, each in codec.classes.items()}


def _event(stored: StoredClass, *, marked: bool) -> Schema:
    """Build the schema of one event type from its class, with dialect, id, title and versions."""
    schema, versions = schema_of(stored.kind), stored.versions
    head: Schema = {"$schema": DIALECT, "$id": _URN + quote(stored.name, safe=""), "title": stored.name}
    if versions.steps:
        head[OLDER] = sorted(versions.steps)
    if schema.get("type") != "object" or not marked:
        return {**schema, **head}
    needed = [VERSION] if versions.steps else []
    return {
        **schema,
        **head,
        "properties": {VERSION: {"const": versions.current}, **schema.get("properties", {})},
        "required": [*needed, *schema.get("required", [])],
    }


def bundle(schemas: Mapping[str, Schema]) -> Schema:
    """Combine schemas of events into one document that has them in `$defs`, by type."""
    return {"$schema": DIALECT, "$defs": dict(schemas)}


# The document of a store.

_SCHEMAS = "#/components/schemas/"
_TEXT = {"type": "string", "minLength": 1}


def asyncapi(
    codecs: Mapping[str, EventCodec[Any]], *, title: str, version: str = "1.0.0", cloud_events: bool = False
) -> Schema:
    """Build the AsyncAPI document of the categories that have these codecs.

    Args:
        codecs: codec of each category, made by `json_codec`; the category `""` stands for every category.
        title: title of the document.
        version: version of the document.
        cloud_events: whether events are described as `Publish` sends them; else as the feed has them.

    Raises:
        InvalidInput: a codec was not made by `json_codec`, so its classes are unknown.
    """
    document: Schema = {
        "asyncapi": "3.0.0",
        "info": {"title": title, "version": version},
        "channels": {},
        "operations": {},
        "components": {"messages": {}, "schemas": {}},
    }
    for category, codec in codecs.items():
        name = _key(category) or "feed"
        messages = {}
        for type_, schema in event_schemas(codec, marked=not cloud_events).items():
            key = _key(f"{category}.{type_}" if category else type_)
            define(document["components"]["schemas"], _SCHEMAS, key, schema)
            payload = {"$ref": _SCHEMAS + key}
            document["components"]["messages"][key] = _message(type_, schema, payload, cloud_events)
            messages[_key(type_)] = {"$ref": f"#/components/messages/{key}"}
        document["channels"][name] = {**_channel(category), "messages": messages}
        document["operations"][f"send.{name}"] = {"action": "send", "channel": {"$ref": f"#/channels/{name}"}}
    return document


def _channel(category: str) -> Schema:
    """Build the channel of a category, whose address is that of its streams."""
    if not category:
        return {"address": None, "title": "Events of every category"}
    parameter = {"id": {"description": f"Which {category} it is."}}
    return {"address": f"{category}-{{id}}", "title": f"Streams of {category}", "parameters": parameter}


def _message(name: str, schema: Schema, payload: Schema, cloud_events: bool) -> Schema:
    """Build the message of an event type, with the CloudEvents envelope if `cloud_events` is true."""
    summary = {"summary": schema["description"]} if "description" in schema else {}
    if not cloud_events:
        return {"name": name, **summary, "contentType": "application/json", "payload": payload}
    envelope = {
        "type": "object",
        "properties": {
            "specversion": {"const": "1.0"},
            "id": {**_TEXT, "description": "The event's stream and index: what comes twice has one id."},
            "source": {**_TEXT, "format": "uri-reference"},
            "type": {"const": name},
            "subject": {**_TEXT, "description": "The event's stream."},
            "time": {"type": "string", "format": "date-time"},
            "datacontenttype": {"const": "application/json"},
            "dataref": {**_TEXT, "description": "Where the data is, in place of data that is too large."},
            "data": payload,
        },
        "required": ["specversion", "id", "source", "type"],
    }
    return {"name": name, **summary, "contentType": "application/cloudevents+json", "payload": envelope}


def _key(name: str) -> str:
    """Convert a name to a key of AsyncAPI components, with other characters replaced by their codes."""
    return re.sub(r"[^A-Za-z0-9._-]", lambda found: f"_{ord(found[0]):x}_", name)
