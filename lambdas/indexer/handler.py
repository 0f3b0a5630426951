"""The indexer's entry point: wiring, and one call. What it does is `epochal.indexer.indexer`."""

from __future__ import annotations

from epochal.http import coldstart  # before all others: see there

# isort: split
import os
from typing import Any

from epochal.dynamo.deployed import deployed
from epochal.indexer.indexer import Report
from epochal.indexer.records import read_records
from epochal.metrics import metrics_of
from epochal.settings import Settings, service_name
from epochal.store.driver import SIDE_BY_SIDE

service = service_name(os.environ, "indexer")
metrics = metrics_of(service)
indexer = deployed(Settings.from_environment(os.environ), at_once=SIDE_BY_SIDE).indexer
indexer.register()
coldstart.over()


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """A batch of a stream of heads; answers with the records to be delivered again."""
    report = indexer.index(read_records(event["Records"]))
    _emit(report)
    return {"batchItemFailures": [{"itemIdentifier": number} for number in report.failed]}


def _emit(report: Report) -> None:
    partitions = report.by_partition.values()
    counts = {
        f"Indexed.{name}": sum(getattr(ingested, name) for ingested in partitions)
        for name in ("events", "healed", "pruned")
    }
    metrics.add(counts={**counts, "Indexed.setAside": report.set_aside}, urgent=report.set_aside > 0)
    if report.errors:
        from aws_lambda_powertools import Logger  # noqa: PLC0415  nothing but a failure needs it

        from epochal.dynamo.aws_errors import told_of  # noqa: PLC0415

        for error in report.errors:
            Logger(service=service).error(
                "records could not be indexed, and come again", extra=told_of(error)
            )
