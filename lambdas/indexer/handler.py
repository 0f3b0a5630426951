"""The indexer's entry point: wiring, and one call. What it does is `epochal.feed.indexer`."""

from __future__ import annotations

from epochal.http import coldstart  # before all others: see there

# isort: split
import os
from functools import partial
from typing import TYPE_CHECKING, Any

from epochal.dynamo.interpreter import open_deployment
from epochal.dynamo.lazy_clients import lazily
from epochal.dynamo.wire.sns import topic_client
from epochal.feed.indexer import Report
from epochal.feed.notices import Topic
from epochal.feed.stream_records import read_records
from epochal.hosting.metrics import metrics_of
from epochal.lazy_dataclasses import replace
from epochal.settings import Settings, service_name
from epochal.store.driver import SIDE_BY_SIDE

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from epochal.hosting.indexer_failure_notes import FailureNotes


def botocores() -> Any:
    """A client of the topic that takes as long to make as all else, for an environment that only botocore reads."""
    from epochal.dynamo.clients import service_client  # noqa: PLC0415

    return service_client("sns", retried=True)


service = service_name(os.environ, "indexer")
metrics = metrics_of(service)
settings = Settings.from_environment(os.environ)
topic = Topic(lazily(partial(topic_client, botocores)), settings.topic)
indexer = replace(open_deployment(settings, at_once=SIDE_BY_SIDE).indexer, publish=topic.publish)
indexer.register()
coldstart.over()
notes: FailureNotes | None = None


def failure_notes() -> FailureNotes:
    """What this process has put on record: a process that has never failed does without."""
    global notes  # noqa: PLW0603
    if notes is None:
        from epochal.hosting.indexer_failure_notes import FailureNotes  # noqa: PLC0415

        notes = FailureNotes(indexer=indexer)
    return notes


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """A batch of a stream of heads; answers with the records to be delivered again."""
    records = event["Records"]
    try:
        report = indexer.index(read_records(records), context.get_remaining_time_in_millis() / 1000)
    except Exception as error:
        failure_notes().raised(error, records)
        raise
    _emit(report)
    if report.failing or notes is not None:
        failure_notes().settle(report, records)
    return {"batchItemFailures": [{"itemIdentifier": number} for number in report.failed]}


def _emit(report: Report) -> None:
    partitions = report.by_partition.values()
    counts = {
        f"Indexed.{name}": sum(getattr(ingested, name) for ingested in partitions)
        for name in ("events", "healed", "pruned")
    }
    counts |= {"Indexed.setAside": report.set_aside, "Notified": report.notified}
    failed = report.notice_error is not None
    metrics.add(
        times={"Indexer.rest": report.rested * 1_000} if report.rested else {},
        counts={**counts, "Notified.failed": failed},
        urgent=report.set_aside > 0 or failed,
    )
    causes: list[tuple[str, Exception]] = [
        ("records could not be indexed, and come again", each) for each in report.errors
    ]
    if report.notice_error is not None:
        causes.append(("reactions could not be notified", report.notice_error))
    if causes:
        from aws_lambda_powertools import Logger  # noqa: PLC0415  nothing but a failure needs it

        from epochal.dynamo.loggable_errors import log_fields  # noqa: PLC0415

        for what, cause in causes:
            Logger(service=service).error(what, extra=log_fields(cause))
