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


def _route(method: Method, path: str, function: Function, operation: str, scope: Scope) -> Route:
    return Route(method=method, path=path, function=function, operation=operation, scope=scope)


ROUTES: Final = (
    _route("POST", "/streams/{stream}/events", "append", "appendEvents", "append"),
    _route("POST", "/bodies", "append", "uploadBody", "append"),
    _route("POST", "/streams/{stream}/prune", "append", "pruneStream", "manage"),
    _route("DELETE", "/streams/{stream}", "append", "deleteStream", "manage"),
    _route("GET", "/streams/{stream}", "replay", "readState", "read"),
    _route("GET", "/streams/{stream}/events", "replay", "readEvents", "read"),
    _route("POST", "/aggregates/{type}/{id}/events", "append", "appendToAggregate", "append"),
    _route("GET", "/aggregates/{type}/{id}", "replay", "readAggregate", "read"),
    _route("GET", "/aggregates/{type}/{id}/events", "replay", "readAggregateEvents", "read"),
    _route("POST", "/dcb/events", "append", "appendTagged", "append"),
    _route("POST", "/dcb/query", "replay", "queryTagged", "read"),
    _route("GET", "/dcb/events/{id}", "replay", "readTagged", "read"),
    _route("GET", "/dcb/events", "replay", "listTagged", "read"),
    _route("GET", "/dcb/count", "replay", "countTagged", "read"),
    _route("GET", "/dcb/tags", "replay", "listTags", "read"),
    _route("GET", "/dcb/tags/{tag}", "replay", "readTag", "read"),
    _route("GET", "/projections/{name}", "replay", "listProjectionStates", "read"),
    _route("GET", "/projections/{name}/{version}", "replay", "readProjectionState", "read"),
    _route("PUT", "/projections/{name}/{version}", "append", "writeProjectionState", "append"),
    _route("DELETE", "/projections/{name}/{version}", "append", "deleteProjectionState", "manage"),
    _route("GET", "/health", "replay", "checkHealth", "read"),
    _route("GET", "/feed", "feed", "listPartitions", "feed"),
    _route("GET", "/feed/{partition}", "feed", "readFeed", "feed"),
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
