"""API Gateway around the operations: routing, logs and metrics. With `gateway_requests`, all that knows AWS Lambda.

Every error that an operation raises is answered with a problem document. Unforeseen errors are logged with their trace
under the request's correlation id, and answered without a trace. Logs and metrics name operations, never streams, since
names may identify people; they contain only Epochal's own words of errors (`dynamo.loggable_errors`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from epochal.deferred import loaded_function
from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.hosting.metrics import metrics_of
from epochal.http import problems
from epochal.http.gateway_log import Log
from epochal.http.gateway_requests import correlation_id, is_request, path_of, request_of
from epochal.http.nodes import UnknownName
from epochal.http.operation import Function, Operation, Request, Response
from epochal.http.problems import ROUTE_NOT_FOUND, Problem, problem_of, problem_response
from epochal.http.routes import operations, operations_in
from epochal.settings import service_name

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


Handler = Callable[[dict[str, Any], "LambdaContext"], dict[str, Any]]

COUNTED: Final = ("Events", "Conflicts")
"""Figures that become metrics. The others become notes in the log line, since DynamoDB counts units itself."""

_FAULT: Final = 500


def serve(function: Function, deployment: Deployment) -> Handler:
    """Return the handler of a Lambda function, which serves the function's operations."""
    return _Gateway(function, deployment).handle


