"""The operations on aggregates, and these as JSON: what is sent, read to values; what is answered, shown; and both as
the OpenAPI document has them.

    {"type": "Renamed", "data": {"to": "Ann"}, "occurredAt": "2013-01-01T10:00:00Z"}

`data` and a snapshot are any JSON, null included, their numbers exact. Bodies have no other form: the libraries that
share the tables could not read it. Every event has room in an answer of its own: it is an item of at most 400 KB.

An aggregate's ETag is the lock of its head, `"version.number"`: an exact state. Where an expectation may stand, and how
its failure is answered, is the same as for streams (`preconditions`).
"""

from __future__ import annotations

import re
from typing import Any, Final

from simplejson import RawJSON

from epochal.contrib.event_store_adapter.event_pages import AggregatePage, page
from epochal.contrib.event_store_adapter.ids import AggregateId, AggregateTypes
from epochal.contrib.event_store_adapter.model import (
    AggregateEvent,
    AggregateSnapshot,
    Lock,
    RecordedAggregateEvent,
)
from epochal.contrib.event_store_adapter.outcomes import AggregateAppended, AggregateConflict
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.contrib.event_store_adapter.store import opened as stored
from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.http import parameters, problems, schemas
from epochal.http.answer_size import AnswerSize
from epochal.http.answers import answer, appends, capacity, consumed
from epochal.http.components import Component, Shown
from epochal.http.declarations import operation
from epochal.http.documents import document
from epochal.http.idempotency import idempotency_key
from epochal.http.metering import measured
from epochal.http.nodes import Node, json_body, time_of
from epochal.http.operation import Request, Response
from epochal.http.preconditions import EXPECTATIONS, expectation_of, is_named, precondition
from epochal.http.problems import Kind, Problem
from epochal.http.query_strings import QueryString
from epochal.lazy_dataclasses import dataclass
from epochal.model.events import MAX_TYPE_BYTES
from epochal.model.expected_version import AtVersion, Expected
from epochal.model.tokens import MAX_VERSION
from epochal.plan.limits import TRANSACTION_ITEMS
from epochal.plan.values import Units
from epochal.settings import RESPONSE_BYTES

MAX_EVENTS: Final = TRANSACTION_ITEMS - 1
"""Events of an append: each is an item of one transaction, and so is the head."""

_NUMBER: Final = r"(0|[1-9]\d{0,9})"
_LOCK: Final = re.compile(rf"(?!0\.){_NUMBER}(?:\.{_NUMBER})?", re.ASCII)
"""A version alone, or a lock, whose version is 1 at least."""

TYPE: Final = schemas.name(
    "The aggregate's type, one of those that the deployment registers.", "user-account"
)
ID: Final = schemas.name(
    "The aggregate's id within its type; both together have at most 511 characters.",
    "01H42K4ABWQ5V2XQEP3A48VE0Z",
)
SEQ_NR: Final = schemas.whole("Number of the event, counted from 1.", 1, MAX_VERSION)

_AGGREGATE: Final = schemas.text("Type and id, joined by `-`.")
_STANDS: Final[dict[str, schemas.Schema]] = {
    "version": schemas.whole("The aggregate's version, raised by one with every append.", 1, MAX_VERSION),
    "lastSeqNr": schemas.whole("Number of its last event.", 0, MAX_VERSION),
}
TOKEN: Final = schemas.text(
    "The exact state of the aggregate: its ETag without the quotes.",
    pattern=r"[1-9]\d{0,9}\.(0|[1-9]\d{0,9})",
)
OF_PROBLEMS: Final = {"aggregate": schemas.text("The aggregate concerned.")}
"""Members of problems about aggregates."""

_NEXT: Final = schemas.or_null(SEQ_NR, "`from` of the next page; null if there is none.")

NEW_EVENT: Final = Component(
    "NewAggregateEvent",
    schemas.record(
        {
            "type": schemas.text("Type of the event.", most=MAX_TYPE_BYTES),
            "data": {"description": "Any JSON. Numbers are kept exactly as they are written."},
            "occurredAt": schemas.moment("When it happened: ISO 8601. The default is now."),
        },
        required=("type", "data"),
    ),
    reads={"data": json_body, "occurredAt": time_of},
)


