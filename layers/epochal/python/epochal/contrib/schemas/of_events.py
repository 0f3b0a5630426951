"""JSON Schemas of a codec's events, by type.

    {"Boarded": {"$id": "urn:epochal:event:Boarded", "type": "object", "properties": {"$v": {"const": 3}, …}}}

A schema describes the version that is currently written. The member `$v` has its number, and may be missing if there
has been only one version. Older versions, whose classes no longer exist, are listed in `x-upcast-from`: readers upcast
them to the current one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from epochal.contrib.schemas.class_schemas import Schema, schema_of
from epochal.deciders.codecs import EventCodec, StoredClass
from epochal.errors import InvalidInput
from epochal.model.body_marks import VERSION

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

OLDER: Final = "x-upcast-from"
"""The member that lists the versions from which upcasts start."""

_URN: Final = "urn:epochal:event:"


def event_schemas(codec: EventCodec[Any], *, marked: bool = True) -> dict[str, Schema]:
    """Return the JSON schema of each event type of a `json_codec` codec; raise for other codecs.

    Each schema is a document that stands alone.

    Args:
        codec: codec of the events.
        marked: whether the bodies are described as they are stored, with their version; else as `Publish` sends them,
            without it.

    Raises:
        InvalidInput: the codec was not made by `json_codec`, so its classes are unknown.
    """
    if not codec.classes:
        raise InvalidInput("codec", "must be made by json_codec: other codecs do not declare their classes")
    return {name: _event(class_, marked=marked) for name, class_ in codec.classes.items()}


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
