"""SQS's batches without botocore, whose client takes longer to create than all else that a reaction does first.

Requests and answers are JSON, as AWS's JSON protocol has them:
<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference>. A request whose answer is lost is sent again: a
FIFO queue drops what it has had, and to change a message's visibility twice does no more than to change it once.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from epochal.dynamo.wire.batches import BatchClient, BatchResult, Dialect
from epochal.dynamo.wire.environment import Service, find_client_patch, service_from_environment

MEDIA: Final = "application/x-amz-json-1.0"


def queue_client(otherwise: Callable[[], Any]) -> Any:
    """Return a light SQS client if the environment is all it needs, else the client that `otherwise` makes."""
    service = None if find_client_patch() else service_from_environment(os.environ, service="sqs")
    return otherwise() if service is None else LightQueues(service)


class LightQueues:
    """Sends batches to SQS queues with the interface of boto3's client. Safe to share between threads."""

    def __init__(
        self,
        service: Service,
        *,
        sleep: Callable[[float], object] = time.sleep,
        luck: Callable[[], float] = random.random,
    ) -> None:
        """Prepare a batch client for SQS; tests replace `sleep` and `luck`."""
        dialect = Dialect(
            name="sqs", what="the queue", media=MEDIA, results=_parse_results, error=_parse_error
        )
        self._batches = BatchClient(service, dialect, sleep=sleep, luck=luck)

    def send_message_batch(self, *, QueueUrl: str, Entries: Sequence[Mapping[str, Any]]) -> BatchResult:  # noqa: N803  # boto3's
        """Send a batch of messages; return which entries were accepted and which failed.

        Raises:
            Unavailable: throttling, an outage, or no answer of SQS's, however often it was tried.
            InvalidRequest: SQS takes the request for malformed, or denies it.
        """
        return self._batch("SendMessageBatch", QueueUrl, Entries)

    def change_message_visibility_batch(
        self,
        *,
        QueueUrl: str,  # noqa: N803  boto3's
        Entries: Sequence[Mapping[str, Any]],  # noqa: N803
    ) -> BatchResult:
        """Change for how long messages stay invisible; return which entries succeeded and which failed.

        Raises:
            Unavailable, InvalidRequest: as `send_message_batch`.
        """
        return self._batch("ChangeMessageVisibilityBatch", QueueUrl, Entries)

    def _batch(self, action: str, url: str, entries: Sequence[Mapping[str, Any]]) -> BatchResult:
        """Encode a batch of entries for a queue, and send it."""
        body = json.dumps({"QueueUrl": url, "Entries": [*entries]}).encode()
        return self._batches.send(action, f"AmazonSQS.{action}", body, entries)


def _parse_error(answer: bytes) -> tuple[str, str]:
    """Return code and message of an error answer."""
    fields = _parse_fields(answer)
    code = str(fields.get("__type", "")).rpartition("#")[2]
    return code, str(fields.get("message", fields.get("Message", "")))


def _parse_results(answer: bytes) -> BatchResult | None:
    """Parse which entries SQS accepted and which failed; None if something other than SQS answered."""
    fields = _parse_fields(answer)
    results = {kind: fields.get(kind, []) for kind in ("Successful", "Failed")}
    sound = all(
        isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)
        for entries in results.values()
    )
    return results if sound else None


def _parse_fields(answer: bytes) -> dict[str, Any]:
    """Parse an answer into a JSON object; return an empty one if it is not one."""
    try:
        fields = json.loads(answer)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}
