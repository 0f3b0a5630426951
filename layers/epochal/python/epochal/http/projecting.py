"""The operations on projection states: `append` serves those that write, `replay` those that read."""

from __future__ import annotations

from functools import partial
from typing import Final

from epochal.errors import TooLarge
from epochal.http import problems
from epochal.http import projection_commands as commands
from epochal.http import projection_views as views
from epochal.http.answer_size import text_of
from epochal.http.message import Request, Response
from epochal.http.preconditions import is_named
from epochal.http.problems import Problem, problem_of
from epochal.http.projection_commands import Which
from epochal.http.projection_views import Link
from epochal.http.service import Operations, consumed, measured
from epochal.store.projections import ProjectionStates

LARGER: Final = "larger states are written by the library, or by `epochal projections put`"


def appending(states: ProjectionStates) -> Operations:
    """The operations that write, by name."""
    return {
        "writeProjectionState": partial(write_state, states),
        "deleteProjectionState": partial(delete_state, states),
    }


def replaying(states: ProjectionStates, link: Link) -> Operations:
    """The operations that read, by name."""
    return {
        "listProjectionStates": partial(list_states, states),
        "readProjectionState": partial(read_state, states, link),
    }


def write_state(states: ProjectionStates, request: Request) -> Response:
    """Store a state, unless one that has processed more events is there."""
    try:
        command = commands.write_state(request)
    except TooLarge as error:
        raise _too_large(error) from error
    which = command.which
    states, meter = measured(states, request)
    newer = states.try_save(
        which.name,
        which.version,
        [command.state],
        events_processed=command.events_processed,
        last_sortable_id=command.last_sortable_id,
        safe_window=command.safe_window,
    )
    if newer is not None:
        raise Problem(
            problems.PROJECTION_BEHIND,
            f"the stored state has processed {newer.events_processed:,} events",
            figures={"Conflicts": 1.0, **consumed(meter.units)},
            name=which.name,
            version=which.version,
            eventsProcessed=newer.events_processed,
        )
    body = views.written(which.name, which.version, command.events_processed, meter.units)
    return Response(status=200, body=text_of(body), figures=consumed(meter.units))


def delete_state(states: ProjectionStates, request: Request) -> Response:
    """Delete a state, if it is there."""
    which = commands.one_state(request)
    states, meter = measured(states, request)
    states.delete(which.name, which.version)
    body = {"name": which.name, "version": which.version}
    return Response(status=200, body=text_of(body), figures=consumed(meter.units))


def read_state(states: ProjectionStates, link: Link, request: Request) -> Response:
    """A state, or where it is."""
    which = commands.one_state(request)
    states, meter = measured(states, request)
    found = states.find(which.name, which.version)
    if found is None:
        raise _not_found(which)
    tag = views.tag_of(found)
    headers = {"ETag": f'"{tag}"', "Cache-Control": "no-cache"}
    if is_named(request, tag):
        return Response(status=304, headers=headers, figures=consumed(meter.units))
    body = text_of(views.shown(found, partial(states.open, found), link))
    return Response(status=200, body=body, headers=headers, figures=consumed(meter.units))


def list_states(states: ProjectionStates, request: Request) -> Response:
    """A page of a projection's versions, without their states."""
    command = commands.list_states(request)
    states, meter = measured(states, request)
    found, following = states.page(command.name, beyond=command.beyond, limit=command.limit)
    body = {"name": command.name, "versions": [views.described(each) for each in found], "next": following}
    return Response(status=200, body=text_of(body), figures=consumed(meter.units))


def _not_found(which: Which) -> Problem:
    return Problem(
        problems.PROJECTION_NOT_FOUND,
        f"there is no state of {which.name} {which.version}",
        name=which.name,
        version=which.version,
    )


def _too_large(error: TooLarge) -> Problem:
    """Says who can write what a request cannot carry."""
    plain = problem_of(error)
    return Problem(plain.kind, f"{plain.detail}; {LARGER}", **plain.members)
