"""The auditor's entry point: wiring, and one call. What it does is `epochal.care.auditor`."""

from __future__ import annotations

from epochal.http import coldstart  # before all others: see there

# isort: split
import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from epochal.care.auditor import auditor_of
from epochal.dynamo.interpreter import open_deployment
from epochal.dynamo.lazy_clients import lazily
from epochal.dynamo.wire.sns import topic_client
from epochal.feed.notices import Topic
from epochal.hosting.function_logs import logger_of
from epochal.hosting.metrics import Metrics
from epochal.hosting.services import disabled
from epochal.index.checkpoints import Checkpoint
from epochal.lazy_dataclasses import replace
from epochal.settings import Settings, service_name
from epochal.store.driver import SIDE_BY_SIDE

SHARE = 0.4
"""Of the time there is, for looking; what is found takes the rest."""


def botocores(service: str, *, retried: bool = False) -> Any:
    """A client of botocore's, which takes as long to make as all else."""
    from epochal.dynamo.clients import service_client  # noqa: PLC0415

    return service_client(service, retried=retried)


service = service_name(os.environ, "auditor")
logger = lazily(partial(logger_of, service))
metrics = Metrics(service)
settings = Settings.from_environment(os.environ)
auditor = auditor_of(settings, open_deployment(settings, at_once=SIDE_BY_SIDE).driver)


def publish(positions: Mapping[int, Checkpoint]) -> None:
    """Tell reactions of what was missing, which is seldom worth a client."""
    Topic(topic_client(partial(botocores, "sns", retried=True)), settings.topic).publish(positions)


auditor = replace(auditor, mender=replace(auditor.mender, publish=publish))
coldstart.over()


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
    found = disabled(botocores("lambda"), settings.mappings) if settings.mappings else []
    metrics.add(counts={"Audit.disabled": len(found)})
    for mapping in found:
        logger.error("a mapping is disabled or gone", mapping=mapping)
