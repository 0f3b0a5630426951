"""Which method and path is which operation: read by the stacks, the handlers and the OpenAPI document.

A scope is what a caller must be allowed to do. With IAM it is a set of routes in a policy; with JWT a token must carry
one of the scopes that the deployment maps it to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Function = Literal["append", "replay", "feed"]
Method = Literal["GET", "POST", "PUT", "DELETE"]
Scope = Literal["append", "manage", "read", "feed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One operation of the API.

    Attributes:
        path: as API Gateway writes it, parameters in braces.
        function: the Lambda function that serves it.
        operation: its name in logs, metrics and the OpenAPI document.
        scope: what a caller must be allowed to do.
    """

    method: Method
    path: str
    function: Function
    operation: str
    scope: Scope

    @property
    def key(self) -> str:
        """API Gateway's route key."""
        return f"{self.method} {self.path}"


ROUTES: Final = (
    Route(
        method="POST",
        path="/streams/{stream}/events",
        function="append",
        operation="appendEvents",
        scope="append",
    ),
    Route(method="POST", path="/bodies", function="append", operation="uploadBody", scope="append"),
    Route(
        method="POST",
        path="/streams/{stream}/prune",
        function="append",
        operation="pruneStream",
        scope="manage",
    ),
    Route(
        method="DELETE", path="/streams/{stream}", function="append", operation="deleteStream", scope="manage"
    ),
    Route(method="GET", path="/streams/{stream}", function="replay", operation="readState", scope="read"),
    Route(
        method="GET", path="/streams/{stream}/events", function="replay", operation="readEvents", scope="read"
    ),
    Route(
        method="POST",
        path="/aggregates/{type}/{id}/events",
        function="append",
        operation="appendToAggregate",
        scope="append",
    ),
    Route(
        method="GET",
        path="/aggregates/{type}/{id}",
        function="replay",
        operation="readAggregate",
        scope="read",
    ),
    Route(
        method="GET",
        path="/aggregates/{type}/{id}/events",
        function="replay",
        operation="readAggregateEvents",
        scope="read",
    ),
    Route(method="POST", path="/dcb/events", function="append", operation="appendTagged", scope="append"),
    Route(method="POST", path="/dcb/query", function="replay", operation="queryTagged", scope="read"),
    Route(method="GET", path="/dcb/events/{id}", function="replay", operation="readTagged", scope="read"),
    Route(method="GET", path="/dcb/tags", function="replay", operation="listTags", scope="read"),
    Route(method="GET", path="/dcb/tags/{tag}", function="replay", operation="readTag", scope="read"),
    Route(
        method="GET",
        path="/projections/{name}",
        function="replay",
        operation="listProjectionStates",
        scope="read",
    ),
    Route(
        method="GET",
        path="/projections/{name}/{version}",
        function="replay",
        operation="readProjectionState",
        scope="read",
    ),
    Route(
        method="PUT",
        path="/projections/{name}/{version}",
        function="append",
        operation="writeProjectionState",
        scope="append",
    ),
    Route(
        method="DELETE",
        path="/projections/{name}/{version}",
        function="append",
        operation="deleteProjectionState",
        scope="manage",
    ),
    Route(method="GET", path="/health", function="replay", operation="checkHealth", scope="read"),
    Route(method="GET", path="/feed", function="feed", operation="listPartitions", scope="feed"),
    Route(method="GET", path="/feed/{partition}", function="feed", operation="readFeed", scope="feed"),
)


def routes_of(function: Function) -> tuple[Route, ...]:
    """The routes that one function serves."""
    return tuple(route for route in ROUTES if route.function == function)


def parameters(path: str, template: str) -> dict[str, str] | None:
    """Values of a template's parameters in a path, which may be empty or hold anything but `/`; None: no match."""
    given, wanted = path.split("/"), template.split("/")
    if len(given) != len(wanted):
        return None
    values: dict[str, str] = {}
    for value, part in zip(given, wanted, strict=True):
        if part.startswith("{"):
            values[part[1:-1]] = value
        elif value != part:
            return None
    return values
