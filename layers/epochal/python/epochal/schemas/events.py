"""JSON Schemas of a codec's events, by type.

    {"Boarded": {"$id": "urn:epochal:event:Boarded", "type": "object", "properties": {"$v": {"const": 3}, …}}}

A schema is of the version that is written today. The member `$v` says which that is, and may be missing where there has
been but one. Older versions, whose classes nobody has any more, are listed in `x-upcast-from`: readers bring them to
that of today.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from epochal.deciders.codecs import EventCodec, StoredClass
from epochal.errors import InvalidInput
from epochal.model.events import VERSION
from epochal.schemas.classes import Schema, schema_of

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

OLDER: Final = "x-upcast-from"
"""The member that lists the versions from which upcasts start."""

_URN: Final = "urn:epochal:event:"


def event_schemas(codec: EventCodec[Any], *, marked: bool = True) -> dict[str, Schema]:
    """The schema of each type of a codec that `json_codec` has made, a document that stands alone.

    Args:
        codec: of the events.
        marked: bodies as they are stored, with their version; else as `Publish` sends them, without.

    Raises:
        InvalidInput: the codec is another, which does not say what it is made of.
    """
    if not codec.classes:
        raise InvalidInput("codec", "must be made by json_codec: others do not say which classes they are of")
    return {name: _event(each, marked=marked) for name, each in codec.classes.items()}


def _event(stored: StoredClass, *, marked: bool) -> Schema:
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
    """Schemas of events as one document, by their types in `$defs`."""
    return {"$schema": DIALECT, "$defs": dict(schemas)}
