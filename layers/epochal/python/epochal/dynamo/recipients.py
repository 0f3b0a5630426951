"""Where published events go: a bus of EventBridge, a queue, a topic, or an HTTPS address.

Each takes a batch, in order, or raises; the whole batch may be sent again, since its events are named. A FIFO queue or
topic has then taken the events before one that it has not taken, and none after it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from epochal.dynamo.aws_errors import translated
from epochal.dynamo.clients import service_client
from epochal.dynamo.lazy_clients import lazily
from epochal.dynamo.webhook import Proof, to_webhook
from epochal.errors import InvalidInput, Unavailable
from epochal.reactions.cloudevents import CloudEvent

Send = Callable[[Sequence[CloudEvent]], None]

DETAIL_TYPE: Final = 128
"""Characters that a bus takes of a type; the event itself has all of it."""

CONTENT_TYPE: Final = "application/cloudevents+json"


def recipient(kind: str, place: str, *, client: Any = None, proof: Proof | None = None) -> Send:
    """What sends to a `bus` (its name or ARN), a `queue` (its URL), a `topic` (its ARN) or a `webhook` (its address,
    to which `proof` tells who sends).

    Raises:
        InvalidInput: there is no such kind.
    """
    match kind:
        case "bus":
            return _to_bus(client or lazily(lambda: service_client("events")), place)
        case "queue":
            return _to_queue(client or lazily(lambda: service_client("sqs")), place)
        case "topic":
            return _to_topic(client or lazily(lambda: service_client("sns")), place)
        case "webhook":
            return to_webhook(place, proof or Proof())
        case _:
            raise InvalidInput("to", "must be bus, queue, topic or webhook")


def _to_bus(client: Any, bus: str) -> Send:
    def send(events: Sequence[CloudEvent]) -> None:
        entries = [
            {
                "EventBusName": bus,
                "Source": each.source,
                "DetailType": each.type[:DETAIL_TYPE],
                "Detail": each.text,
            }
            for each in events
        ]
        with translated("PutEvents"):
            answer = client.put_events(Entries=entries)
        _all_taken([each["ErrorCode"] for each in answer["Entries"] if "ErrorCode" in each], events)

    return send


def _to_queue(client: Any, url: str) -> Send:
    def send(events: Sequence[CloudEvent]) -> None:
        for part in _requests(events, url):
            entries = [
                {"Id": str(number), "MessageBody": each.text, **_attributes(), **_ordered(each, url)}
                for number, each in enumerate(part)
            ]
            with translated("SendMessageBatch"):
                answer = client.send_message_batch(QueueUrl=url, Entries=entries)
            _all_taken([each["Code"] for each in answer.get("Failed", ())], part)

    return send


def _to_topic(client: Any, arn: str) -> Send:
    def send(events: Sequence[CloudEvent]) -> None:
        for part in _requests(events, arn):
            entries = [
                {"Id": str(number), "Message": each.text, **_attributes(each), **_ordered(each, arn)}
                for number, each in enumerate(part)
            ]
            with translated("PublishBatch"):
                answer = client.publish_batch(TopicArn=arn, PublishBatchRequestEntries=entries)
            _all_taken([each["Code"] for each in answer.get("Failed", ())], part)

    return send


def _attributes(event: CloudEvent | None = None) -> dict[str, Any]:
    """By which receivers know what a message is; subscriptions of a topic filter by the type."""
    told = {"content-type": CONTENT_TYPE} | ({"type": event.type} if event else {})
    return {
        "MessageAttributes": {
            name: {"DataType": "String", "StringValue": value} for name, value in told.items()
        }
    }


def _requests(events: Sequence[CloudEvent], place: str) -> Iterable[Sequence[CloudEvent]]:
    """What is sent at once: all, but in order one by one, since of a batch a later event may be taken alone."""
    return ([each] for each in events) if _keeps_order(place) else [events]


def _keeps_order(place: str) -> bool:
    return place.endswith(".fifo")


def _ordered(event: CloudEvent, place: str) -> dict[str, str]:
    """In a FIFO queue or topic, a stream keeps its order, and what was sent already is dropped."""
    if not _keeps_order(place):
        return {}
    names = {"MessageGroupId": event.group, "MessageDeduplicationId": f"{event.source} {event.id}"}
    return {name: hashlib.sha256(each.encode()).hexdigest() for name, each in names.items()}


def _all_taken(failed: Sequence[str], events: Sequence[CloudEvent]) -> None:
    if failed:
        raise Unavailable(f"{len(failed)} of {len(events)} events were not taken: {failed[0]}")
