"""An AsyncAPI 3.0 document of a store: a channel for each category, a message for each type of event.

The document is its owner's, who sends events; others follow the feed, or get CloudEvents from `Publish`. Payloads are
schemas of draft 7, which every tool for AsyncAPI reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from epochal.deciders.codecs import EventCodec, StoredClass
from epochal.errors import InvalidInput
from epochal.model.events import VERSION
from epochal.schemas.classes import Schema, define, schema_of

_SCHEMAS = "#/components/schemas/"
_TEXT = {"type": "string", "minLength": 1}


def asyncapi(
    codecs: Mapping[str, EventCodec[Any]], *, title: str, version: str = "1.0.0", cloud_events: bool = False
) -> Schema:
    """The document of categories with these codecs; that of `""` is of every category.

    Args:
        codecs: made by `json_codec`.
        title: of the document.
        version: of the document.
        cloud_events: as `Publish` sends events, not as the feed has them.

    Raises:
        InvalidInput: a codec does not say what it is made of.
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
        document["operations"][f"send.{name}"] = {
            "action": "send",
            "channel": {"$ref": f"#/channels/{name}"},
        }
    return document


def _channel(category: str) -> Schema:
    if not category:
        return {"address": None, "title": "Events of every category"}
    parameter = {"id": {"description": f"Which {category} it is."}}
    return {"address": f"{category}-{{id}}", "title": f"Streams of {category}", "parameters": parameter}


def _message(name: str, schema: Schema, payload: Schema, cloud_events: bool) -> Schema:
    said = {"summary": schema["description"]} if "description" in schema else {}
    if not cloud_events:
        return {"name": name, **said, "contentType": "application/json", "payload": payload}
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
    return {"name": name, **said, "contentType": "application/cloudevents+json", "payload": envelope}


def _key(name: str) -> str:
    """A name of AsyncAPI's components: other characters are told apart by their codes."""
    return re.sub(r"[^A-Za-z0-9._-]", lambda found: f"_{ord(found[0]):x}_", name)


# JSON Schemas of a codec's events, by type. {"Boarded": {"$id": "urn:epochal:event:Boarded", "type": "object",
# "properties": {"$v": {"const": 3}, …}}} A schema is of the version that is written today. The member `$v` says
# which that is, and may be missing where there has been but one. Older versions, whose classes nobody has any more,
# are listed in `x-upcast-from`: readers bring them to that of today.

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
