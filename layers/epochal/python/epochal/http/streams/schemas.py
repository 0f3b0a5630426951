"""Schemas of streams: what is sent and what is answered."""

from __future__ import annotations

from typing import Final

from epochal.codec.claims import PREFIX
from epochal.http.bodies import CODINGS, MAX_CLAIM_BYTES
from epochal.http.fields import MAX_ID_BYTES, MAX_TYPE_BYTES
from epochal.http.openapi.shapes import (
    CAPACITY,
    Schema,
    array,
    base64,
    flag,
    moment,
    only_one,
    record,
    ref,
    text,
    whole,
)
from epochal.http.preconditions import EXPECTATIONS
from epochal.http.streams.representation import MAX_EVENTS, MAX_UNFOLDS
from epochal.http.streams.several import MAX_APPENDS
from epochal.model.versions import MAX_VERSION

STREAM: Final = text(
    "A stream's name, `Category-id`.",
    most=512,
    pattern=r"(?!\.{1,2}$)[A-Za-z0-9\-_.:~@+=]{1,512}",
    examples=["Aircraft-N14228"],
)

_SHA256: Final = text("SHA-256 of the content, in hex.", pattern="[0-9a-f]{64}")

_BYTES: Final = whole("Size of the content in bytes.", 1, MAX_CLAIM_BYTES)

_STAMP: Final = moment("When it happened: ISO 8601, kept to 100 ns; UTC where it names no offset.")

INDEX: Final = whole("Index within the stream, counted from 0.", 0, MAX_VERSION)

VERSION: Final = whole("The stream's version: the index that its next event gets.", 0, MAX_VERSION)

_LOW_WATER: Final = whole("Events below this index have been pruned.", 0, MAX_VERSION)

OMITTED: Final = {
    "const": True,
    "description": "The answer had no room for the bodies: read the event alone.",
}

_CLAIM: Final = record(
    {
        "key": text("Where the content lies.", pattern=f"{PREFIX}[0-9a-f]{{64}}"),
        "sha256": _SHA256,
        "bytes": _BYTES,
    },
    description="Content that has been uploaded (see `POST /bodies`).",
)

_LINK: Final = record(
    {
        "url": text("Where to get the content, without further credentials.", format="uri"),
        "expiresIn": whole("Seconds for which the URL works."),
        "sha256": _SHA256,
        "bytes": _BYTES,
        "encoding": {"enum": list(CODINGS.values()), "description": "How the content encodes the body."},
    },
    description="A body too large for an answer.",
)


def _base64(what: str) -> Schema:
    return base64(f"{what}, where it is not JSON.")


def _sent(more: dict[str, Schema]) -> Schema:
    """An event or unfold to be written."""
    return record(
        {
            "type": text("What kind of event or state it is.", most=MAX_TYPE_BYTES),
            "data": {"description": "The body: any JSON. Numbers are kept exactly as they are written."},
            "data64": _base64("The body"),
            "claim": ref("Claim"),
            "meta": {"description": "Metadata: any JSON."},
            "meta64": _base64("Metadata"),
            "timestamp": _STAMP,
            **more,
        },
        required=("type",),
        allOf=[only_one("data", "data64", "claim"), only_one("meta", "meta64")],
    )


def shown_bodies() -> dict[str, Schema]:
    """How bodies are shown; none of these where they are empty."""
    return {
        "data": {"description": "The body, as it is stored, where it is JSON."},
        "data64": _base64("The body"),
        "dataUrl": ref("Link"),
        "meta": {"description": "Metadata, where it is JSON."},
        "meta64": _base64("Metadata"),
        "metaUrl": ref("Link"),
        "omitted": OMITTED,
    }


_IDS: Final = {
    "correlationId": text("The conversation that it belongs to.", most=MAX_ID_BYTES),
    "causationId": text("What caused it.", most=MAX_ID_BYTES),
}

# Other libraries write to the same tables, and bind themselves to less.
IDS_SHOWN: Final = {name: {"type": "string"} for name in _IDS}

_TOKEN: Final = text(
    "The stream's exact state: its ETag, without the quotes.",
    pattern=r"(0|[1-9]\d{0,9})\.[0-9a-f]{32}(\.\d{1,7}){5}(\.\d{1,10}(\.[0-9a-f]{32})?)?",
)


