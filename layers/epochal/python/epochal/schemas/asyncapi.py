"""An AsyncAPI 3.0 document of a store: a channel for each category, a message for each type of event.

The document is its owner's, who sends events; others follow the feed, or get CloudEvents from `Publish`. Payloads are
schemas of draft 7, which every tool for AsyncAPI reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from epochal.deciders.codecs import EventCodec
from epochal.schemas.classes import Schema
from epochal.schemas.draft7 import define
from epochal.schemas.events import event_schemas

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
