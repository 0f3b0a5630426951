"""The operations that write streams: append, upload, prune, delete."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from epochal.deployment import Deployment
from epochal.errors import InvalidInput, TooLarge
from epochal.http import problems
from epochal.http.answer_size import text_of
from epochal.http.bodies import LINK_SECONDS, claim_of
from epochal.http.document import document, no_document
from epochal.http.fields import Node, required
from epochal.http.operation import Request, Response
from epochal.http.performers import answer, appends, streams_for
from epochal.http.preconditions import etag, idempotency_key, precondition
from epochal.http.problems import Problem
from epochal.http.query import QueryParameters
from epochal.http.streams import representation
from epochal.http.streams.representation import not_found, refused
from epochal.model.events import Claim, Event, Unfold
from epochal.model.names import stream_name
from epochal.model.outcomes import Appended, Conflict, Undetermined
from epochal.model.versions import ANY, MAX_VERSION, NO_STREAM, Token, parse_token
from epochal.store.seals import Seals
from epochal.store.streams import Streams

Upload = Callable[[Claim, int], tuple[str, dict[str, str]]]
"""Signs an upload of a body for so many seconds: a URL, and the headers that must be sent with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """What the operations run on; uploads may have `most` bytes."""

    streams: Streams
    upload: Upload
    most: int


def opened(deployment: Deployment, streams: str) -> Writing:
    """A store of streams of a deployment, by its name there, and uploads to its bucket."""
    return Writing(
        streams=getattr(deployment, streams),
        upload=deployment.bucket.links.upload,
        most=deployment.settings.max_upload_bytes,
    )


def append_events(writing: Writing, request: Request) -> Response:
    """Append events and replace unfolds, in one atomic write."""
    QueryParameters(request)
    stream = stream_name(request.path["stream"])
    root = document(request)
    fields = root.members(("events", "unfolds", "expected"))
    events, unfolds = contents_of(root, fields)
    wanted = precondition(request, fields.get("expected"), parse_token)
    key = idempotency_key(request)
    store, meter = streams_for(writing.streams, request)
    seals = Seals.of(store, writes=True)
    expected = wanted.expected
    outcome = store.try_append(
        stream,
        events,
        unfolds=unfolds,
        expected=seals.believed(stream, expected) if isinstance(expected, Token) else expected,
        idempotency_key=key,
    )
    match outcome:
        case Appended(token=token, replayed=replayed):
            headers = {"ETag": etag(seals.sealed(stream, token))}
            view = representation.appended(stream, outcome, meter.units)
            return answer(
                meter, view, status=201, headers=headers, figures=appends(events, replayed=replayed)
            )
        case Conflict():
            if outcome.token is not None:
                outcome = replace(outcome, token=seals.sealed(stream, outcome.token))
            raise refused(stream, outcome, meter.units, in_header=wanted.in_header)
        case Undetermined(first=first):
            raise _undetermined(stream, first)


def upload_body(writing: Writing, request: Request) -> Response:
    """Sign the upload of a body that is too large for a request; an append then claims it."""
    QueryParameters(request)
    root = document(request)
    fields = root.members(("sha256", "bytes"))
    claim = claim_of(required(root, fields, "sha256"), required(root, fields, "bytes"))
    if claim.size > writing.most:
        raise TooLarge("bytes", claim.size, writing.most)
    url, headers = writing.upload(claim, LINK_SECONDS)
    body = {
        "url": url,
        "method": "PUT",
        "headers": headers,
        "expiresIn": LINK_SECONDS,
        "claim": {"key": claim.key, "sha256": claim.sha256, "bytes": claim.size},
    }
    return Response(status=201, body=text_of(body))


def prune_stream(writing: Writing, request: Request) -> Response:
    """Make the events below an index gone, and delete a bounded part of what held them; an archive gets them first."""
    QueryParameters(request)
    stream = stream_name(request.path["stream"])
    root = document(request)
    before = required(root, root.members(("before",)), "before").whole(0, MAX_VERSION)
    store, meter = streams_for(writing.streams, request)
    outcome = store.archive_and_prune(stream, before)
    if outcome is None:
        raise not_found(stream)
    return answer(meter, representation.pruned(stream, outcome))


def delete_stream(writing: Writing, request: Request) -> Response:
    """Delete a stream, or a bounded part of what is left of it."""
    no_document(request)
    query = QueryParameters(request, ("leaveOpen",))
    stream = stream_name(request.path["stream"])
    wanted = precondition(request, None, parse_token)
    leave_open = query.flag("leaveOpen")
    store, meter = streams_for(writing.streams, request)
    outcome = store.try_delete(stream, expected=wanted.expected, leave_open=leave_open)
    if isinstance(outcome, Conflict):
        if outcome.token is None and wanted.expected in (ANY, NO_STREAM):
            raise not_found(stream)
        raise refused(stream, outcome, meter.units, in_header=wanted.in_header)
    return answer(meter, representation.pruned(stream, outcome))


def contents_of(node: Node, fields: dict[str, Node]) -> tuple[tuple[Event, ...], tuple[Unfold, ...] | None]:
    """The events and unfolds of an append, which has some; None where it leaves the unfolds as they are."""
    events = tuple(map(representation.event_of, _items(fields, "events", representation.MAX_EVENTS)))
    unfolds = tuple(map(representation.unfold_of, _items(fields, "unfolds", representation.MAX_UNFOLDS)))
    if not events and not unfolds:
        raise InvalidInput(node.below("events"), "at least one event, or one unfold, is required")
    return events, unfolds if "unfolds" in fields else None


def _items(fields: dict[str, Node], name: str, most: int) -> tuple[Node, ...]:
    return fields[name].items(most) if name in fields else ()


def _undetermined(stream: str, first: int) -> Problem:
    return Problem(
        problems.UNDETERMINED,
        "a response was lost, and the events from this index on, which would tell, have been pruned since: read the "
        "stream's state before writing again",
        stream=stream,
        index=first,
    )
