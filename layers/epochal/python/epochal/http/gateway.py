"""API Gateway around the operations: routing, logs and metrics. The only module that knows AWS Lambda.

Whatever an operation raises ends here as a problem document. Errors that nobody foresaw are logged with their trace
under the request's correlation id, and answered without one. Logs and metrics name operations, never streams: names
may identify people; and they have only our own words of errors (`dynamo.loggable`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.http import problems
from epochal.http.fields import UnknownName
from epochal.http.log import Log
from epochal.http.operation import Function, Operation, Response
from epochal.http.operations import OPERATIONS, operations_of
from epochal.http.performers import Performers
from epochal.http.problems import Problem, problem_of, problem_response
from epochal.http.transport import correlation_id, is_request, path_of, request_of
from epochal.metrics import metrics_of
from epochal.settings import service_name

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

Handler = Callable[[dict[str, Any], "LambdaContext"], dict[str, Any]]

COUNTED: Final = ("Events", "Conflicts")
"""Figures that are metrics. The others are notes: units are counted by DynamoDB too."""

_FAULT: Final = 500


def serve(function: Function, deployment: Deployment) -> Handler:
    """The entry point of a function: its operations on a deployment."""
    return _Gateway(function, deployment).handle


class _Gateway:
    def __init__(self, function: Function, deployment: Deployment) -> None:
        self._operations = operations_of(function)
        self._performers = Performers(deployment)
        service = service_name(os.environ, function)
        self._log = Log(service)
        self._metrics = metrics_of(service)
        for operation in self._operations:
            if not operation.rare:
                self._performers.of(operation)

    def handle(self, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        """Answer one event."""
        if not is_request(event):
            return self._foreign(context.aws_request_id)
        return self._answer(event, context, correlation_id(event))

    def _foreign(self, identity: str) -> dict[str, Any]:
        """What did not come through the gateway is refused in its own form."""
        error = InvalidInput("event", "must be a request as API Gateway sends it, in payload format 2.0")
        response = self._refused(error, identity)
        self._measure("none", response, 0.0, identity)
        return _sent(response, identity)

    def _answer(self, event: dict[str, Any], context: LambdaContext, identity: str) -> dict[str, Any]:
        started = time.perf_counter()
        operation, parameters = self._asked(event)
        try:
            response = self._perform(operation, event, parameters, context)
        except Exception as error:  # noqa: BLE001  the last stop: beyond it the gateway would show the error's text
            response = self._refused(error, identity)
        name = operation.name if isinstance(operation, Operation) else "none"
        self._measure(name, response, time.perf_counter() - started, identity)
        return _sent(response, identity)

    def _asked(self, event: dict[str, Any]) -> tuple[Operation | Problem, dict[str, str]]:
        """The operation that a request is of, and its path's parameters, which the operation itself looks at."""
        method, path = event["requestContext"]["http"]["method"], path_of(event)
        for operation in self._operations:
            if operation.method != method or (found := operation.parameters(path)) is None:
                continue
            if not found or path not in _PATHS:
                return operation, found
        return _no_operation(method, path), {}

    def _perform(
        self,
        operation: Operation | Problem,
        event: dict[str, Any],
        parameters: dict[str, str],
        context: LambdaContext,
    ) -> Response:
        if isinstance(operation, Problem):
            raise operation
        request = request_of(event, parameters, context.get_remaining_time_in_millis() / 1000)
        return self._performers.of(operation)(request)

    def _refused(self, error: Exception, identity: str) -> Response:
        """What an error is answered with, once it is logged."""
        problem = problem_of(error)
        kind = problem.kind
        if kind.status >= _FAULT:
            from epochal.dynamo.loggable import told_of  # noqa: PLC0415  nothing but a failure needs it

            self._log.write("error", "failed", identity, problem=kind.name, **told_of(error))
        else:
            place = error.place if isinstance(error, UnknownName) else problem.members.get("field")
            self._log.write("info", "refused", identity, problem=kind.name, field=place)
        return problem_response(problem, identity)

    def _measure(self, operation: str, response: Response, seconds: float, identity: str) -> None:
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


_PATHS: Final = frozenset(each.path for each in OPERATIONS)
"""A path of its own comes before one that it fits as a parameter: `/events/query` is no event's id."""


def _no_operation(method: str, path: str) -> Problem:
    found = [each for each in OPERATIONS if each.parameters(path) is not None]
    if not found:
        return Problem(problems.ROUTE_NOT_FOUND)
    allowed = [each.method for each in found if each.path == path] or [each.method for each in found]
    if method in allowed:
        return Problem(problems.ROUTE_NOT_FOUND, "another function serves this operation")
    return Problem(problems.METHOD_NOT_ALLOWED, headers={"Allow": ", ".join(allowed)})


def _sent(response: Response, identity: str) -> dict[str, Any]:
    media = {} if response.body is None else {"Content-Type": response.media}
    return {
        "statusCode": response.status,
        "headers": {**media, **response.headers, "X-Correlation-Id": identity},
        "body": response.body or "",
        "isBase64Encoded": False,
    }