def event_of(node: Node) -> AggregateEvent:
    """Read an event to append from JSON; raise `InvalidInput` naming the field that breaks a rule."""
    sent = NEW_EVENT.read(node)
    return AggregateEvent(type=sent["type"], data=sent["data"], occurred_at=sent.get("occurredAt"))


def expected_of(node: Node) -> Expected | AtVersion | Lock:
    """Read the `expected` member of an append: a version, a word such as `any`, or the token of a state.

    Raises:
        InvalidInput: it is none of these.
    """
    if isinstance(node.value, str) and "." in node.value:
        return lock_of(node.value, node.name)
    return expectation_of(node)


APPEND: Final = Component(
    "AppendToAggregate",
    schemas.record(
        {
            "events": {
                **schemas.array(
                    schemas.ref("NewAggregateEvent"),
                    "Events to append, in this order, all or none.",
                    MAX_EVENTS,
                ),
                "minItems": 1,
            },
            "snapshot": {
                "description": "The state that these events lead to: any JSON. The first append needs it; if left out "
                "later, the snapshot stays as it was."
            },
            "expected": {
                "description": "State that the aggregate must have. If it has another state, the answer is 409. If "
                "left out, any state is accepted.",
                "anyOf": [
                    schemas.whole("Version of the aggregate; 0 if it must not exist.", 0, MAX_VERSION),
                    {"enum": list(EXPECTATIONS)},
                    TOKEN,
                ],
            },
        },
        required=("events",),
    ),
    reads={"events": event_of, "snapshot": json_body, "expected": expected_of},
)
APPENDED: Final = Shown(
    "AppendedToAggregate",
    {
        "aggregate": _AGGREGATE,
        "first": (schemas.whole("Number of the first event of this append.", 1, MAX_VERSION), "first"),
        **_STANDS,
        "token": TOKEN,
        "replayed": (
            schemas.flag("Whether an earlier request with the same Idempotency-Key made this append."),
            "replayed",
        ),
        "capacity": schemas.CAPACITY,
    },
)
EVENT: Final = Shown(
    "AggregateEvent",
    {
        "seqNr": (SEQ_NR, "seq_nr"),
        "type": (schemas.words("Type of the event."), "type"),
        "occurredAt": (
            schemas.words("When it happened; for an event of another library, as that library wrote it."),
            "occurred_at",
        ),
        "data": {"description": "As it was sent."},
    },
)
AGGREGATE: Final = Shown(
    "Aggregate",
    {
        "aggregate": _AGGREGATE,
        **_STANDS,
        "token": TOKEN,
        "snapshotSeqNr": (
            schemas.whole("The last event that the snapshot includes.", 0, MAX_VERSION),
            "seq_nr",
        ),
        "snapshot": {"description": "The snapshot, as it was sent."},
        "events": schemas.array(schemas.ref("AggregateEvent"), "The events after the snapshot."),
        "next": _NEXT,
    },
)
EVENT_PAGE: Final = Shown(
    "AggregateEventPage",
    {
        "aggregate": _AGGREGATE,
        **_STANDS,
        "events": schemas.array(schemas.ref("AggregateEvent"), "In order."),
        "next": _NEXT,
    },
)


def aggregate_of(types: AggregateTypes, request: Request) -> AggregateId:
    """Return the aggregate of a request's path; raise `InvalidInput` if its type or id is not allowed.

    Raises:
        InvalidInput: the type or id is not allowed; the error names the path's parameter.
    """
    try:
        return types.id(request.path["type"], request.path["id"])
    except InvalidInput as error:
        raise InvalidInput("id" if error.field == "value" else error.field, error.rule) from error


def lock_of(text: str, field: str) -> Lock | AtVersion:
    """Parse the text of an ETag as a lock, `version.number`, or as an expected version if a number alone.

    Raises:
        InvalidInput: the text is neither; the error names `field`.
    """
    match = _LOCK.fullmatch(text)
    numbers = [int(group) for group in match.groups() if group is not None] if match else []
    if not numbers or max(numbers) > MAX_VERSION:
        raise InvalidInput(
            field, "must be an ETag that an append or read of the aggregate returned, or a version"
        )
    if len(numbers) == 1:
        return AtVersion(version=numbers[0])
    return Lock(version=numbers[0], seq_nr=numbers[1])


