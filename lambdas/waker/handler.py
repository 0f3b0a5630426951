"""The waker's entry point, which answers CloudFormation when a reaction is deployed. What it does is
`epochal.hosting.waker`.

A reaction's own function would not answer where it cannot be imported: neither its creation nor the deletion when that
is rolled back.
"""

from __future__ import annotations

from typing import Any

from epochal.hosting.custom_resource import respond


def handler(event: dict[str, Any], context: Any) -> None:
    """A reaction is deployed, changed or deleted."""

    def wake() -> None:
        # Here, so that what fails of it is answered too.
        from epochal.hosting.waker import wake_all  # noqa: PLC0415

        wake_all(event["ResourceProperties"]["Queue"], context.get_remaining_time_in_millis() / 1000)

    respond(event, wake)
