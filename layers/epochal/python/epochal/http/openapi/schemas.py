"""The document's schemas: those of all resources, and the problem's."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from epochal.http import feed, health, stream_shapes, tagged_shapes
from epochal.http.openapi.shapes import Schema, array, flag, ref, text, whole
from epochal.http.projections import schemas as projections
from epochal.http.projections.schemas import PROCESSED
from epochal.http.shapes import Component
from epochal.http.stream_shapes import IN_THE_WAY, INDEX, VERSION
from epochal.http.tagged_shapes import POSITION
from epochal.plugins import parts

SCHEMAS: Final[dict[str, Schema]] = {
    "Problem": {
        "type": "object",
        "description": "RFC 9457. Compare `type`; the rest is for people and logs.",
        "properties": {
            "type": text("Which kind of problem."),
            "title": text("The same in words."),
            "status": whole("The HTTP status.", 400, 599),
            "detail": text("What happened this time."),
            "instance": text("Names this occurrence in the logs."),
            "field": text("The field, parameter or header that broke a rule."),
            "rule": text("The rule it broke."),
            "size": whole("How large it was."),
            "limit": whole("How large it may be."),
            "stream": text("The stream concerned."),
            "streams": array(IN_THE_WAY, "The streams in the way of an append to several."),
            "aggregate": text("The aggregate concerned."),
            "version": {
                "description": "Where the stream or aggregate stands; of a state, the projection's version.",
                "anyOf": [VERSION, text("A projection's version.")],
            },
            "index": INDEX,
            "partition": whole("The partition asked for."),
            "name": text("The projection concerned."),
            "eventsProcessed": {
                **PROCESSED,
                "description": "How many events the stored state has processed.",
            },
            "events": array(ref("TaggedEvent"), "What stood in the way of a conditional append."),
            "position": {**POSITION, "description": "Has seen these events: to append after."},
            "more": flag("Whether there are more of them, which the position has not seen."),
        },
        "required": ["type", "title", "status", "instance"],
        "additionalProperties": False,
    }
}


def components() -> dict[str, Any]:
    """The schemas, by name."""
    found = dict(SCHEMAS)
    for module in (feed, health, stream_shapes, tagged_shapes):
        declared = [each for each in vars(module).values() if isinstance(each, Component)]
        found |= {each.name: each.schema for each in declared if each.name}
    plugged = (import_module(f"{each.__name__}.schemas") for each in parts("operations"))
    for each in (projections, *plugged):
        found |= each.SCHEMAS
    return dict(sorted(found.items()))