def etag(lock: Lock) -> str:
    """Return the ETag of the state that a lock identifies."""
    return f'"{lock_text(lock)}"'


def lock_text(lock: Lock) -> str:
    """Format a lock as text, `version.number`, which `lock_of` parses."""
    return f"{lock.version}.{lock.seq_nr}"


def appended(aggregate: AggregateId, outcome: AggregateAppended, units: Units) -> dict[str, Any]:
    """Make the JSON response to an append."""
    return APPENDED(
        outcome,
        aggregate=str(aggregate),
        **stand(outcome.lock),
        token=lock_text(outcome.lock),
        capacity=capacity(units),
    )


def state(snapshot: AggregateSnapshot, page: AggregatePage) -> dict[str, Any]:
    """Make the JSON of a snapshot and the events after it, as many as fit into a response.

    The events end earlier than those of `page` if the response is full.
    """
    size = AnswerSize()
    return AGGREGATE(
        snapshot,
        aggregate=str(snapshot.aggregate),
        **stand(snapshot.lock),
        token=lock_text(snapshot.lock),
        snapshot=size.fit(body(snapshot.data)),
        **_events(page, size),
    )


def event_page(aggregate: AggregateId, page: AggregatePage) -> dict[str, Any]:
    """Make the JSON of a page of events, which ends earlier than `page` if the response is full."""
    return EVENT_PAGE(aggregate=str(aggregate), **stand(page.lock), **_events(page, AnswerSize()))


def event(recorded: RecordedAggregateEvent) -> dict[str, Any]:
    """Make the JSON of an event."""
    return EVENT(recorded, data=body(recorded.data))


def stand(lock: Lock) -> dict[str, int]:
    """Make the JSON members of an aggregate's version and last event number."""
    return {"version": lock.version, "lastSeqNr": lock.seq_nr}


def body(data: bytes) -> Any:
    """Return an event's data or a snapshot as raw JSON, which the response has to the byte."""
    return RawJSON(data.decode())


def _events(recorded: AggregatePage, size: AnswerSize) -> dict[str, Any]:
    """Make the JSON members `events` and `next` of a page, up to the size left in a response."""
    shown = list[Any]()
    for event_ in recorded.events:
        view = size.fit(event(event_))
        if view is None:
            return {"events": shown, "next": event_.seq_nr}
        shown.append(view)
    return {"events": shown, "next": recorded.next}


NOT_FOUND: Final = Kind("aggregate-not-found", "There is no such aggregate", 404)

