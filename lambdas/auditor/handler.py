"""The auditor's entry point: wiring, and one call. What it does is `epochal.care.auditor`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from aws_lambda_powertools import Logger

from epochal.care.auditor import auditor_of
from epochal.dynamo.clients import service_client
from epochal.dynamo.interpreter import open_deployment
from epochal.feed.notices import Topic
from epochal.hosting.metrics import Metrics
from epochal.hosting.services import disabled
from epochal.index.checkpoints import Checkpoint
from epochal.settings import Settings, service_name
from epochal.store.driver import SIDE_BY_SIDE

SHARE = 0.4
"""Of the time there is, for looking; what is found takes the rest."""

service = service_name(os.environ, "auditor")
logger = Logger(service=service)
metrics = Metrics(service)
settings = Settings.from_environment(os.environ)
auditor = auditor_of(settings, open_deployment(settings, at_once=SIDE_BY_SIDE).driver)


def publish(positions: Mapping[int, Checkpoint]) -> None:
    """Tell reactions of what was missing, which is seldom worth a client."""
    Topic(service_client("sns", retried=True), settings.topic).publish(positions)


auditor = replace(auditor, mender=replace(auditor.mender, publish=publish))


def handler(_event: dict[str, Any], context: Any) -> None:
    """A tick of the schedule."""
    audit = auditor.audit(context.get_remaining_time_in_millis() / 1000 * SHARE)
    counts = {f"Audit.{name}": getattr(audit, name) for name in ("checked", "missing", "healed", "pruned")}
    metrics.add(counts={**counts, "Audit.troubles": len(audit.troubles)})
    if audit.missing:
        logger.warning(
            "the index lacked events, which are indexed now", missing=audit.missing, healed=audit.healed
        )
    for trouble in audit.troubles:
        logger.error(trouble)
    look_at_mappings()


def look_at_mappings() -> None:
    """A mapping that is disabled has no metric that would tell."""
    found = disabled(service_client("lambda"), settings.mappings) if settings.mappings else []
    metrics.add(counts={"Audit.disabled": len(found)})
    for mapping in found:
        logger.error("a mapping is disabled or gone", mapping=mapping)
