"""The notifier's entry point: wiring, and one call. What it does is `epochal.dynamo.notices`."""

from __future__ import annotations

import os
from typing import Any

from epochal.dynamo.clients import sns_client
from epochal.dynamo.notices import Topic, notices
from epochal.dynamo.records import read_records
from epochal.metrics import metrics_of
from epochal.settings import Settings, service_name

metrics = metrics_of(service_name(os.environ, "notifier"))
topic = Topic(sns_client(), Settings.from_environment(os.environ).topic)


def handler(event: dict[str, Any], _context: Any) -> None:
    """A batch of the index table's stream. What raises is delivered again: the topic drops what it has had."""
    found = notices(record.image for record in read_records(event["Records"]))
    metrics.add(counts={"Notified": topic.publish(found)})