_WHICH: Final = (parameters.path("type", TYPE), parameters.path("id", ID))
_ETAG: Final = {"ETag": schemas.text("The aggregate's exact state, for `If-Match` and `If-None-Match`.")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregates:
    """Store and types that the operations on aggregates run on.

    Attributes:
        store: store of the aggregates.
        types: declared types, which alone are served.
    """

    store: AggregateStore
    types: AggregateTypes


def opened(deployment: Deployment) -> Aggregates:
    """Open the aggregates of a deployment for the operations."""
    store = stored(deployment)
    return Aggregates(store=store, types=store.site.types)


@operation(
    parameters=(
        *_WHICH,
        parameters.header(
            "If-Match",
            'An ETag of the aggregate, a version in quotes (`"17"`), or `*` for any that exists; else 412.',
            pattern=r'(\*|"(0|[1-9]\d{0,9}(\.(0|[1-9]\d{0,9}))?)")',
        ),
        parameters.header("If-None-Match", "`*`: the aggregate must not exist; else 412.", enum=["*"]),
        parameters.IDEMPOTENCY_KEY,
    ),
    takes=APPEND,
    status=201,
    gives=APPENDED,
    headers=_ETAG,
    fails=(problems.VERSION_CONFLICT, problems.PRECONDITION_FAILED),
)
def append_to_aggregate(aggregates: Aggregates, request: Request, _: QueryString) -> Response:
    """Append events to an aggregate, with a snapshot or without.

    One transaction, and one request to the store where an ETag is given. What the aggregate is expected to be stands in
    one place: `If-Match`, `If-None-Match: *` or `expected`.
    """
    aggregate = aggregate_of(aggregates.types, request)
    sent = APPEND.read(document(request))
    events, snapshot = sent["events"], sent.get("snapshot")
    expected, in_header = precondition(request, sent.get("expected"), lock_of)
    key = idempotency_key(request)
    store, meter = measured(aggregates.store, request)
    try:
        outcome = store.try_append(
            aggregate, events, snapshot=snapshot, expected=expected, idempotency_key=key
        )
    except InvalidInput as error:
        # The number in a lock came in the header.
        if error.field != "seq_nr":
            raise
        raise InvalidInput("If-Match", error.rule) from error
    if isinstance(outcome, AggregateConflict):
        raise _refused(aggregate, outcome, meter.units, in_header=in_header)
    view = appended(aggregate, outcome, meter.units)
    headers = {"ETag": etag(outcome.lock)}
    return answer(
        meter, view, status=201, headers=headers, figures=appends(events, replayed=outcome.replayed)
    )


def _refused(
    aggregate: AggregateId, conflict: AggregateConflict, units: Units, *, in_header: bool
) -> Problem:
    """Make the problem (409, or 412 if `in_header`) of a refused append, with the aggregate's version.

    Args:
        in_header: whether the expected version came in a header, which makes it a failed precondition.
    """
    version, lock = conflict.version, conflict.head.lock if conflict.head is not None else None
    return Problem(
        problems.PRECONDITION_FAILED if in_header else problems.VERSION_CONFLICT,
        f"{aggregate} is at version {version}",
        # A head that another library wrote last does not say which number its last event has.
        headers={} if lock is None else {"ETag": etag(lock)},
        figures={"Conflicts": 1.0, **consumed(units)},
        aggregate=str(aggregate),
        version=version,
    )


@operation(
    parameters=(*_WHICH, parameters.KNOWN_STATES),
    gives=AGGREGATE,
    headers={**_ETAG, **parameters.NO_CACHE},
    not_modified=True,
    fails=(NOT_FOUND,),
)
def read_aggregate(aggregates: Aggregates, request: Request, _: QueryString) -> Response:
    """Read an aggregate: its snapshot, and the events after it.

    Where the events are more than 4 MB the answer says in `next` where to go on reading them.
    """
    aggregate = aggregate_of(aggregates.types, request)
    store, meter = measured(aggregates.store, request)
    snapshot = store.latest_snapshot(aggregate)
    if snapshot is None:
        raise _not_found(aggregate)
    headers = {"ETag": etag(snapshot.lock), "Cache-Control": "no-cache"}
    if is_named(request, lock_text(snapshot.lock)):
        return Response(status=304, headers=headers, figures=consumed(meter.units))
    start = snapshot.seq_nr + 1
    after = page(
        store, aggregate, snapshot.lock, start=start, limit=schemas.MAX_LIMIT, max_bytes=RESPONSE_BYTES
    )
    return answer(meter, state(snapshot, after), headers=headers)


@operation(
    parameters=(
        *_WHICH,
        parameters.query("from", {**SEQ_NR, "description": "Number of the first event. The default is 1."}),
        parameters.query("limit", {**schemas.LIMIT, "description": "Largest number of events."}),
    ),
    gives=EVENT_PAGE,
    fails=(NOT_FOUND,),
)
def read_aggregate_events(aggregates: Aggregates, request: Request, query: QueryString) -> Response:
    """Read a page of an aggregate's events.

    A page ends at its limit or at 4 MB. Its `next` is where the following page begins.
    """
    aggregate = aggregate_of(aggregates.types, request)
    start, limit = query.whole("from") or 1, query.limit()
    store, meter = measured(aggregates.store, request)
    lock = store.lock(aggregate)
    if lock is None:
        raise _not_found(aggregate)
    read = page(store, aggregate, lock, start=start, limit=limit, max_bytes=RESPONSE_BYTES)
    return answer(meter, event_page(aggregate, read))


def _not_found(aggregate: AggregateId) -> Problem:
    """Make the problem of an aggregate that does not exist."""
    return Problem(NOT_FOUND, f"{aggregate} has no events", aggregate=str(aggregate))