def _append(more: dict[str, Schema], *expectations: Schema) -> Schema:
    """An append to a stream, which `more` names where the path does not."""
    return record(
        {
            **more,
            "events": array(ref("NewEvent"), "Appended in this order, all or none.", MAX_EVENTS),
            "unfolds": array(
                ref("NewUnfold"),
                "State to store beside the events, in place of all that is stored; left out, what is stored stays.",
                MAX_UNFOLDS,
            ),
            "expected": {
                "description": "What the stream must be, else the answer is 409. Left out: anything.",
                "anyOf": [
                    whole("Its version.", 0, MAX_VERSION),
                    {"enum": list(EXPECTATIONS)},
                    *expectations,
                ],
            },
        },
        required=tuple(more),
        description="At least one event or unfold.",
        anyOf=[{"required": [name], "properties": {name: {"minItems": 1}}} for name in ("events", "unfolds")],
    )


_FIRST: Final = whole("Index of the first event of this append.", 0, MAX_VERSION)

_REPLAYED: Final = flag("An earlier request with the same Idempotency-Key had made this append.")

IN_THE_WAY: Final = record(
    {
        "stream": STREAM,
        "version": VERSION,
        "token": _TOKEN,
        "deleted": flag("Whether it takes no more events."),
        "index": {
            **INDEX,
            "description": "Of the first event, where nobody can tell whether it was appended.",
        },
    },
    required=("stream",),
)

SHOWN_EVENT: Final = {
    "stream": {"type": "string", "description": "The stream's name."},
    "index": INDEX,
    "type": {"type": "string", "description": "What kind of event it is."},
}

SCHEMAS: Final[dict[str, Schema]] = {
    "NewEvent": _sent(_IDS),
    "NewUnfold": _sent({}),
    "Append": _append({}),
    "StreamAppend": _append({"stream": STREAM}, _TOKEN),
    "AppendAll": record(
        {"appends": {**array(ref("StreamAppend"), "Each of another stream.", MAX_APPENDS), "minItems": 1}}
    ),
    "AllAppended": record(
        {
            "streams": array(
                record({"stream": STREAM, "first": _FIRST, "version": VERSION, "token": _TOKEN}),
                "What each stream got, in the order of the request.",
            ),
            "replayed": _REPLAYED,
            "capacity": CAPACITY,
        }
    ),
    "Appended": record(
        {
            "stream": STREAM,
            "first": _FIRST,
            "version": VERSION,
            "replayed": _REPLAYED,
            "capacity": CAPACITY,
        }
    ),
    "Event": record(
        {**SHOWN_EVENT, "timestamp": {"type": "string"}, **IDS_SHOWN, **shown_bodies()},
        required=("stream", "index", "type", "timestamp"),
    ),
    "Unfold": record(
        {
            "version": whole("The stream's version that it was made from.", 0, MAX_VERSION),
            "type": {"type": "string", "description": "What kind of state it is."},
            "timestamp": {"type": "string"},
            **shown_bodies(),
        },
        required=("version", "type", "timestamp"),
    ),
    "State": record(
        {
            "stream": STREAM,
            "version": VERSION,
            "lowWater": _LOW_WATER,
            "headEvents": whole("How many of the last events its head carries."),
            "unfolds": array(ref("Unfold"), "State derived from the events."),
            "events": array(ref("Event"), "Those that the head carries, where `events=true` asked for them."),
        },
        required=("stream", "version", "lowWater", "headEvents", "unfolds"),
    ),
    "EventPage": record(
        {
            "stream": STREAM,
            "version": VERSION,
            "lowWater": _LOW_WATER,
            "events": array(ref("Event"), "In the order asked for."),
            "next": {
                "description": "`from` of the next page; null where there is none.",
                "anyOf": [INDEX, {"type": "null"}],
            },
            "hole": record(
                {
                    "first": whole("The first index that was asked for.", 0, MAX_VERSION),
                    "end": whole("The index after the last of them.", 0, MAX_VERSION),
                },
                description="Events that were asked for before these and have been pruned; absent where none have.",
            ),
        },
        required=("stream", "version", "lowWater", "events", "next"),
    ),
    "Prune": record({"before": whole("The first index to keep.", 0, MAX_VERSION)}),
    "Pruned": record(
        {
            "stream": STREAM,
            "lowWater": _LOW_WATER,
            "deletedItems": whole("Items deleted by this request."),
            "done": flag(
                "False: readers see none of it any more, but items are left. Send the request again."
            ),
        }
    ),
    "Body": record({"sha256": _SHA256, "bytes": _BYTES}),
    "Claim": _CLAIM,
    "Link": _LINK,
    "Upload": record(
        {
            "url": text("Where to put the content, without further credentials.", format="uri"),
            "method": {"const": "PUT"},
            "headers": {
                "type": "object",
                "description": "To be sent with it, as they are.",
                "additionalProperties": {"type": "string"},
            },
            "expiresIn": whole("Seconds for which the URL works."),
            "claim": ref("Claim"),
        }
    ),
    "Health": record({"status": {"const": "ok"}}),
}
