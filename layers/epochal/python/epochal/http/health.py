"""Whether the store answers. It asks the table of projection states, which every deployment has."""

from __future__ import annotations

from typing import Final

from epochal.deployment import Deployment
from epochal.http.operation import Request, Response
from epochal.http.performers import answer, measured
from epochal.http.query import nothing
from epochal.store.projections import ProjectionStates

PROBE: Final = "Health"
"""A name to look for. It does not matter whether such a state exists, only that the table answers."""


def opened(deployment: Deployment) -> ProjectionStates:
    """States of projections."""
    return deployment.states


def check_health(states: ProjectionStates, request: Request) -> Response:
    """Whether the store answers: one strongly consistent read."""
    nothing(request)
    states, meter = measured(states, request)
    states.find(PROBE, PROBE)
    return answer(meter, {"status": "ok"})
