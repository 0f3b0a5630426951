"""Operations on streams, and on bodies that are too large for a request: their schemas, and the functions that perform
them. Appends to several streams are in `http.several`.

Streams stored as pages, below `/streams`, and streams stored as tips, below `/tips`, have the same operations. Bodies
in the bucket are always answered with a link, since they may be larger than a function's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from epochal.deployment import Deployment
from epochal.errors import InvalidInput, TooLarge
from epochal.http import answers, parameters, problems, schemas
from epochal.http.components import Component, Read, Shown
from epochal.http.declarations import operation
from epochal.http.documents import document
from epochal.http.events import (
    _BYTES,
    _SHA256,
    CLAIM,
    CONDITION,
    IN_STREAM,
    INDEX,
    LARGEST,
    LINK_SECONDS,
    MAX_EVENTS,
    MAX_UNFOLDS,
    POSITION,
    AnswerSize,
    Link,
    claim_of,
    event,
    event_frame,
    event_of,
    unfold,
    unfold_frame,
    unfold_of,
)
from epochal.http.idempotency import idempotency_key
from epochal.http.metering import streams_for
from epochal.http.nodes import Node
from epochal.http.operation import Request, Response
from epochal.http.preconditions import EXPECTATIONS, etag, expectation_of, precondition, unchanged
from epochal.http.problems import Problem
from epochal.http.query_strings import QueryString
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.bodies import Claim
from epochal.model.stream_names import no_step, stream_name
from epochal.model.versions import (
    ANY,
    MAX_VERSION,
    NO_STREAM,
    Appended,
    Conflict,
    ExpectedVersion,
    Outcome,
    StreamAppend,
    Token,
    Undetermined,
    parse_token,
)
from epochal.plan.values import Units
from epochal.store.driver import Meter
from epochal.store.reading import Page
from epochal.store.seals import Seals
from epochal.store.streams import Streams
from epochal.store.unopened import UnopenedHead, UnopenedUnfold

if TYPE_CHECKING:
    from epochal.http.tagged import Listed

STREAM: Final = schemas.name("A stream's name, `Category-id`.", "Aircraft-N14228")


def _token(digits: int) -> schemas.Schema:
    """The schema of a token whose figures have at most so many digits."""
    return schemas.text(
        "The stream's exact state: its ETag, without the quotes.",
        pattern=rf"(0|[1-9]\d{{0,9}})\.[0-9a-f]{{32}}(\.\d{{1,{digits}}}){{5}}(\.\d{{1,10}}(\.[0-9a-f]{{32}})?)?",
    )


TOKEN: Final = _token(8)
"""A token in an answer. An append adds to the figures of the token that it got, which somebody may have made up."""

_EXPECTED_TOKEN: Final = _token(7)
"""A token in a request."""

VERSION: Final = schemas.whole("The stream's version: the index that its next event gets.", 0, MAX_VERSION)
_LOW_WATER: Final = schemas.whole("Events below this index have been pruned.", 0, MAX_VERSION)
FIRST: Final = schemas.whole("Index of the first event of this append.", 0, MAX_VERSION)
REPLAYED: Final = schemas.flag("An earlier request with the same Idempotency-Key had made this append.")
_STREAM: Final = parameters.path("stream", STREAM)
_ETAG: Final = {"ETag": schemas.text("The stream's exact state, for `If-Match` and `If-None-Match`.")}
_IF_MATCH: Final = parameters.header(
    "If-Match",
    'An ETag of the stream, a version in quotes (`"17"`), or `*` for any stream that exists; else 412.',
    pattern=r'(\*|"(0|[1-9]\d{0,9})(\.[0-9a-f]{32}(\.\d{1,7}){5}(\.\d{1,10}(\.[0-9a-f]{32})?)?)?")',
)
_IF_NONE_MATCH_ANY: Final = parameters.header(
    "If-None-Match", "`*`: the stream must not exist; else 412.", enum=["*"]
)

# Schemas of requests and answers.

BODY: Final = Component("Body", schemas.record({"sha256": _SHA256, "bytes": _BYTES}))
UPLOAD: Final = Shown(
    "Upload",
    {
        "url": schemas.text("Where to put the content, without further credentials.", format="uri"),
        "method": {"const": "PUT"},
        "headers": {
            "type": "object",
            "description": "To be sent with it, as they are.",
            "additionalProperties": {"type": "string"},
        },
        "expiresIn": schemas.whole("Seconds for which the URL works."),
        "claim": schemas.ref("Claim"),
    },
)

WITH_QUERY: Final = {"after": ["failIf"]}
REACHED: Final = {
    **POSITION,
    "description": "To append after: that of `failIf`, moved past this append; without one, where it is in the tags of "
    "its events. Absent where neither is there; of a replayed append it may be before the events.",
}


def contents_of(node: Node, sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the events and unfolds of an append request; refuse a request that has neither.

    Args:
        node: the request's JSON object.
        sent: its members as `Component.read` returns them.

    Returns:
        `events`, and `unfolds`, which is None where the append leaves the stored unfolds unchanged.

    Raises:
        InvalidInput: there is no event and no unfold.
    """
    events, unfolds = sent.get("events", ()), sent.get("unfolds")
    if not events and not unfolds:
        raise InvalidInput(node.below("events"), "at least one event, or one unfold, is required")
    return {"events": events, "unfolds": unfolds}


