"""The auditor's entry point: wiring, and one call. What it does is `epochal.care.auditor`."""

from __future__ import annotations

import os
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from epochal.care.auditor import Auditor
from epochal.care.catch_up import Mender
from epochal.dynamo.clients import dynamodb_client
from epochal.dynamo.interpreter import interpreter
from epochal.indexer.sources import sources_of
from epochal.settings import Settings, service_name
from epochal.store.driver import SIDE_BY_SIDE, Driver, Meter

SHARE = 0.4
"""Of the time there is, for looking; what is found takes the rest."""

service = service_name(os.environ, "auditor")
logger = Logger(service=service)
metrics = Metrics(namespace="Epochal", service=service)
settings = Settings.from_environment(os.environ)
auditor = Auditor(
    mender=Mender(
        driver=Driver(execute=interpreter(dynamodb_client()), meter=Meter(), at_once=SIDE_BY_SIDE),
        index_table=settings.index_table,
    ),
    sources=sources_of(settings),
)


@metrics.log_metrics
def handler(_event: dict[str, Any], context: Any) -> None:
    """A tick of the schedule."""
    audit = auditor.audit(context.get_remaining_time_in_millis() / 1000 * SHARE)
    for name in ("checked", "missing", "healed"):
        metrics.add_metric(name=f"Audit.{name}", unit=MetricUnit.Count, value=getattr(audit, name))
    metrics.add_metric(name="Audit.troubles", unit=MetricUnit.Count, value=len(audit.troubles))
    if audit.missing:
        logger.warning(
            "the index lacked events, which are indexed now", missing=audit.missing, healed=audit.healed
        )
    for trouble in audit.troubles:
        logger.error(trouble)