class _Gateway:
    """The handler of one Lambda function: routes events to operations, logs and measures them."""

    def __init__(self, function: Function, deployment: Deployment) -> None:
        """Open the function's operations on a deployment, but for rare ones, which open on demand."""
        self._function = function
        self._routes = _Routes(function, operations_in(deployment.settings))
        self._performers = Performers(deployment)
        service = service_name(os.environ, function)
        self._log = Log(service)
        self._metrics = metrics_of(service)
        for operation in self._routes.operations:
            if not operation.rare:
                self._performers.of(operation)

    def handle(self, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        """Answer one Lambda event: perform the operation that it requests, or refuse what is no request."""
        if not is_request(event):
            return self._foreign(context.aws_request_id)
        return self._answer(event, context, correlation_id(event))

    def _foreign(self, identity: str) -> dict[str, Any]:
        """Return the HTTP answer that refuses an event that is no HTTP request; log and measure it.

        Args:
            identity: request id of the invocation.
        """
        error = InvalidInput("event", "must be a request of API Gateway in payload format 2.0")
        response = self._refused(error, identity)
        self._measure("none", response, 0.0, identity)
        return _sent(response, identity)

    def _answer(self, event: dict[str, Any], context: LambdaContext, identity: str) -> dict[str, Any]:
        """Perform a request's operation, turn every error into a problem; return the gateway's response.

        Every error becomes a problem document.

        Args:
            identity: correlation id of the request.
        """
        started = time.perf_counter()
        operation, parameters = self._route(event)
        try:
            response = self._perform(operation, event, parameters, context)
        except Exception as error:  # noqa: BLE001  an error that is not caught here would show its text to the caller
            response = self._refused(error, identity)
        name = operation.name if isinstance(operation, Operation) else "none"
        self._measure(name, response, time.perf_counter() - started, identity)
        return _sent(response, identity)

    def _route(self, event: dict[str, Any]) -> tuple[Operation | Problem, dict[str, str]]:
        """Find the operation of a request; return it, or a problem, and the path's parameters.

        The parameters are not checked: the operation does that. Only a request that has no operation in this deployment
        is compared with the operations on layouts that the deployment lacks, which are imported for it.
        """
        method, path = event["requestContext"]["http"]["method"], path_of(event)
        return (
            self._routes.find(method, path)
            or _Routes(self._function, operations()).find(method, path)
            or (_no_operation(method, path), {})
        )

    def _perform(
        self,
        operation: Operation | Problem,
        event: dict[str, Any],
        parameters: dict[str, str],
        context: LambdaContext,
    ) -> Response:
        """Perform an operation, or raise the problem that stands in its place.

        Args:
            operation: the operation, or the problem of a request that has none.
        """
        if isinstance(operation, Problem):
            raise operation
        request = request_of(event, parameters, context.get_remaining_time_in_millis() / 1000)
        return self._performers.of(operation)(request)

    def _refused(self, error: Exception, identity: str) -> Response:
        """Log an error, and return its problem document as a response."""
        problem = problem_of(error)
        kind = problem.kind
        if kind.status >= _FAULT:
            from epochal.dynamo.loggable_errors import log_fields  # noqa: PLC0415  only failures need it

            self._log.write("error", "failed", identity, problem=kind.name, **log_fields(error))
        else:
            place = error.place if isinstance(error, UnknownName) else problem.members.get("field")
            self._log.write("info", "refused", identity, problem=kind.name, field=place)
        return problem_response(problem, identity)

    def _measure(self, operation: str, response: Response, seconds: float, identity: str) -> None:
        """Record the metrics of a response, and log it at debug level.

        Args:
            operation: name of the operation; `none` for no operation.
            seconds: duration of the request.
        """
        fault = response.status >= _FAULT
        counts = {name: value for name, value in response.figures.items() if name in COUNTED}
        self._metrics.add(
            operation=operation,
            times={"Latency": seconds * 1000},
            counts={"Faults": float(fault), **counts},
            notes={name: value for name, value in response.figures.items() if name not in COUNTED},
            urgent=fault,
        )
        self._log.write("debug", "answered", identity, operation=operation, status=response.status)


class _Routes:
    """The routes of one Lambda function.

    Attributes:
        operations: operations that the function serves.
    """

    def __init__(self, function: Function, operations: Iterable[Operation]) -> None:
        """Keep the function's operations of these, and the paths of all."""
        of_api = tuple(operations)
        self.operations = tuple(operation for operation in of_api if operation.function == function)
        self._paths = frozenset(operation.path for operation in of_api)

    def find(self, method: str, path: str) -> tuple[Operation, dict[str, str]] | None:
        """Return the operation of a method and path, and the path's parameters; None if there is no operation.

        A literal path wins over one with parameters: `/events/query` is no event's id.
        """
        for operation in self.operations:
            if operation.method != method or (parameters := operation.parameters(path)) is None:
                continue
            if not parameters or path not in self._paths:
                return operation, parameters
        return None


class Performers:
    """The functions that perform operations on one deployment, each imported and opened on first use."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._opened: dict[tuple[str, str], Any] = {}
        self._performers: dict[tuple[str, str], Callable[[Request], Response]] = {}

    def of(self, operation: Operation) -> Callable[[Request], Response]:
        """Return the function that answers an operation's requests."""
        route = operation.method, operation.path  # the operation itself is slow to hash
        if route not in self._performers:
            self._performers[route] = self._performer(operation)
        return self._performers[route]

    def _performer(self, operation: Operation) -> Callable[[Request], Response]:
        """Return the function that performs an operation, imported and bound to the deployment.

        Where the deployment lacks the operation's table, the function refuses each request. Appends are checked
        against event schemas where the stage names some.
        """
        if operation.table and not self._deployment.settings.table(operation.table):
            return partial(_left_out, operation.table)
        opened = operation.module, operation.store
        if opened not in self._opened:
            which = (operation.store,) if operation.store else ()
            self._opened[opened] = operation.opened(self._deployment, *which)
        perform = partial(loaded_function(operation.perform), self._opened[opened])
        if self._deployment.settings.event_schemas and operation.function == "append":
            from epochal.http.checked import checked  # noqa: PLC0415  most deployments name no schemas

            return checked(perform, self._deployment.settings)
        return perform


def _left_out(kind: str, _: Request) -> Response:
    """Raise the problem of an operation whose table the deployment lacks."""
    detail = f"this deployment has no table of {kind}: its stage does not include that layout"
    raise Problem(ROUTE_NOT_FOUND, detail)


def _no_operation(method: str, path: str) -> Problem:
    """Return the problem of a request that matches no operation: 404, or 405 with allowed methods."""
    matching = [operation for operation in operations() if operation.parameters(path) is not None]
    if not matching:
        return Problem(ROUTE_NOT_FOUND)
    allowed = [operation.method for operation in matching if operation.path == path] or [
        operation.method for operation in matching
    ]
    if method in allowed:
        return Problem(ROUTE_NOT_FOUND, "another function serves this operation")
    return Problem(problems.METHOD_NOT_ALLOWED, headers={"Allow": ", ".join(allowed)})


def _sent(response: Response, identity: str) -> dict[str, Any]:
    """Convert a response to the form that API Gateway expects."""
    media = {} if response.body is None else {"Content-Type": response.media}
    return {
        "statusCode": response.status,
        "headers": {**media, **response.headers, "X-Correlation-Id": identity},
        "body": response.body or "",
        "isBase64Encoded": False,
    }