def expected_of(node: Node) -> ExpectedVersion:
    """Read the `expected` member of an append: a version, a word such as `any`, or a state token.

    A text with points is taken for a token.
    """
    if isinstance(node.value, str) and "." in node.value:
        return parse_token(node.value, node.name)
    return expectation_of(node)


def append_form(
    name: str,
    *,
    stream: Mapping[str, schemas.Schema],
    condition: Mapping[str, schemas.Schema],
    event: schemas.Schema = IN_STREAM,
    **rest: Any,
) -> Component:
    """Build the schema and reader of an append to one stream.

    Args:
        name: name of the schema in the OpenAPI document.
        stream: the `stream` member and its schema; empty where the path names the stream.
        condition: the members `failIf` and `after` and their schemas; empty where the append takes no condition.
        event: schema of an event.
        rest: further JSON Schema keywords of the object.
    """
    choices = [schemas.whole("Its version.", 0, MAX_VERSION), {"enum": list(EXPECTATIONS)}, _EXPECTED_TOKEN]
    schema = schemas.record(
        {
            **stream,
            "events": schemas.array(event, "Appended in this order, all or none.", MAX_EVENTS),
            "unfolds": schemas.array(
                schemas.ref("NewUnfold"),
                "State to store beside the events, in place of all that is stored; left out, what is stored stays.",
                MAX_UNFOLDS,
            ),
            "expected": {
                "description": "What the stream must be, else the answer is 409. Left out: anything.",
                "anyOf": choices,
            },
            **condition,
        },
        required=tuple(stream),
        description="At least one event or unfold.",
        anyOf=[{"required": [name], "properties": {name: {"minItems": 1}}} for name in ("events", "unfolds")],
        **rest,
    )
    reads: dict[str, Read] = {
        "stream": lambda node: no_step(stream_name(node.value, node.name), node.name),
        "events": event_of,
        "unfolds": unfold_of,
        "expected": expected_of,
    }
    return Component(name, schema, reads=reads)


