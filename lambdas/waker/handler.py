"""The waker's entry point, which answers CloudFormation when a reaction is deployed. What it does is
`epochal.hosting.first_wakeups`.

A reaction's own function would not answer where it cannot be imported: neither its creation nor the deletion when that
is rolled back.
"""

from __future__ import annotations

import os
from typing import Any

from epochal.hosting.custom_resource import respond


def handler(event: dict[str, Any], context: Any) -> None:
    """A reaction is deployed, changed or deleted."""

    def wake() -> None:
        # Here, so that what fails of it is answered too.
        from epochal.dynamo.clients import service_client  # noqa: PLC0415
        from epochal.dynamo.interpreter import open_deployment  # noqa: PLC0415
        from epochal.hosting.first_wakeups import wake_all  # noqa: PLC0415
        from epochal.hosting.wakeup_queue import Queue  # noqa: PLC0415
        from epochal.settings import Settings  # noqa: PLC0415

        queue = Queue(service_client("sqs", retried=True), event["ResourceProperties"]["Queue"])
        feed = open_deployment(Settings.from_environment(os.environ)).feed
        wake_all(queue, feed, context.get_remaining_time_in_millis() / 1000)

    respond(event, wake)
