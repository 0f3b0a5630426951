"""Requests to other services: functions and their mappings, deployed reactions, and metrics of CloudWatch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from epochal.dynamo.aws_errors import translate_errors
from epochal.errors import InvalidRequest
from epochal.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from mypy_boto3_lambda.client import LambdaClient

Invoke = Callable[[str, dict[str, Any]], dict[str, Any]]


def invoker(client: Any) -> Invoke:
    """Make a function that invokes Lambda functions with a client of Lambda's.

    Raises, when called:
        Refused: the credentials may not.
        InvalidRequest: there is no such function, or it failed.
        Unavailable: throttling, an outage, or no answer in time.
    """

    def invoke(function: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Invoke a function with a payload, and return its answer; raise `InvalidRequest` if it fails."""
        with translate_errors("Invoke"):
            answer = client.invoke(FunctionName=function, Payload=json.dumps(payload).encode())
            reply = json.loads(answer["Payload"].read())
        if answer.get("FunctionError"):
            raise InvalidRequest(
                "Invoke", str(reply.get("errorType", "")), str(reply.get("errorMessage", reply))
            )
        return dict(reply)

    return invoke


def reactions_of(client: Any, prefix: str) -> list[str]:
    """Return the names of a deployment's reactions, from the names of up to a thousand queues.

    Args:
        client: an SQS client.
        prefix: how the names of the deployment's functions begin, as `epochal-dev`.

    Raises:
        Refused: the credentials may not list queues.
        Unavailable: throttling, an outage, or no answer in time.
    """
    begins = f"{prefix}-reaction-"
    with translate_errors("ListQueues"):
        urls = client.list_queues(QueueNamePrefix=begins, MaxResults=1000).get("QueueUrls", ())
    names = {url.rpartition("/")[2].removeprefix(begins).removesuffix(".fifo") for url in urls}
    return sorted(name for name in names if name.removesuffix("-failed") not in names - {name})


IDLE: Final = ("Disabling", "Disabled", "Deleting")
"""States of a mapping that delivers nothing any more, which no metric shows. A mapping in an update still delivers."""


def disabled(client: LambdaClient, mappings: Iterable[str]) -> list[str]:
    """Return the mappings that deliver no changes to their function any more, or do not exist."""
    return [mapping for mapping in mappings if _state(client, mapping) in IDLE]


def _state(client: LambdaClient, mapping: str) -> str:
    """Return the state of an event source mapping; `Disabled` if there is no such mapping."""
    try:
        with translate_errors("GetEventSourceMapping"):
            return client.get_event_source_mapping(UUID=mapping)["State"]
    except InvalidRequest as error:
        if error.code != "ResourceNotFoundException":
            raise
        return "Disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric of CloudWatch: its namespace, name and dimensions."""

    namespace: str
    name: str
    dimensions: Mapping[str, str]


Measure = Callable[[Sequence[Metric], float, float, int], "list[dict[float, float]]"]
"""Function that returns sums of metrics between two times, in seconds since 1970, by the beginnings of periods of so
many seconds."""


def measuring(client: Any) -> Measure:
    """Make a function that asks CloudWatch for the sums of metrics, with one of its clients.

    Raises, when called:
        Refused: the credentials may not read metrics.
        InvalidRequest: CloudWatch takes the request for wrong.
        Unavailable: throttling, an outage, or no answer in time.
    """

    def measure(metrics: Sequence[Metric], start: float, end: float, period: int) -> list[dict[float, float]]:
        """Return each metric's sums between two times, by the beginnings of periods."""
        with translate_errors("GetMetricData"):
            answer = client.get_metric_data(
                MetricDataQueries=[_query(number, metric, period) for number, metric in enumerate(metrics)],
                StartTime=datetime.fromtimestamp(start, UTC),
                EndTime=datetime.fromtimestamp(end, UTC),
            )
        sums_by_query: dict[str, dict[float, float]] = {}
        for result in answer["MetricDataResults"]:
            sums = zip((moment.timestamp() for moment in result["Timestamps"]), result["Values"], strict=True)
            sums_by_query.setdefault(result["Id"], {}).update(sums)
        return [sums_by_query.get(f"m{number}", {}) for number in range(len(metrics))]

    return measure


def _query(number: int, metric: Metric, period: int) -> dict[str, Any]:
    """Build the part of a `GetMetricData` request that asks for the sums of one metric."""
    dimensions = [{"Name": name, "Value": value} for name, value in metric.dimensions.items()]
    fields = {"Namespace": metric.namespace, "MetricName": metric.name, "Dimensions": dimensions}
    return {"Id": f"m{number}", "MetricStat": {"Metric": fields, "Period": period, "Stat": "Sum"}}
