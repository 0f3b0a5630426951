"""Wake-ups of a deployed group after an operator's command, so that it takes up the command at once."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from epochal.dynamo.aws_errors import translate_errors
from epochal.errors import InvalidRequest
from epochal.feed.results import PartitionTail
from epochal.hosting.wakeup_queue import Queue, steered_wake_ups

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient


def deployed_queue(client: SQSClient, prefix: str, group: str) -> Queue | None:
    """Find the queue that wakes a deployed reaction; None where no reaction of that name is deployed.

    Args:
        prefix: how the names of the deployment's functions begin, as `epochal-dev`.

    Raises:
        Refused: the credentials may not look for it.
        Unavailable: throttling, an outage, or no answer in time.
    """
    try:
        with translate_errors("GetQueueUrl"):
            return Queue(
                client, client.get_queue_url(QueueName=f"{prefix}-reaction-{group}.fifo")["QueueUrl"]
            )
    except InvalidRequest as error:
        if not error.code.endswith(("NonExistentQueue", "QueueDoesNotExist")):
            raise
        return None


def wake_group(client: SQSClient, prefix: str, group: str, tails: Iterable[PartitionTail]) -> bool:
    """Wake the reaction of a group in every partition, for a command; return False if it is not deployed.

    Unlike the wake-ups of a schedule, no two of these count as one: the one before may have found that the group is
    paused.

    Args:
        tails: as `feed.partitions()` has them.

    Raises:
        Refused, Unavailable: as `deployed_queue`, or the wake-up was not taken.
    """
    queue = deployed_queue(client, prefix, group)
    if queue is not None:
        queue.send(steered_wake_ups(tails, f"steered-{time.time_ns()}"))
    return queue is not None
