"""The operations of the `replay` function: state, events, health.

Bodies in the bucket are answered with a link, whatever they are part of: they may be larger than a function's memory.
"""

from __future__ import annotations

from functools import partial

from epochal.codec.json import dumps
from epochal.http import commands, views
from epochal.http.bodies import Link
from epochal.http.message import Request, Response
from epochal.http.preconditions import etag, unchanged
from epochal.http.service import Operations, consumed, deleted, not_found, streams_for
from epochal.store.streams import Streams

PROBE = "Health"
"""A name to look for. Whether such a stream exists is of no matter; that the table answers is."""


def operations(streams: Streams, link: Link) -> Operations:
    """The operations on a store, by name."""
    return {
        "readState": partial(read_state, streams, link),
        "readEvents": partial(read_events, streams, link),
        "checkHealth": partial(check_health, streams),
    }


def read_state(streams: Streams, link: Link, request: Request) -> Response:
    """A stream's Tip: its state in one request where unfolds hold it."""
    command = commands.read_state(request)
    store, meter = streams_for(streams, request)
    found = store.load(command.stream, fetch=False)
    if found is None:
        raise not_found(command.stream)
    if found.deleted:
        raise deleted(command.stream, found.version, consumed(meter.units))
    headers = {"ETag": etag(found.token), "Cache-Control": "no-cache"}
    if unchanged(request, found.token):
        return Response(status=304, headers=headers, figures=consumed(meter.units))
    body = views.state(found, link, events=command.events)
    return Response(status=200, body=body, headers=headers, figures=consumed(meter.units))


def read_events(streams: Streams, link: Link, request: Request) -> Response:
    """A page of a stream's events, either way."""
    command = commands.read_events(request)
    store, meter = streams_for(streams, request)
    found = store.page(
        command.stream, start=command.start, limit=command.limit, direction=command.direction, fetch=False
    )
    if not found.exists:
        raise not_found(command.stream)
    if found.deleted:
        raise deleted(command.stream, found.version, consumed(meter.units))
    return Response(status=200, body=views.page(command.stream, found, link), figures=consumed(meter.units))


def check_health(streams: Streams, request: Request) -> Response:
    """Whether the store answers: one strongly consistent read."""
    commands.nothing(request)
    store, meter = streams_for(streams, request)
    store.load(PROBE, fetch=False)
    return Response(status=200, body=dumps({"status": "ok"}).decode(), figures=consumed(meter.units))
