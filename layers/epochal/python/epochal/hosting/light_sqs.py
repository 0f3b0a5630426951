"""The client of SQS with which functions send wake-ups and keep leases."""

from __future__ import annotations

from typing import Any

from epochal.dynamo.wire.sqs import queue_client


def light_sqs_client() -> Any:
    """Create a client of SQS, without botocore if the environment has the whole configuration."""
    return queue_client(_botocores_sqs)


def _botocores_sqs() -> Any:
    """Create botocore's client of SQS."""
    from epochal.dynamo.clients import service_client  # noqa: PLC0415  mostly not needed

    return service_client("sqs", retried=True)
