"""Operations on streams, and on bodies that are too large for a request. Appends to several streams are in
`http.several` and `http.bulk_appends`.

Streams stored as pages, below `/streams`, and streams stored as tips, below `/tips`, have the same operations. Bodies
in the bucket are always answered with a link, since they may be larger than a function's memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from epochal.deployment import Deployment
from epochal.errors import TooLarge
from epochal.http import answers, parameters, problems, schemas
from epochal.http.answer_size import LARGEST
from epochal.http.appends import (
    APPEND,
    APPENDED,
    check_appended,
    condition_of,
    contents_of,
    position_member,
    verify_token,
)
from epochal.http.bodies import BYTES, CLAIM, LINK_SECONDS, SHA256, Link, claim_of
from epochal.http.components import Component, Shown
from epochal.http.declarations import operation
from epochal.http.documents import document
from epochal.http.idempotency import idempotency_key
from epochal.http.metering import streams_for
from epochal.http.operation import Request, Response
from epochal.http.preconditions import etag, precondition, unchanged
from epochal.http.query_strings import QueryString
from epochal.http.stream_fields import LOW_WATER, STREAM
from epochal.http.stream_problems import conflict_problem, deleted_problem, missing_problem
from epochal.http.stream_views import EVENT_PAGE, STATE, build_page_view, build_state_view
from epochal.lazy_dataclasses import dataclass
from epochal.model.bodies import Claim
from epochal.model.expected_version import ANY, NO_STREAM
from epochal.model.outcomes import Conflict
from epochal.model.stream_append import StreamAppend
from epochal.model.stream_names import stream_name
from epochal.model.tokens import MAX_VERSION, parse_token
from epochal.store.seals import Seals
from epochal.store.streams import Streams
from epochal.store.unopened import UnopenedHead

_STREAM: Final = parameters.path("stream", STREAM)
_ETAG: Final = {
    "ETag": schemas.text("The exact state of the stream, to use in `If-Match` and `If-None-Match`.")
}
_IF_MATCH: Final = parameters.header(
    "If-Match",
    'An ETag of the stream, a version in quotes (`"17"`), or `*` for any stream that exists. If the stream is not '
    "in that state, the answer is 412.",
    pattern=r'(\*|"(0|[1-9]\d{0,9})(\.[0-9a-f]{32}(\.\d{1,7}){5}(\.\d{1,10}(\.[0-9a-f]{32})?)?)?")',
)
_IF_NONE_MATCH_ANY: Final = parameters.header(
    "If-None-Match", "`*`: the stream must not exist. If it does, the answer is 412.", enum=["*"]
)

BODY: Final = Component("Body", schemas.record({"sha256": SHA256, "bytes": BYTES}))
UPLOAD: Final = Shown(
    "Upload",
    {
        "url": schemas.text(
            "URL to which to send the content with PUT, without further credentials.", format="uri"
        ),
        "method": {"const": "PUT"},
        "headers": {
            "type": "object",
            "description": "Headers to send with the content, unchanged.",
            "additionalProperties": {"type": "string"},
        },
        "expiresIn": schemas.whole("Number of seconds for which the URL is valid."),
        "claim": schemas.ref("Claim"),
    },
)

PRUNE: Final = Component(
    "Prune", schemas.record({"before": schemas.whole("First index to keep.", 0, MAX_VERSION)})
)
PRUNED: Final = Shown(
    "Pruned",
    {
        "stream": STREAM,
        "lowWater": (LOW_WATER, "low_water"),
        "deletedItems": (schemas.whole("Number of items that this request deleted."), "deleted"),
        "done": (
            schemas.flag(
                "False if readers no longer see the events but items remain to be deleted. Repeat the request."
            ),
            "done",
        ),
    },
)

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
    """Append events to a stream, replace its unfolds, or both.

    Appends in one atomic write. State the expected version of the stream in one place only: in `If-Match`, in `If-None-
    Match: *` or in `expected`. With `failIf`, the append is also refused if a matching event lies beyond `after`; the
    answer then contains these events.
    """
    stream = stream_name(request.path["stream"])
    root = document(request)
    members = APPEND.read(root)
    contents = contents_of(root, members)
    expected, in_header = precondition(request, members.get("expected"), parse_token)
    key = idempotency_key(request)
    store, meter = streams_for(on.streams, request)
    condition = condition_of(members, store, on.link)
    append = StreamAppend(stream=stream, expected=expected, **contents)
    result = store.try_append(
        stream, **contents, expected=verify_token(store, append), idempotency_key=key, **condition
    )
    outcome = check_appended(store, meter, stream, result, condition, in_header=in_header)
    view = APPENDED(
        outcome,
        stream=stream,
        token=outcome.token.text(),
        capacity=answers.capacity(meter.units),
        **position_member(outcome, store),
    )
    return answers.answer(
        meter,
        view,
        status=201,
        headers={"ETag": etag(outcome.token)},
        figures=answers.appends(contents["events"], replayed=outcome.replayed),
    )


@operation(takes=BODY, status=201, gives=UPLOAD)
def upload_body(on: Opened, request: Request, _: QueryString) -> Response:
    """Get a URL to upload a body that is too large for a request.

    The URL accepts only content of the size and SHA-256 given here, sent with the headers in the answer. A status of
    412 from the URL means that the content has already been uploaded. Then append an event with the `claim`. Content
    that no event claims within a day is deleted.
    """
    claim = claim_of(BODY.read(document(request)))
    if claim.size > on.most:
        raise TooLarge("bytes", claim.size, on.most)
    url, headers = on.upload(claim, LINK_SECONDS)
    view = UPLOAD(url=url, method="PUT", headers=headers, expiresIn=LINK_SECONDS, claim=CLAIM(claim))
    return Response(status=201, body=answers.text_of(view))


@operation(parameters=(_STREAM,), takes=PRUNE, gives=PRUNED, fails=(problems.STREAM_NOT_FOUND,))
def prune_stream(on: Opened, request: Request, _: QueryString) -> Response:
    """Delete the first events of a stream, after copying them to the archive if there is one.

    Without an archive, readers no longer see the events after the first request. The items that held them are deleted
    step by step: repeat the request while `done` is false.
    """
    stream = stream_name(request.path["stream"])
    before = PRUNE.read(document(request))["before"]
    store, meter = streams_for(on.streams, request)
    outcome = store.archive_and_prune(stream, before)
    if outcome is None:
        raise missing_problem(stream)
    return answers.answer(meter, PRUNED(outcome, stream=stream))


@operation(
    parameters=(
        _STREAM,
        _IF_MATCH,
        parameters.query(
            "leaveOpen",
            schemas.flag("Whether the stream stays open: later appends continue at its next index."),
        ),
    ),
    gives=PRUNED,
    fails=(problems.STREAM_NOT_FOUND, problems.STREAM_DELETED, problems.PRECONDITION_FAILED),
)
def delete_stream(on: Opened, request: Request, query: QueryString) -> Response:
    """Delete a stream.

    The name accepts no more events, unless the stream is left open. While `done` is false, repeat the request without
    `If-Match`.
    """
    stream = stream_name(request.path["stream"])
    expected, in_header = precondition(request, None, parse_token)
    leave_open = query.flag("leaveOpen")
    store, meter = streams_for(on.streams, request)
    outcome = store.try_delete(stream, expected=expected, leave_open=leave_open)
    if isinstance(outcome, Conflict):
        if outcome.token is None and expected in (ANY, NO_STREAM):
            raise missing_problem(stream)
        raise conflict_problem(stream, outcome, meter.units, in_header=in_header)
    return answers.answer(meter, PRUNED(outcome, stream=stream))


@operation(
    parameters=(
        _STREAM,
        parameters.KNOWN_STATES,
        parameters.query(
            "events",
            schemas.flag("Whether to include the last events, those that the head of the stream contains."),
        ),
    ),
    gives=STATE,
    headers={**_ETAG, **parameters.NO_CACHE},
    not_modified=True,
    fails=(problems.STREAM_NOT_FOUND, problems.STREAM_DELETED),
)
def read_state(on: Opened, request: Request, query: QueryString) -> Response:
    """Read a stream's version, token and unfolds, and on request its last events.

    Reads one item, however long the stream is.
    """
    stream, events = stream_name(request.path["stream"]), query.flag("events")
    store, meter = streams_for(on.streams, request)
    head = store.head(stream)
    if head is None:
        raise missing_problem(stream)
    if head.deleted:
        raise deleted_problem(stream, head.version, answers.consumed(meter.units))
    token = Seals.of(store, writes=False).seal_token(stream, head.token())
    headers = {"ETag": etag(token), "Cache-Control": "no-cache"}
    if unchanged(request, token):
        return Response(status=304, headers=headers, figures=answers.consumed(meter.units))
    view = build_state_view(UnopenedHead(head=head, codec=store.codec), token, on.link, events=events)
    return answers.answer(meter, view, headers=headers)


@operation(
    parameters=(
        _STREAM,
        parameters.query(
            "from",
            schemas.whole(
                "Index of the first event to read. If left out, reading begins with the first event of the stream, "
                "or backward with its last.",
                0,
                MAX_VERSION,
            ),
        ),
        parameters.query("limit", {**schemas.LIMIT, "description": "Largest number of events."}),
        parameters.query("direction", schemas.direction("Direction in which to read.")),
        parameters.query(
            "type",
            {
                "type": "array",
                "items": {"type": "string"},
                "description": "Only events of this type. May be given several times. A page without a matching "
                "event is empty and still has `next`.",
            },
        ),
        parameters.query(
            "since",
            {
                "type": "string",
                "format": "date-time",
                "description": "Only events with this timestamp or a later one.",
            },
        ),
        parameters.query(
            "until",
            {
                "type": "string",
                "format": "date-time",
                "description": "Only events with an earlier timestamp.",
            },
        ),
    ),
    gives=EVENT_PAGE,
    fails=(problems.STREAM_NOT_FOUND, problems.STREAM_DELETED),
)
def read_events(on: Opened, request: Request, query: QueryString) -> Response:
    """Read a page of a stream's events.

    A page ends at its limit or at 4 MB. Its `next` is where the following page begins.
    """
    backward = query.choice("direction") == "backward"
    stream = stream_name(request.path["stream"])
    start, limit = query.whole("from"), query.limit()
    store, meter = streams_for(on.streams, request)
    page = store.page(
        stream,
        start=start,
        limit=limit,
        direction="backward" if backward else "forward",
        fetch=False,
        types=query.texts("type") or None,
        since=query.text("since"),
        until=query.text("until"),
        largest=LARGEST,
    )
    if not page.exists:
        raise missing_problem(stream)
    if page.deleted:
        raise deleted_problem(stream, page.version, answers.consumed(meter.units))
    return answers.answer(meter, build_page_view(stream, page, on.link))
