"""Schemas of aggregates: what is sent and what is answered."""

from __future__ import annotations

from typing import Final

from epochal.contrib.event_store_adapter.http.operations import MAX_EVENTS
from epochal.http.fields import MAX_TYPE_BYTES
from epochal.http.openapi.shapes import CAPACITY, Schema, array, flag, moment, record, ref, text, whole
from epochal.http.preconditions import EXPECTATIONS
from epochal.model.versions import MAX_VERSION

TYPE: Final = text(
    "The aggregate's type, one of those that the deployment registers.",
    most=512,
    pattern=r"(?!\.{1,2}$)[A-Za-z0-9\-_.:~@+=]{1,512}",
    examples=["user-account"],
)
ID: Final = text(
    "The aggregate's id within its type; both together have at most 511 characters.",
    most=512,
    pattern=r"(?!\.{1,2}$)[A-Za-z0-9\-_.:~@+=]{1,512}",
    examples=["01H42K4ABWQ5V2XQEP3A48VE0Z"],
)
SEQ_NR: Final = whole("Number of the event, counted from 1.", 1, MAX_VERSION)

_STANDS: Final[dict[str, Schema]] = {
    "aggregate": text("Type and id, joined by `-`."),
    "version": whole("The aggregate's version, raised by one with every append.", 1, MAX_VERSION),
    "lastSeqNr": whole("Number of its last event.", 0, MAX_VERSION),
}
_NEXT: Final = {
    "description": "`from` of the page that goes on; null where there is none.",
    "anyOf": [SEQ_NR, {"type": "null"}],
}

SCHEMAS: Final[dict[str, Schema]] = {
    "NewAggregateEvent": record(
        {
            "type": text("What kind of event it is.", most=MAX_TYPE_BYTES),
            "data": {"description": "Any JSON. Numbers are kept exactly as they are written."},
            "occurredAt": moment("When it happened: ISO 8601; left out, now."),
        },
        required=("type", "data"),
    ),
    "AppendToAggregate": record(
        {
            "events": {
                **array(ref("NewAggregateEvent"), "Appended in this order, all or none.", MAX_EVENTS),
                "minItems": 1,
            },
            "snapshot": {
                "description": "The state that these events lead to: any JSON. The first append needs it; left out "
                "later, the snapshot stays as it was."
            },
            "expected": {
                "description": "What the aggregate must be, else the answer is 409. Left out: anything.",
                "anyOf": [whole("Its version; 0: none.", 0, MAX_VERSION), {"enum": list(EXPECTATIONS)}],
            },
        },
        required=("events",),
    ),
    "AppendedToAggregate": record(
        {
            **_STANDS,
            "first": whole("Number of the first event of this append.", 1, MAX_VERSION),
            "replayed": flag("An earlier request with the same Idempotency-Key had made this append."),
            "capacity": CAPACITY,
        }
    ),
    "AggregateEvent": record(
        {
            "seqNr": SEQ_NR,
            "type": {"type": "string", "description": "What kind of event it is."},
            "occurredAt": {
                "type": "string",
                "description": "When it happened; of an event that another library wrote, as that wrote it.",
            },
            "data": {"description": "As it was sent."},
        }
    ),
    "Aggregate": record(
        {
            **_STANDS,
            "snapshotSeqNr": whole("The last event that the snapshot has in it.", 0, MAX_VERSION),
            "snapshot": {"description": "The snapshot, as it was sent."},
            "events": array(ref("AggregateEvent"), "The events after the snapshot."),
            "next": _NEXT,
        }
    ),
    "AggregateEventPage": record(
        {**_STANDS, "events": array(ref("AggregateEvent"), "In order."), "next": _NEXT}
    ),
}
