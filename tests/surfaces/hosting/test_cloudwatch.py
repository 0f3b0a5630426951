"""Asking CloudWatch: sums come back by metric, and a refusal is told."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from botocore.stub import ANY, Stubber

from epochal.dynamo.clients import service_client
from epochal.errors import Refused
from epochal.hosting.services import Metric, measuring

METRICS = [
    Metric(namespace="AWS/DynamoDB", name="ConsumedWriteCapacityUnits", dimensions={"TableName": table})
    for table in ("streams", "index")
]


def test_sums_are_answered_in_the_order_that_they_were_asked_for() -> None:
    client = service_client("cloudwatch", region="us-east-1")
    at = datetime.fromtimestamp(600, UTC)
    found = [
        {"Id": "m1", "Timestamps": [at], "Values": [7.0]},
        {"Id": "m0", "Timestamps": [], "Values": []},
    ]
    with Stubber(client) as stub:
        stub.add_response(
            "get_metric_data",
            {"MetricDataResults": found},
            {"MetricDataQueries": ANY, "StartTime": datetime.fromtimestamp(0, UTC), "EndTime": at},
        )
        assert measuring(client)(METRICS, 0, 600, 300) == [{}, {600.0: 7.0}]


def test_who_may_not_ask_is_told() -> None:
    client = service_client("cloudwatch", region="us-east-1")
    with Stubber(client) as stub:
        stub.add_client_error("get_metric_data", "AccessDenied", "not authorized", 403)
        with pytest.raises(Refused, match="GetMetricData was denied: not authorized"):
            measuring(client)(METRICS, 0, 600, 300)
