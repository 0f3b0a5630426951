"""Whether the store answers. It asks the table of projection states, which every deployment has."""

from __future__ import annotations

from typing import Final

from epochal.deployment import Deployment
from epochal.http.bodies import answer, measured
from epochal.http.fields import QueryString
from epochal.http.operation import Request, Response
from epochal.http.shapes import Shown, operation
from epochal.store.projections import ProjectionStates

PROBE: Final = "Health"
"""A name to look for. It does not matter whether such a state exists, only that the table answers."""

HEALTH: Final = Shown("Health", {"status": {"const": "ok"}})


def opened(deployment: Deployment) -> ProjectionStates:
    """States of projections."""
    return deployment.states


@operation("Whether the store answers", "One strongly consistent read.", gives=HEALTH)
def check_health(states: ProjectionStates, request: Request, _: QueryString) -> Response:
    """Whether the store answers: one strongly consistent read."""
    states, meter = measured(states, request)
    states.find(PROBE, PROBE)
    return answer(meter, HEALTH(status="ok"))
