"""The operations that read streams.

Bodies in the bucket are answered with a link, whatever they are part of: they may be larger than a function's memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from epochal.deployment import Deployment
from epochal.http.bodies import Link
from epochal.http.document import no_document
from epochal.http.operation import Request, Response
from epochal.http.performers import answer, consumed, streams_for
from epochal.http.preconditions import etag, unchanged
from epochal.http.query import DEFAULT_LIMIT, MAX_LIMIT, QueryParameters
from epochal.http.streams import representation
from epochal.http.streams.representation import deleted, not_found
from epochal.model.names import stream_name
from epochal.model.versions import MAX_VERSION
from epochal.store.seals import Seals
from epochal.store.streams import Streams


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the operations run on."""

    streams: Streams
    link: Link


def opened(deployment: Deployment, streams: str) -> Reading:
    """A store of streams of a deployment, by its name there, and downloads from its bucket."""
    return Reading(streams=getattr(deployment, streams), link=deployment.bucket.links.download)


def read_state(reading: Reading, request: Request) -> Response:
    """A stream's head: its state in one request where unfolds hold it."""
    no_document(request)
    query = QueryParameters(request, ("events",))
    stream, events = stream_name(request.path["stream"]), query.flag("events")
    store, meter = streams_for(reading.streams, request)
    found = store.load(stream, fetch=False)
    if found is None:
        raise not_found(stream)
    if found.deleted:
        raise deleted(stream, found.version, consumed(meter.units))
    token = Seals.of(store, writes=False).sealed(stream, found.token)
    headers = {"ETag": etag(token), "Cache-Control": "no-cache"}
    if unchanged(request, token):
        return Response(status=304, headers=headers, figures=consumed(meter.units))
    return answer(meter, representation.state(found, reading.link, events=events), headers=headers)


def read_events(reading: Reading, request: Request) -> Response:
    """A page of a stream's events, either way."""
    no_document(request)
    query = QueryParameters(request, ("from", "limit", "direction"))
    backward = query.choice("direction", ("forward", "backward")) == "backward"
    stream = stream_name(request.path["stream"])
    start, limit = query.whole("from", 0, MAX_VERSION), query.whole("limit", 1, MAX_LIMIT) or DEFAULT_LIMIT
    store, meter = streams_for(reading.streams, request)
    found = store.page(
        stream, start=start, limit=limit, direction="backward" if backward else "forward", fetch=False
    )
    if not found.exists:
        raise not_found(stream)
    if found.deleted:
        raise deleted(stream, found.version, consumed(meter.units))
    return answer(meter, representation.page(stream, found, reading.link))
