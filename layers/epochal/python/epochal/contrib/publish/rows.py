"""Events as rows of JSON, as many lines in one message as it should have bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from epochal.contrib.publish.cloudevents import Keep, Message, batches
from epochal.feed.history import FeedEvent, name_of
from epochal.lazy_dataclasses import replace

ROW_AT: Final = "row_at"
"""What a row that is sent has beside the columns of every row: where all of it is, as JSON, if it is too large for a
record. Its bodies are null then."""

_BODIES: Final = ("data", "data64", "metadata", "metadata64")

_RECORD: Final = 64 * 1024
"""Bytes of rows that go together: Firehose charges a record by 5 KB, begun ones too."""


def row_message(event: FeedEvent, source: str, keep: Keep, most: int) -> Message:
    """An event as a row of JSON; raises why it cannot be read."""
    from epochal.contrib.transfer.rows import as_json, row_of  # noqa: PLC0415  most functions that forward send no rows

    if event.fault is not None:
        raise event.fault
    row = as_json(row_of(event)) | {ROW_AT: None}
    text = _line(row)
    if len(text.encode()) > most:
        text = _line(row | dict.fromkeys(_BODIES) | {ROW_AT: keep(text.encode())})
    return Message(id=name_of(event), source=source, type=event.type, group=event.stream, text=text)


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def together(messages: Iterable[Message], size: int = _RECORD) -> Iterator[Message]:
    """Messages in their order, as many lines in one as it should have bytes."""
    for batch in batches(messages, events=size, size=size):
        yield replace(batch[0], text="\n".join(each.text for each in batch))