APPEND: Final = append_form("Append", stream={}, condition=CONDITION, dependentRequired=WITH_QUERY)
APPEND_UNTAGGED: Final = append_form(
    "AppendUntagged", stream={}, condition={}, event=schemas.ref("NewUntaggedEvent")
)
APPENDED: Final = Shown(
    "Appended",
    {
        "stream": STREAM,
        "first": (FIRST, "first"),
        "version": (VERSION, "version"),
        "token": TOKEN,
        "replayed": (REPLAYED, "replayed"),
        "position": REACHED,
        "capacity": schemas.CAPACITY,
    },
    optional=("position",),
)
STATE: Final = Shown(
    "State",
    {
        "stream": (STREAM, "stream"),
        "version": (VERSION, "version"),
        "token": TOKEN,
        "lowWater": (_LOW_WATER, "low_water"),
        "headEvents": schemas.whole("How many of the last events its head carries."),
        "unfolds": schemas.array(schemas.ref("Unfold"), "State derived from the events."),
        "events": schemas.array(
            schemas.ref("Event"), "Those that the head carries, where `events=true` asked for them."
        ),
    },
    optional=("events",),
)
EVENT_PAGE: Final = Shown(
    "EventPage",
    {
        "stream": STREAM,
        "version": (VERSION, "version"),
        "lowWater": (_LOW_WATER, "low_water"),
        "events": schemas.array(schemas.ref("Event"), "In the order asked for."),
        "next": schemas.or_null(INDEX, "`from` of the next page; null where there is none."),
        "hole": schemas.record(
            {
                "first": schemas.whole("The first index that was asked for.", 0, MAX_VERSION),
                "end": schemas.whole("The index after the last of them.", 0, MAX_VERSION),
            },
            description="Events that were asked for before these and have been pruned; absent where none have.",
        ),
    },
    optional=("hole",),
)
PRUNE: Final = Component(
    "Prune", schemas.record({"before": schemas.whole("The first index to keep.", 0, MAX_VERSION)})
)
PRUNED: Final = Shown(
    "Pruned",
    {
        "stream": STREAM,
        "lowWater": (_LOW_WATER, "low_water"),
        "deletedItems": (schemas.whole("Items deleted by this request."), "deleted"),
        "done": (
            schemas.flag(
                "False: readers see none of it any more, but items are left. Send the request again."
            ),
            "done",
        ),
    },
)


# The operations.

Upload = Callable[[Claim, int], tuple[str, dict[str, str]]]
"""Function that signs an upload of a body for some seconds; returns a URL and the headers that it requires."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The store, link signers and upload limit that stream operations run on.

    Attributes:
        streams: the store of streams.
        link: signer of download URLs for bodies in the bucket.
        upload: signer of upload URLs for bodies.
        most: largest upload, in bytes.
    """

    streams: Streams
    link: Link
    upload: Upload
    most: int


def opened(deployment: Deployment, streams: str) -> Opened:
    """Return a deployment's store of streams together with its bucket's URL signers.

    Args:
        streams: name of the deployment's property that holds the store.
    """
    return Opened(
        streams=getattr(deployment, streams),
        link=deployment.bucket.links.download,
        upload=deployment.bucket.links.upload,
        most=deployment.settings.max_upload_bytes,
    )


@operation(
    parameters=(_STREAM, _IF_MATCH, _IF_NONE_MATCH_ANY, parameters.IDEMPOTENCY_KEY),
    takes=APPEND,
    status=201,
    gives=APPENDED,
    headers=_ETAG,
    fails=(
        problems.VERSION_CONFLICT,
        problems.STREAM_DELETED,
        problems.PRECONDITION_FAILED,
        problems.CONDITION_FAILED,
        problems.UNDETERMINED,
    ),
)
def append_events(on: Opened, request: Request, _: QueryString) -> Response:
    """Append events, replace unfolds, or both.

    One atomic write. What the stream is expected to be stands in one place: `If-Match`, `If-None-Match: *` or
    `expected`. With `failIf` it is refused, too, if an event that matches lies beyond `after`; the answer has these
    events.
    """
    stream = stream_name(request.path["stream"])
    root = document(request)
    sent = APPEND.read(root)
    contents = contents_of(root, sent)
    expected, in_header = precondition(request, sent.get("expected"), parse_token)
    key = idempotency_key(request)
    store, meter = streams_for(on.streams, request)
    condition = condition_of(sent, store, on.link)
    wanted = StreamAppend(stream=stream, expected=expected, **contents)
    came = store.try_append(
        stream, **contents, expected=verify_token(store, wanted), idempotency_key=key, **condition
    )
    outcome = made(store, meter, stream, came, condition, in_header=in_header)
    view = APPENDED(
        outcome,
        stream=stream,
        token=outcome.token.text(),
        capacity=answers.capacity(meter.units),
        **reached_by(outcome, store),
    )
    return answers.answer(
        meter,
        view,
        status=201,
        headers={"ETag": etag(outcome.token)},
        figures=answers.appends(contents["events"], replayed=outcome.replayed),
    )


def verify_token(store: Streams, wanted: StreamAppend) -> ExpectedVersion:
    """Return the expected version of an append, with a token trusted only as far as its seal goes."""
    expected = wanted.expected
    if not isinstance(expected, Token):
        return expected
    return Seals.of(store, writes=True).verify_token(wanted.stream, expected)


