"""Events of the feed as CloudEvents 1.0, in JSON.

    id          stream and index, or a tagged event's own: the same however often an event is sent
    source      the store; with `id` it names the event, so receivers can tell repetitions
    subject     the stream; a tagged event has its tags as an extension, with commas between them
    time        as stored, where it is a time as RFC 3339 has it
    data        JSON as it is, to the digit; anything else as `data_base64`, and so what no reader is sure to take:
                names that appear twice, numbers beyond all bounds, lists in lists without end
    dataref     in place of either, where a message would be too large: an object that holds the content

https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md; `dataref`, `partitionkey` and `sequence` are
documented extensions of it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from epochal.codec import json
from epochal.feed.results import FeedEvent

BATCH: Final = 10
"""Messages of one request to a bus, a queue or a topic."""

BYTES: Final = 240_000
"""Of a message, and of all messages of a request: all take 256 KiB, with what is around them."""

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)

_ESCAPED: Final = {0xFFFE: "\\ufffe", 0xFFFF: "\\uffff"}
"""What JSON may hold as it is, and a message of a queue or a topic may not."""

Keep = Callable[[bytes], str]
"""Puts content where it can be got from, and says where: `s3://bucket/key`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudEvent:
    """An event on its way out.

    Attributes:
        id: names it, within its source.
        source: where it says that it comes from.
        type: the event's.
        group: what it must keep its place in: its stream.
        text: all of it, as JSON.
    """

    id: str
    source: str
    type: str
    group: str
    text: str

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.text.encode())


def cloud_event(event: FeedEvent, source: str, keep: Keep) -> CloudEvent:
    """An event as it is sent. One that cannot be read raises why; `keep` is called where its content is too large."""
    if event.fault is not None:
        raise event.fault
    id_ = event.id or f"{event.stream}@{event.index}"
    head = _head(event, source, id_)
    whole = _text(head, _content(event.content))
    if len(whole.encode()) > BYTES:
        whole = _text(head | {"dataref": keep(event.content)})
    return CloudEvent(id=id_, source=source, type=event.type, group=event.stream, text=whole)


def batches(events: Iterable[CloudEvent]) -> Iterator[list[CloudEvent]]:
    """Events in their order, as many together as one request takes."""
    batch: list[CloudEvent] = []
    for event in events:
        if batch and (len(batch) == BATCH or sum(each.size for each in batch) + event.size > BYTES):
            yield batch
            batch = []
        batch.append(event)
    if batch:
        yield batch


def _head(event: FeedEvent, source: str, id_: str) -> dict[str, Any]:
    attributes = {
        "specversion": "1.0",
        "id": id_,
        "source": source,
        "type": event.type,
        "subject": event.stream,
        "time": event.timestamp if _TIME.fullmatch(event.timestamp) else None,
        "partitionkey": event.stream,
        # Compared as text, so of one length.
        "sequence": f"{event.index:020d}",
        "correlationid": event.correlation_id,
        "causationid": event.causation_id,
        "tags": ",".join(map(_listed, event.tags)) or None,
    }
    return {name: value for name, value in attributes.items() if value is not None}


def _listed(tag: str) -> str:
    """A tag among others: `%2C` is a comma of its own."""
    return tag.replace("%", "%25").replace(",", "%2C")


def _content(data: bytes) -> str:
    """The members that hold it, as JSON: it is written as it was read, for a parser would change it."""
    if not data:
        return ""
    try:
        json.loads(data)
    except ValueError:
        encoded = base64.b64encode(data).decode()
        return f',"datacontenttype":"application/octet-stream","data_base64":"{encoded}"'
    return f',"datacontenttype":"application/json","data":{data.removeprefix(json.MARK).decode().strip()}'


def _text(attributes: dict[str, Any], members: str = "") -> str:
    return f"{json.dumps(attributes).decode()[:-1]}{members}}}".translate(_ESCAPED)
