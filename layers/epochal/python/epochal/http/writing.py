"""The operations of the `append` function: append, upload, prune, delete."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from epochal.codec.json import dumps
from epochal.http import commands, problems, views
from epochal.http.bodies import LINK_SECONDS
from epochal.http.message import Request, Response
from epochal.http.preconditions import etag
from epochal.http.problems import Problem
from epochal.http.service import Operations, consumed, not_found, refused, streams_for
from epochal.model.events import Claim
from epochal.model.outcomes import Appended, Conflict, Undetermined
from epochal.model.versions import ANY, NO_STREAM
from epochal.store.streams import Streams

Upload = Callable[[Claim, int], tuple[str, dict[str, str]]]
"""Signs an upload of a body for so many seconds: a URL, and the headers that must be sent with it."""


def operations(streams: Streams, upload: Upload, most: int) -> Operations:
    """The operations on a store, by name; uploads may have `most` bytes."""
    return {
        "appendEvents": partial(append_events, streams),
        "uploadBody": partial(upload_body, upload, most),
        "pruneStream": partial(prune_stream, streams),
        "deleteStream": partial(delete_stream, streams),
    }


def append_events(streams: Streams, request: Request) -> Response:
    """Append events and replace unfolds, in one atomic write."""
    command = commands.append_events(request)
    store, meter = streams_for(streams, request)
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
                body=views.appended(command.stream, outcome, meter.units),
                headers={"ETag": etag(outcome.token)},
                figures={**written, **consumed(meter.units)},
            )
        case Conflict():
            in_header = command.precondition.in_header
            raise refused(command.stream, outcome, meter.units, in_header=in_header)
        case Undetermined(first=first):
            raise _undetermined(command.stream, first)


def upload_body(upload: Upload, most: int, request: Request) -> Response:
    """Sign the upload of a body that is too large for a request; an append then claims it."""
    claim = commands.upload_body(request, most)
    url, headers = upload(claim, LINK_SECONDS)
    body = {
        "url": url,
        "method": "PUT",
        "headers": headers,
        "expiresIn": LINK_SECONDS,
        "claim": {"key": claim.key, "sha256": claim.sha256, "bytes": claim.size},
    }
    return Response(status=201, body=dumps(body).decode())


def prune_stream(streams: Streams, request: Request) -> Response:
    """Make the events below an index gone, and delete a bounded part of what held them; an archive gets them first."""
    command = commands.prune_stream(request)
    store, meter = streams_for(streams, request)
    outcome = store.archive_and_prune(command.stream, command.before)
    if outcome is None:
        raise not_found(command.stream)
    return Response(status=200, body=views.pruned(command.stream, outcome), figures=consumed(meter.units))


def delete_stream(streams: Streams, request: Request) -> Response:
    """Delete a stream, or a bounded part of what is left of it."""
    command = commands.delete_stream(request)
    store, meter = streams_for(streams, request)
    wanted = command.precondition
    outcome = store.try_delete(command.stream, expected=wanted.expected, leave_open=command.leave_open)
    if isinstance(outcome, Conflict):
        if outcome.token is None and wanted.expected in (ANY, NO_STREAM):
            raise not_found(command.stream)
        raise refused(command.stream, outcome, meter.units, in_header=wanted.in_header)
    return Response(status=200, body=views.pruned(command.stream, outcome), figures=consumed(meter.units))


def _undetermined(stream: str, first: int) -> Problem:
    return Problem(
        problems.UNDETERMINED,
        "a response was lost, and the events from this index on, which would tell, have been pruned since: read the "
        "stream's state before writing again",
        stream=stream,
        index=first,
    )