def made(
    store: Streams,
    meter: Meter,
    stream: str,
    outcome: Outcome,
    condition: Mapping[str, Any],
    *,
    in_header: bool = False,
) -> Appended:
    """Return a successful append to one stream with a sealed token, or raise the problem it met.

    Args:
        condition: condition of the append, as `condition_of` returns it.
        in_header: whether a header named the expected version, so that a conflict is answered with 412 instead of 409.

    Raises:
        Problem: the append met a conflict, or whether it was applied cannot be determined.
    """
    seals = Seals.of(store, writes=True)
    match outcome:
        case Appended():
            return replace(outcome, token=seals.sealed(stream, outcome.token))
        case Conflict() if outcome.events:
            raise forbidden_by(outcome, condition, store, meter)
        case Conflict():
            if outcome.token is not None:
                outcome = replace(outcome, token=seals.sealed(stream, outcome.token))
            raise _refused(stream, outcome, meter.units, in_header=in_header)
        case Undetermined(first=first):
            raise Problem(
                problems.UNDETERMINED,
                "a response was lost, and the events from this index on, which would tell, have been pruned since: read"
                " the stream's state before writing again",
                stream=stream,
                index=first,
            )


def condition_of(
    sent: Mapping[str, Any],
    store: Streams,
    link: Link,
    limit: int = schemas.DEFAULT_LIMIT,
    room: AnswerSize | None = None,
) -> dict[str, Any]:
    """Return the append condition of a request as keyword arguments for the store; empty without one.

    The argument `takes` collects the conflicting events for the answer.

    Args:
        sent: members of the request; the condition is in `failIf` and `after`.
        limit: most conflicting events to answer with.
        room: space that is left in the answer; None for an answer of its own.

    Raises:
        InvalidInput: `after` is sent without `failIf`, or the store has no tags.
    """
    if "after" in sent and "failIf" not in sent:
        raise InvalidInput("after", "needs a query to go with")
    if "failIf" not in sent:
        return {}
    from epochal.http import tagged as over  # noqa: PLC0415  most appends have none

    try:
        tagged = store.tagged
    except InvalidInput as error:
        raise InvalidInput("failIf", error.rule) from error
    after = over.position_of(sent)
    return {
        "fail_if": over.query_of(sent["failIf"], tagged),
        "after": None if after is None else tagged.verify_seals(after),
        "takes": over.Listed(limit, link, answer=room),
    }


def reached_by(made: Appended, store: Streams) -> dict[str, Any]:
    """Return the answer's `position` member after an append; empty where the append concerned no tags."""
    if not made.position.seen:
        return {}
    from epochal.model.tags import write_position  # noqa: PLC0415  most appends concern none

    return {"position": write_position(store.tagged.sealed(made.position, writes=True))}


def forbidden_by(conflict: Conflict, condition: Mapping[str, Any], store: Streams, meter: Meter) -> Problem:
    """Return the problem of an append whose condition found conflicting events."""
    sealed = replace(conflict, position=store.tagged.sealed(conflict.position, writes=True))
    listed: Listed = condition["takes"]
    return listed.refused(sealed, meter.units)


@operation(takes=BODY, status=201, gives=UPLOAD)
def upload_body(on: Opened, request: Request, _: QueryString) -> Response:
    """Get a URL to upload a body that is too large for a request.

    The upload is bound to the size and SHA-256 named here, and to the headers in the answer; 412 from the URL says that
    it has been uploaded already. An event then carries the `claim`. What is not claimed within a day expires.
    """
    claim = claim_of(BODY.read(document(request)))
    if claim.size > on.most:
        raise TooLarge("bytes", claim.size, on.most)
    url, headers = on.upload(claim, LINK_SECONDS)
    view = UPLOAD(url=url, method="PUT", headers=headers, expiresIn=LINK_SECONDS, claim=CLAIM(claim))
    return Response(status=201, body=answers.text_of(view))


