"""Leases without threads and without SQS, for tests of what functions do under them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from epochal.hosting.leases import Beat


def once(renew: Callable[[], object]) -> Beat:
    """Return a lease that is never renewed, because no time passes in the test."""
    renew()
    return Beat(wait=lambda: None, stop=lambda: None)


class Visibility:
    """A client of SQS that changes for how long messages are hidden.

    Attributes:
        hidden: seconds by receipt, of each request.
    """

    def __init__(self) -> None:
        self.hidden: list[dict[str, int]] = []

    def change_message_visibility_batch(
        self,
        *,
        QueueUrl: str,  # noqa: N803  boto3's
        Entries: list[dict[str, Any]],  # noqa: N803
    ) -> dict[str, Any]:
        assert QueueUrl == "queue"
        assert len({each["Id"] for each in Entries}) == len(Entries) > 0
        self.hidden.append({each["ReceiptHandle"]: each["VisibilityTimeout"] for each in Entries})
        return {"Successful": [{"Id": each["Id"]} for each in Entries], "Failed": []}
