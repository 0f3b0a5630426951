"""The operations that write streams: append, upload, prune, delete."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from epochal.deployment import Deployment
from epochal.errors import InvalidInput, TooLarge
from epochal.http import problems
from epochal.http.answer_size import text_of
from epochal.http.bodies import LINK_SECONDS
from epochal.http.document import document, no_document
from epochal.http.fields import Node, required
from epochal.http.operation import Request, Response
from epochal.http.performers import consumed, streams_for
from epochal.http.preconditions import Precondition, etag, idempotency_key, precondition
from epochal.http.problems import Problem
from epochal.http.query import Query
from epochal.http.streams import representation
from epochal.http.streams.representation import not_found, refused
from epochal.model.events import Claim, Event, Unfold
from epochal.model.names import StreamName, stream_name
from epochal.model.outcomes import Appended, Conflict, Undetermined
from epochal.model.versions import ANY, MAX_VERSION, NO_STREAM, Token, parse_token
from epochal.store.streams import Streams

Upload = Callable[[Claim, int], tuple[str, dict[str, str]]]
"""Signs an upload of a body for so many seconds: a URL, and the headers that must be sent with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """What the operations run on; uploads may have `most` bytes."""

    streams: Streams
    upload: Upload
    most: int


def opened(deployment: Deployment) -> Writing:
    """The streams of a deployment, and uploads to its bucket."""
    return Writing(
        streams=deployment.streams,
        upload=deployment.bucket.links.upload,
        most=deployment.settings.max_upload_bytes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendEvents:
    """`POST /streams/{stream}/events`."""

    stream: StreamName
    events: tuple[Event, ...]
    unfolds: tuple[Unfold, ...] | None
    precondition: Precondition[Token]
    idempotency_key: str | None


def append_events(writing: Writing, request: Request) -> Response:
    """Append events and replace unfolds, in one atomic write."""
    command = _parse_append_events(request)
    store, meter = streams_for(writing.streams, request)
    outcome = store.try_append(
        command.stream,
        command.events,
        unfolds=command.unfolds,
        expected=command.precondition.expected,
        idempotency_key=command.idempotency_key,
    )
    match outcome:
        case Appended():
            written = {} if outcome.replayed else {"Appends": 1.0, "Events": float(len(command.events))}
            return Response(
                status=201,
                body=text_of(representation.appended(command.stream, outcome, meter.units)),
                headers={"ETag": etag(outcome.token)},
                figures={**written, **consumed(meter.units)},
            )
        case Conflict():
            in_header = command.precondition.in_header
            raise refused(command.stream, outcome, meter.units, in_header=in_header)
        case Undetermined(first=first):
            raise _undetermined(command.stream, first)


def _parse_append_events(request: Request) -> AppendEvents:
    """Parse an append."""
    Query(request)
    stream = stream_name(request.path["stream"])
    fields = document(request).members(("events", "unfolds", "expected"))
    given = tuple(map(representation.event_of, _items(fields, "events", representation.MAX_EVENTS)))
    unfolds = tuple(map(representation.unfold_of, _items(fields, "unfolds", representation.MAX_UNFOLDS)))
    if not given and not unfolds:
        raise InvalidInput("events", "at least one event, or one unfold, is required")
    return AppendEvents(
        stream=stream,
        events=given,
        unfolds=unfolds if "unfolds" in fields else None,
        precondition=precondition(request, fields.get("expected"), parse_token),
        idempotency_key=idempotency_key(request),
    )


def _parse_upload_body(request: Request, most: int) -> Claim:
    """Parse `POST /bodies`: the claim check of the body to be uploaded, which may have so many bytes at most."""
    Query(request)
    root = document(request)
    fields = root.members(("sha256", "bytes"))
    claim = representation.claim_of(required(root, fields, "sha256"), required(root, fields, "bytes"))
    if claim.size > most:
        raise TooLarge("bytes", claim.size, most)
    return claim


def upload_body(writing: Writing, request: Request) -> Response:
    """Sign the upload of a body that is too large for a request; an append then claims it."""
    claim = _parse_upload_body(request, writing.most)
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
    Query(request)
    stream = stream_name(request.path["stream"])
    root = document(request)
    before = required(root, root.members(("before",)), "before").whole(0, MAX_VERSION)
    store, meter = streams_for(writing.streams, request)
    outcome = store.archive_and_prune(stream, before)
    if outcome is None:
        raise not_found(stream)
    return Response(status=200, body=representation.pruned(stream, outcome), figures=consumed(meter.units))


def delete_stream(writing: Writing, request: Request) -> Response:
    """Delete a stream, or a bounded part of what is left of it."""
    no_document(request)
    query = Query(request, ("leaveOpen",))
    stream = stream_name(request.path["stream"])
    wanted = precondition(request, None, parse_token)
    leave_open = query.flag("leaveOpen")
    store, meter = streams_for(writing.streams, request)
    outcome = store.try_delete(stream, expected=wanted.expected, leave_open=leave_open)
    if isinstance(outcome, Conflict):
        if outcome.token is None and wanted.expected in (ANY, NO_STREAM):
            raise not_found(stream)
        raise refused(stream, outcome, meter.units, in_header=wanted.in_header)
    return Response(status=200, body=representation.pruned(stream, outcome), figures=consumed(meter.units))


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
