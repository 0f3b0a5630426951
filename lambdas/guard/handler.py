"""The guard's entry point, which answers CloudFormation before a store's functions change. What it does is
`epochal.hosting.fixed_settings`.
"""

from __future__ import annotations

import os
from typing import Any

from epochal.hosting.custom_resource import respond


def handler(event: dict[str, Any], context: Any) -> None:
    """A store is deployed, changed or deleted."""

    def check() -> None:
        # Here, so that what fails of it is answered too.
        from epochal.dynamo.clients import service_client  # noqa: PLC0415
        from epochal.dynamo.interpreter import open_deployment  # noqa: PLC0415
        from epochal.hosting.fixed_settings import check_settings, is_rolling_back  # noqa: PLC0415
        from epochal.settings import Settings  # noqa: PLC0415

        try:
            deployment = open_deployment(Settings.from_environment(os.environ))
            seconds = context.get_remaining_time_in_millis() / 1000
            now, before = event["ResourceProperties"], event.get("OldResourceProperties", {})
            check_settings(now, before, deployment, seconds)
        except Exception:
            if not is_rolling_back(service_client("cloudformation", retried=True), event["StackId"]):
                raise

    respond(event, check)
