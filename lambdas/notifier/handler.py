"""The notifier's entry point: wiring, and one call. What it does is `epochal.indexer.notifier`."""

from __future__ import annotations

import os
from typing import Any

from aws_lambda_powertools import Metrics
from aws_lambda_powertools.metrics import MetricUnit

from epochal.dynamo.clients import sns_client
from epochal.dynamo.notices import Topic
from epochal.dynamo.records import read_records
from epochal.indexer.notifier import notices
from epochal.settings import Settings, service_name

metrics = Metrics(namespace="Epochal", service=service_name(os.environ, "notifier"))
topic = Topic(sns_client(), Settings.from_environment(os.environ).topic)


@metrics.log_metrics
def handler(event: dict[str, Any], _context: Any) -> None:
    """A batch of the index table's stream. What raises is delivered again: the topic drops what it has had."""
    found = notices(record.image for record in read_records(event["Records"]))
    metrics.add_metric(name="Notified", unit=MetricUnit.Count, value=topic.publish(found))
