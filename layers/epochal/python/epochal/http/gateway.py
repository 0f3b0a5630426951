"""API Gateway around the operations: Powertools' resolver, logs and metrics. The only module that knows AWS Lambda.

Whatever an operation raises ends here as a problem document. Errors that nobody foresaw are logged with their trace
under the request's correlation id, and answered without one. Logs and metrics name operations, never streams: names
may identify people; and they have only our own words of errors (`dynamo.loggable`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver
from aws_lambda_powertools.event_handler.api_gateway import Response as Answer
from aws_lambda_powertools.metrics import MetricUnit

from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.http import problems
from epochal.http.fields import UnknownName
from epochal.http.operation import Function, Operation, Response
from epochal.http.operations import OPERATIONS, operations_of
from epochal.http.performers import Performers
from epochal.http.problems import Problem, problem_of, problem_response
from epochal.http.transport import correlation_id, is_request, request_of
from epochal.settings import service_name

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

Handler = Callable[[dict[str, Any], "LambdaContext"], dict[str, Any]]

NAMESPACE: Final = "Epochal"

_FAULT: Final = 500


def serve(function: Function, deployment: Deployment) -> Handler:
    """The entry point of a function: its operations on a deployment."""
    return _Gateway(function, deployment).handle


class _Gateway:
    def __init__(self, function: Function, deployment: Deployment) -> None:
        self._operations = operations_of(function)
        self._performers = Performers(deployment)
        service = service_name(os.environ, function)
        self._logger = Logger(service=service)
        self._metrics = Metrics(namespace=NAMESPACE, service=service)
        self._app = APIGatewayHttpResolver()
        for operation in self._operations:
            if not operation.rare:
                self._performers.of(operation)
            path = operation.path.replace("{", "<").replace("}", ">")
            self._app.route(path, operation.method)(self._matched(operation))
        self._app.not_found(self._unmatched)

    def handle(self, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        """Answer one event."""
        if not is_request(event):
            return self._foreign(context.aws_request_id)
        self._logger.set_correlation_id(correlation_id(event))
        answer: dict[str, Any] = self._app.resolve(event, context)
        return answer

    def _matched(self, operation: Operation) -> Callable[..., Answer[str]]:
        def answer(**_: str) -> Answer[str]:
            # The resolver's patterns overlook a line break at the end of a path: a policy could be evaded with it.
            path = operation.parameters(self._app.current_event.path)
            return self._answer(None, {}) if path is None else self._answer(operation, path)

        return answer

    def _unmatched(self, _: Exception) -> Answer[str]:
        """A path that the resolver's patterns do not match: the operation says which rule its names break."""
        event = self._app.current_event
        for operation in self._operations:
            path = operation.parameters(event.path)
            if path is not None and operation.method == event.http_method:
                return self._answer(operation, path)
        return self._answer(None, {})

    def _foreign(self, identity: str) -> dict[str, Any]:
        """What did not come through the gateway is refused in its own form."""
        self._logger.set_correlation_id(identity)
        error = InvalidInput("event", "must be a request as API Gateway sends it, in payload format 2.0")
        problem = problem_of(error)
        self._log(error, problem)
        response = problem_response(problem, identity)
        self._measure("none", response, identity, 0.0)
        headers = {"Content-Type": response.media, "X-Correlation-Id": identity}
        return {
            "statusCode": response.status,
            "headers": headers,
            "body": response.body,
            "isBase64Encoded": False,
        }

    def _answer(self, operation: Operation | None, path: dict[str, str]) -> Answer[str]:
        started = time.perf_counter()
        identity = correlation_id(self._app.current_event.raw_event)
        try:
            response = self._perform(operation, path)
        except Exception as error:  # noqa: BLE001  the last stop: beyond it the gateway would show the error's text
            problem = problem_of(error)
            self._log(error, problem)
            response = problem_response(problem, identity)
        name = "none" if operation is None else operation.name
        self._measure(name, response, identity, time.perf_counter() - started)
        return _sent(response, identity)

    def _perform(self, operation: Operation | None, path: dict[str, str]) -> Response:
        event, context = self._app.current_event, self._app.lambda_context
        if operation is None:
            raise _no_operation(event.http_method, event.path)
        request = request_of(event.raw_event, path, context.get_remaining_time_in_millis() / 1000)
        return self._performers.of(operation)(request)

    def _log(self, error: Exception, problem: Problem) -> None:
        kind = problem.kind
        if kind.status >= _FAULT:
            from epochal.dynamo.loggable import told_of  # noqa: PLC0415  nothing but a failure needs it

            self._logger.error("failed", extra={"problem": kind.name, **told_of(error)})
        else:
            place = error.place if isinstance(error, UnknownName) else problem.members.get("field")
            self._logger.info("refused", problem=kind.name, field=place)

    def _measure(self, operation: str, response: Response, identity: str, seconds: float) -> None:
        """One line of embedded metrics, which serves as the request's log line too."""
        self._metrics.add_dimension(name="operation", value=operation)
        self._metrics.add_metric(name="Latency", unit=MetricUnit.Milliseconds, value=seconds * 1000)
        self._metrics.add_metric(name="Faults", unit=MetricUnit.Count, value=int(response.status >= _FAULT))
        for name, value in response.figures.items():
            self._metrics.add_metric(name=name, unit=MetricUnit.Count, value=value)
        self._metrics.add_metadata(key="correlation_id", value=identity)
        self._metrics.add_metadata(key="status", value=response.status)
        self._metrics.flush_metrics()


def _no_operation(method: str, path: str) -> Problem:
    allowed = [each.method for each in OPERATIONS if each.parameters(path) is not None]
    if not allowed:
        return Problem(problems.ROUTE_NOT_FOUND)
    if method in allowed:
        return Problem(problems.ROUTE_NOT_FOUND, "another function serves this operation")
    return Problem(problems.METHOD_NOT_ALLOWED, headers={"Allow": ", ".join(allowed)})


def _sent(response: Response, identity: str) -> Answer[str]:
    return Answer(
        status_code=response.status,
        content_type=None if response.body is None else response.media,
        body=response.body or "",
        headers={**response.headers, "X-Correlation-Id": identity},
    )
