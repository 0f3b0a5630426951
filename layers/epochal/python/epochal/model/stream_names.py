"""Names of streams: `Category-id`. Names that begin with `$` are reserved for the system, and are listed here.

A name is a partition key and a segment of a path, so it may have only characters that need no escaping in either.
"""

from __future__ import annotations

import re
from typing import Final, NewType

from epochal.errors import InvalidInput
from epochal.model.kinds import must_be

StreamName = NewType("StreamName", str)

TAG_STREAMS: Final = "$tag-"
"""The stream of a tag has this prefix and the tag as its name."""

EVENT_IDS: Final = "$event-"
"""The record that says where the event of an id is has this prefix and the id as its key."""

SEALS: Final = "$seal"
"""The key of the item that holds the key of tokens' seals."""

TIMER_SET: Final = "$timer-set"
TIMER_CANCELLED: Final = "$timer-cancelled"
TIMER_FIRED: Final = "$timer-fired"
TIMERS: Final = frozenset((TIMER_SET, TIMER_CANCELLED, TIMER_FIRED))
"""Types of what is stored of timers (`scheduling`). No codec knows them: what reads by codec passes them over."""

MAX_NAME_BYTES: Final = 512
USER_NAME: Final = r"[A-Za-z0-9\-_.:~@+=]{1,512}"
"""The pattern of a user's stream name."""

_USER: Final = re.compile(USER_NAME, re.ASCII)


def stream_name(text: str, field: str = "stream") -> StreamName:
    """Return a user's stream name as a `StreamName`; raise `InvalidInput` if it is malformed or reserved.

    Raises:
        InvalidInput: `field` is empty, over 512 bytes, reserved (`$...`), or has other characters than
            ASCII letters, digits and ``- _ . : ~ @ + =``.
    """
    must_be(str, text, field, "text")
    if _USER.fullmatch(text):
        return StreamName(text)
    if not text:
        raise InvalidInput(field, "must not be empty")
    if text.startswith("$"):
        raise InvalidInput(field, "names that begin with $ are reserved for the system")
    if len(text.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
        size = len(text.encode("utf-8", "surrogatepass"))
        raise InvalidInput(field, f"must be at most {MAX_NAME_BYTES} bytes, got {size}")
    raise InvalidInput(field, "may hold only ASCII letters, digits and - _ . : ~ @ + =")


def no_step(text: str, field: str) -> str:
    """Return a stream, tag or other name; raise `InvalidInput` if it is `.` or `..`, steps in a path.

    HTTP clients take these for steps in a path: they send `/streams/../events` as `/events`. What has such a name
    already can be read.
    """
    if text in (".", ".."):
        raise InvalidInput(field, "must not be . or .., which HTTP clients take for steps in a path")
    return text


def is_fed(name: str) -> bool:
    """Return whether the events of a stream are in the feed.

    Of the system's streams, those of tags are; an event under a reserved tag is also under a tag of its own.
    """
    return not name.startswith("$") or (name.startswith(TAG_STREAMS) and name[len(TAG_STREAMS) :][:1] != "$")


def category_of(name: str) -> str:
    """Return the category of a stream: what precedes the first `-`, or the whole name."""
    return name.partition("-")[0]