@operation(parameters=(_STREAM,), takes=PRUNE, gives=PRUNED, fails=(problems.STREAM_NOT_FOUND,))
def prune_stream(on: Opened, request: Request, _: QueryString) -> Response:
    """Make the first events of a stream gone, for good.

    At once for readers; what held the events is deleted a part at a time.
    """
    stream = stream_name(request.path["stream"])
    before = PRUNE.read(document(request))["before"]
    store, meter = streams_for(on.streams, request)
    outcome = store.archive_and_prune(stream, before)
    if outcome is None:
        raise _not_found(stream)
    return answers.answer(meter, PRUNED(outcome, stream=stream))


@operation(
    parameters=(
        _STREAM,
        _IF_MATCH,
        parameters.query("leaveOpen", schemas.flag("The stream goes on at its next index.")),
    ),
    gives=PRUNED,
    fails=(problems.STREAM_NOT_FOUND, problems.STREAM_DELETED, problems.PRECONDITION_FAILED),
)
def delete_stream(on: Opened, request: Request, asked: QueryString) -> Response:
    """Delete a stream.

    Its name takes no more events, unless it is left open. Where `done` is false, send the request again, without
    `If-Match`.
    """
    stream = stream_name(request.path["stream"])
    expected, in_header = precondition(request, None, parse_token)
    leave_open = asked.flag("leaveOpen")
    store, meter = streams_for(on.streams, request)
    outcome = store.try_delete(stream, expected=expected, leave_open=leave_open)
    if isinstance(outcome, Conflict):
        if outcome.token is None and expected in (ANY, NO_STREAM):
            raise _not_found(stream)
        raise _refused(stream, outcome, meter.units, in_header=in_header)
    return answers.answer(meter, PRUNED(outcome, stream=stream))


@operation(
    parameters=(
        _STREAM,
        parameters.KNOWN_STATES,
        parameters.query(
            "events", schemas.flag("Also the last events, as far as the stream's head carries them.")
        ),
    ),
    gives=STATE,
    headers={**_ETAG, **parameters.NO_CACHE},
    not_modified=True,
    fails=(problems.STREAM_NOT_FOUND, problems.STREAM_DELETED),
)
def read_state(on: Opened, request: Request, asked: QueryString) -> Response:
    """Read a stream's version and unfolds.

    One request of one item, whatever the stream's length.
    """
    stream, events = stream_name(request.path["stream"]), asked.flag("events")
    store, meter = streams_for(on.streams, request)
    head = store.head(stream)
    if head is None:
        raise _not_found(stream)
    if head.deleted:
        raise _deleted(stream, head.version, answers.consumed(meter.units))
    token = Seals.of(store, writes=False).sealed(stream, head.token())
    headers = {"ETag": etag(token), "Cache-Control": "no-cache"}
    if unchanged(request, token):
        return Response(status=304, headers=headers, figures=answers.consumed(meter.units))
    view = _state(UnopenedHead(head=head, codec=store.codec), token, on.link, events=events)
    return answers.answer(meter, view, headers=headers)


@operation(
    parameters=(
        _STREAM,
        parameters.query(
            "from",
            schemas.whole(
                "Index of the first event; left out: the stream's first, or backward its last.",
                0,
                MAX_VERSION,
            ),
        ),
        parameters.query("limit", {**schemas.LIMIT, "description": "Events at most."}),
        parameters.query("direction", schemas.direction("Which way to read.")),
        parameters.query(
            "type",
            {
                "type": "array",
                "items": {"type": "string"},
                "description": "Only events of this type; may be given several times. A page of others "
                "is empty, and says where to go on.",
            },
        ),
        parameters.query(
            "since",
            {"type": "string", "format": "date-time", "description": "Only events of this time and later."},
        ),
        parameters.query(
            "until", {"type": "string", "format": "date-time", "description": "Only events before this time."}
        ),
    ),
    gives=EVENT_PAGE,
    fails=(problems.STREAM_NOT_FOUND, problems.STREAM_DELETED),
)
def read_events(on: Opened, request: Request, asked: QueryString) -> Response:
    """Read a page of a stream's events.

    A page ends at its limit or at 4 MB, and says where to go on.
    """
    backward = asked.choice("direction") == "backward"
    stream = stream_name(request.path["stream"])
    start, limit = asked.whole("from"), asked.limit()
    store, meter = streams_for(on.streams, request)
    found = store.page(
        stream,
        start=start,
        limit=limit,
        direction="backward" if backward else "forward",
        fetch=False,
        types=asked.texts("type") or None,
        since=asked.text("since"),
        until=asked.text("until"),
        largest=LARGEST,
    )
    if not found.exists:
        raise _not_found(stream)
    if found.deleted:
        raise _deleted(stream, found.version, answers.consumed(meter.units))
    return answers.answer(meter, _page(stream, found, on.link))


