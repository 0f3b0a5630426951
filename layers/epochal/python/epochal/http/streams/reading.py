"""The operations that read streams, and tell of the store's health.

Bodies in the bucket are answered with a link, whatever they are part of: they may be larger than a function's memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from epochal.http.answer_size import text_of
from epochal.http.bodies import Link
from epochal.http.deployment import Deployment, consumed, streams_for
from epochal.http.document import no_document
from epochal.http.operation import Request, Response
from epochal.http.preconditions import etag, unchanged
from epochal.http.query import DEFAULT_LIMIT, MAX_LIMIT, Query, nothing
from epochal.http.streams import representation
from epochal.http.streams.representation import deleted, not_found
from epochal.model.names import StreamName, stream_name
from epochal.model.versions import MAX_VERSION
from epochal.store.bodies import BodyCodec
from epochal.store.streams import Streams, streams_of

PROBE = "Health"
"""A name to look for. Whether such a stream exists is of no matter; that the table answers is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the operations run on."""

    streams: Streams
    link: Link


def opened(deployment: Deployment) -> Reading:
    """The streams of a deployment, and downloads from its bucket."""
    codec = BodyCodec(bodies=deployment.bodies)
    return Reading(
        streams=streams_of(deployment.settings, deployment.driver, codec), link=deployment.links.download
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadState:
    """`GET /streams/{stream}`."""

    stream: StreamName
    events: bool


def _parse_read_state(request: Request) -> ReadState:
    """Parse a read of the Tip."""
    no_document(request)
    query = Query(request, ("events",))
    return ReadState(stream=stream_name(request.path["stream"]), events=query.flag("events"))


def read_state(reading: Reading, request: Request) -> Response:
    """A stream's Tip: its state in one request where unfolds hold it."""
    command = _parse_read_state(request)
    store, meter = streams_for(reading.streams, request)
    found = store.load(command.stream, fetch=False)
    if found is None:
        raise not_found(command.stream)
    if found.deleted:
        raise deleted(command.stream, found.version, consumed(meter.units))
    headers = {"ETag": etag(found.token), "Cache-Control": "no-cache"}
    if unchanged(request, found.token):
        return Response(status=304, headers=headers, figures=consumed(meter.units))
    body = representation.state(found, reading.link, events=command.events)
    return Response(status=200, body=body, headers=headers, figures=consumed(meter.units))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadEvents:
    """`GET /streams/{stream}/events`."""

    stream: StreamName
    start: int | None
    limit: int
    direction: Literal["forward", "backward"]


def _parse_read_events(request: Request) -> ReadEvents:
    """Parse a read of a page of events."""
    no_document(request)
    query = Query(request, ("from", "limit", "direction"))
    direction = query.choice("direction", ("forward", "backward"))
    return ReadEvents(
        stream=stream_name(request.path["stream"]),
        start=query.whole("from", 0, MAX_VERSION),
        limit=query.whole("limit", 1, MAX_LIMIT) or DEFAULT_LIMIT,
        direction="forward" if direction == "forward" else "backward",
    )


def read_events(reading: Reading, request: Request) -> Response:
    """A page of a stream's events, either way."""
    command = _parse_read_events(request)
    store, meter = streams_for(reading.streams, request)
    found = store.page(
        command.stream, start=command.start, limit=command.limit, direction=command.direction, fetch=False
    )
    if not found.exists:
        raise not_found(command.stream)
    if found.deleted:
        raise deleted(command.stream, found.version, consumed(meter.units))
    return Response(
        status=200,
        body=representation.page(command.stream, found, reading.link),
        figures=consumed(meter.units),
    )


def check_health(reading: Reading, request: Request) -> Response:
    """Whether the store answers: one strongly consistent read."""
    nothing(request)
    store, meter = streams_for(reading.streams, request)
    store.load(PROBE, fetch=False)
    return Response(status=200, body=text_of({"status": "ok"}), figures=consumed(meter.units))
