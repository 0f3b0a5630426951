"""Events as rows of JSON, as many lines in one message as it should have bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from epochal.contrib.publish.cloudevents import Keep, Message, batches
from epochal.feed.events import FeedEvent, name_of
from epochal.lazy_dataclasses import replace

ROW_AT: Final = "row_at"
"""Column that rows sent to a delivery stream have besides the usual ones: the address of the whole row as JSON.

It is null unless the row is too large for a record; the row's bodies are null then.
"""

_BODIES: Final = ("data", "data64", "metadata", "metadata64")

_RECORD: Final = 64 * 1024
"""Bytes of rows that are put into one record: Firehose charges for records in steps of 5 KB."""


def row_message(event: FeedEvent, source: str, keep: Keep, most: int) -> Message:
    """Make the message of an event as a row of JSON; one beyond `most` bytes goes to `keep`.

    A row of more than `most` bytes is stored with `keep`, and sent with its address and without its bodies.

    Raises:
        CorruptData, MissingBody, DeniedBody: the event cannot be read.
    """
    from epochal.contrib.transfer.rows import as_json, row_of  # noqa: PLC0415  most functions that forward send no rows

    if event.fault is not None:
        raise event.fault
    row = as_json(row_of(event)) | {ROW_AT: None}
    text = _line(row)
    if len(text.encode()) > most:
        text = _line(row | dict.fromkeys(_BODIES) | {ROW_AT: keep(text.encode())})
    return Message(id=name_of(event), source=source, type=event.type, group=event.stream, text=text)


def _line(row: Mapping[str, Any]) -> str:
    """Return a row as one line of JSON."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def together(messages: Iterable[Message], size: int = _RECORD) -> Iterator[Message]:
    """Join messages in their order into messages of several lines, each of at most `size` bytes.

    A single message that is larger stays alone.
    """
    for batch in batches(messages, events=size, size=size):
        yield replace(batch[0], text="\n".join(row.text for row in batch))