# Views of heads and pages.


def _state(unopened: UnopenedHead, token: Token, link: Link, *, events: bool) -> dict[str, Any]:
    """Show the head of a stream: its token and unfolds, and its last events where they are asked for.

    Events are opened only where `events` is true: they may be large.
    """
    unfolds = unopened.unfolds()
    stored = [each.stored for each in unfolds]
    outlines = [unfold_frame(each.version, each.type, each.timestamp) for each in stored]
    frames = [*map(event_frame, unopened.outlines())] if events else []
    # A head has hundreds of events, all of which are shown; names that JSON has to escape can be most of an answer.
    answer = AnswerSize([*outlines, *frames])
    views = [
        answer.put_opened(partial(_opened_unfold, each, link), frame, large=each.may_be_large)
        for each, frame in zip(unfolds, outlines, strict=True)
    ]
    carried: dict[str, Any] = {}
    if events:
        carried = {
            "events": [
                answer.put_opened(
                    partial(_opened, unopened, place, link), frame, large=unopened.may_be_large(place)
                )
                for place, frame in enumerate(frames)
            ]
        }
    return STATE(unopened.head, token=token.text(), headEvents=unopened.count, unfolds=views, **carried)


def _opened_unfold(unopened: UnopenedUnfold, link: Link, largest: int) -> dict[str, Any] | None:
    """Show an unfold; None where its data or metadata exceed `largest` bytes."""
    found = unopened.open(largest)
    return None if found is None else unfold(found, link)


def _opened(unopened: UnopenedHead, place: int, link: Link, largest: int) -> dict[str, Any] | None:
    """Show one event of a stream's head; None where its data or metadata exceed `largest` bytes.

    Args:
        place: offset of the event within the head.
    """
    found = unopened.event(place, largest)
    return None if found is None else event(found, link)


def _page(stream: str, found: Page, link: Link) -> dict[str, Any]:
    """Show a page of a stream's events, cut short where the answer is full."""
    answer, shown, following = AnswerSize(), list[Any](), found.next
    for each in found.events:
        if each.index in found.omitted:
            shown.append(answer.omit(event_frame(each)))
            continue
        view = answer.fit(event(each, link)) if shown else answer.put(event(each, link), event_frame(each))
        if view is None:
            following = each.index
            break
        shown.append(view)
    hole = {} if found.hole is None else {"hole": {"first": found.hole.first, "end": found.hole.end}}
    return EVENT_PAGE(found, stream=stream, events=shown, next=following, **hole)


# Problems.


def _refused(stream: str, conflict: Conflict, units: Units, *, in_header: bool) -> Problem:
    """Return the problem of a write whose expected version was wrong, or whose stream was deleted.

    The status is 412 for an expectation in a header, 409 for one in the body, and 410 for a deleted stream.
    """
    figures = {"Conflicts": 1.0, **answers.consumed(units)}
    if conflict.deleted:
        return _deleted(stream, conflict.version, figures)
    token = conflict.token
    return Problem(
        problems.PRECONDITION_FAILED if in_header else problems.VERSION_CONFLICT,
        f"{stream} is at version {conflict.version}",
        headers={} if token is None else {"ETag": etag(token)},
        figures=figures,
        stream=stream,
        version=conflict.version,
        **({} if token is None else {"token": token.text()}),
    )


def _deleted(stream: str, version: int, figures: Mapping[str, float]) -> Problem:
    """Return the problem of a deleted stream, with the version at which it was deleted."""
    return Problem(
        problems.STREAM_DELETED,
        f"{stream} was deleted at version {version} and takes no more events",
        figures=figures,
        stream=stream,
        version=version,
    )


def _not_found(stream: str) -> Problem:
    """Return the problem of a stream that does not exist."""
    return Problem(problems.STREAM_NOT_FOUND, f"{stream} has no events", stream=stream)
