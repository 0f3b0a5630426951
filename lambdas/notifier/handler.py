"""The notifier's entry point: wiring, and one call. What it does is `epochal.indexer.records`."""

from __future__ import annotations

import os
from typing import Any

from epochal.dynamo.clients import service_client
from epochal.indexer.records import Topic, notices, read_records
from epochal.metrics import metrics_of
from epochal.settings import Settings, service_name

metrics = metrics_of(service_name(os.environ, "notifier"))
topic = Topic(service_client("sns", retried=True), Settings.from_environment(os.environ).topic)


def handler(event: dict[str, Any], _context: Any) -> None:
    """A batch of the index table's stream. What raises is delivered again: the topic drops what it has had."""
    found = notices(record.image for record in read_records(event["Records"]))
    metrics.add(counts={"Notified": topic.publish(found)})
