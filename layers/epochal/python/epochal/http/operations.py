"""Every operation of the API: read by the gateway, the stacks and the OpenAPI document."""

from __future__ import annotations

from typing import Final

from epochal.http import aggregates, feed, projections, streams, tagged
from epochal.http.operation import Function, Operation

HEALTH: Final = Operation(
    "GET",
    "/health",
    "check_health",
    module="epochal.http.health",
    function="replay",
    scope="read",
    rare=True,
)

OPERATIONS: Final = (
    *streams.OPERATIONS,
    *aggregates.OPERATIONS,
    *tagged.OPERATIONS,
    *projections.OPERATIONS,
    HEALTH,
    *feed.OPERATIONS,
)


def operations_of(function: Function) -> tuple[Operation, ...]:
    """The operations that one function serves."""
    return tuple(operation for operation in OPERATIONS if operation.function == function)
