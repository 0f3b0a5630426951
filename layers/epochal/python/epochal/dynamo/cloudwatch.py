"""Metrics as CloudWatch has them: sums of periods, of several metrics in one request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from epochal.dynamo.aws_errors import Codes, translated

CLOUDWATCH: Final = Codes(
    denied=frozenset({"AccessDenied", "AccessDeniedException", "InvalidClientTokenId", "ExpiredToken"}),
    busy=frozenset({"Throttling", "ThrottlingException", "LimitExceededException"}),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """What is asked for."""

    namespace: str
    name: str
    dimensions: Mapping[str, str]


Measure = Callable[[Sequence[Metric], float, float, int], "list[dict[float, float]]"]
"""Sums of metrics between two times, in seconds since 1970, by the beginnings of periods of so many seconds."""


def measuring(client: Any) -> Measure:
    """Asks with a client of CloudWatch's. What it raises when called: `Refused`, `InvalidRequest`, `Unavailable`."""

    def measure(metrics: Sequence[Metric], start: float, end: float, period: int) -> list[dict[float, float]]:
        with translated("GetMetricData", codes=CLOUDWATCH):
            answer = client.get_metric_data(
                MetricDataQueries=[_query(number, metric, period) for number, metric in enumerate(metrics)],
                StartTime=datetime.fromtimestamp(start, UTC),
                EndTime=datetime.fromtimestamp(end, UTC),
            )
        found: dict[str, dict[float, float]] = {}
        for result in answer["MetricDataResults"]:
            sums = zip((at.timestamp() for at in result["Timestamps"]), result["Values"], strict=True)
            found.setdefault(result["Id"], {}).update(sums)
        return [found.get(f"m{number}", {}) for number in range(len(metrics))]

    return measure


def _query(number: int, metric: Metric, period: int) -> dict[str, Any]:
    dimensions = [{"Name": name, "Value": value} for name, value in metric.dimensions.items()]
    named = {"Namespace": metric.namespace, "MetricName": metric.name, "Dimensions": dimensions}
    return {"Id": f"m{number}", "MetricStat": {"Metric": named, "Period": period, "Stat": "Sum"}}
