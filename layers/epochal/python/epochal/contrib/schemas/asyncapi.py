"""The AsyncAPI 3.0 document of a store: a channel for each category, and a message for each type of event.

It is its owner's, who sends events; others follow the feed, or get CloudEvents from `Publish`. It has schemas of draft
7 (`drafts`), which AsyncAPI takes and compilers know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from epochal.contrib.schemas import of_events
from epochal.contrib.schemas.class_schemas import Schema
from epochal.contrib.schemas.drafts import define
from epochal.deciders.codecs import EventCodec

_SCHEMAS = "#/components/schemas/"
_TEXT = {"type": "string", "minLength": 1}


def asyncapi(
    codecs: Mapping[str, EventCodec[Any]], *, title: str, version: str = "1.0.0", cloud_events: bool = False
) -> Schema:
    """Build the AsyncAPI document of categories of streams from the codecs of their events.

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
        for type_, schema in of_events.event_schemas(codec, marked=not cloud_events).items():
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
    parameter = {"id": {"description": f"Id of the {category}."}}
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
            "id": {
                **_TEXT,
                "description": "The event's stream and index. An event that is delivered twice has the same id.",
            },
            "source": {**_TEXT, "format": "uri-reference"},
            "type": {"const": name},
            "subject": {**_TEXT, "description": "The event's stream."},
            "time": {"type": "string", "format": "date-time"},
            "datacontenttype": {"const": "application/json"},
            "dataref": {**_TEXT, "description": "Location of the data, instead of data that is too large."},
            "data": payload,
        },
        "required": ["specversion", "id", "source", "type"],
    }
    return {"name": name, **summary, "contentType": "application/cloudevents+json", "payload": envelope}


def _key(name: str) -> str:
    """Convert a name to a key of AsyncAPI components, with other characters replaced by their codes."""
    return re.sub(r"[^A-Za-z0-9._-]", lambda match_: f"_{ord(match_[0]):x}_", name)
