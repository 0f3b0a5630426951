"""The operations that read states of projections."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from epochal.deployment import Deployment
from epochal.http import problems
from epochal.http.answer_size import text_of
from epochal.http.document import no_document
from epochal.http.operation import Request, Response
from epochal.http.performers import consumed, measured
from epochal.http.preconditions import is_named
from epochal.http.problems import Problem
from epochal.http.projections import representation
from epochal.http.projections.representation import Link, Which, check_path, parse_which
from epochal.http.query import Query
from epochal.store.projections import ProjectionStates

VERSIONS: Final = 20
MAX_VERSIONS: Final = 100
"""Versions of a listing: a request to the store for every two or three, where their states are large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the operations run on."""

    states: ProjectionStates
    link: Link


def opened(deployment: Deployment) -> Reading:
    """The states of a deployment, and URLs of those in its bucket."""
    return Reading(states=deployment.states, link=deployment.bucket.links.object)


def read_projection_state(reading: Reading, request: Request) -> Response:
    """A state, or where it is."""
    which = parse_which(request)
    states, meter = measured(reading.states, request)
    found = states.find(which.name, which.version)
    if found is None:
        raise _not_found(which)
    tag = representation.tag_of(found)
    headers = {"ETag": f'"{tag}"', "Cache-Control": "no-cache"}
    if is_named(request, tag):
        return Response(status=304, headers=headers, figures=consumed(meter.units))
    body = text_of(representation.shown(found, partial(states.open, found), reading.link))
    return Response(status=200, body=body, headers=headers, figures=consumed(meter.units))


def list_projection_states(reading: Reading, request: Request) -> Response:
    """A page of a projection's versions, without their states."""
    no_document(request)
    query = Query(request, ("from", "limit"))
    name, beyond = request.path["name"], query.text("from")
    check_path(name, "-" if beyond is None else beyond, "from")
    limit = query.whole("limit", 1, MAX_VERSIONS) or VERSIONS
    states, meter = measured(reading.states, request)
    found, following = states.page(name, beyond=beyond, limit=limit)
    body = {"name": name, "versions": [representation.described(each) for each in found], "next": following}
    return Response(status=200, body=text_of(body), figures=consumed(meter.units))


def _not_found(which: Which) -> Problem:
    return Problem(
        problems.PROJECTION_NOT_FOUND,
        f"there is no state of {which.name} {which.version}",
        name=which.name,
        version=which.version,
    )
