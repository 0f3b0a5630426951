"""Stream names: `Category-id`. Names that begin with `$` are the system's.

A name is a partition key and a path segment, so it is kept to characters that need no escaping in either.
"""

from __future__ import annotations

import re
from typing import Final, NewType

from epochal.errors import InvalidInput
from epochal.model.kinds import must_be

StreamName = NewType("StreamName", str)

TAG_STREAMS: Final = "$tag-"
"""The stream of a tag has this prefix and the tag as its name."""

MAX_TAG_BYTES: Final = 512

EVENT_IDS: Final = "$event-"
"""The record that says where the event of an id is has this prefix and the id as its key."""

SEALS: Final = "$seal"
"""The key of the item that holds the key of tokens' seals."""

MAX_NAME_BYTES: Final = 512
USER_NAME: Final = r"[A-Za-z0-9\-_.:~@+=]{1,512}"
"""The pattern of a user's stream name."""

_USER: Final = re.compile(USER_NAME, re.ASCII)


def stream_name(text: str, field: str = "stream") -> StreamName:
    """Parse a user's stream name.

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
        raise InvalidInput(field, f"must be at most {MAX_NAME_BYTES} bytes")
    raise InvalidInput(field, "may hold only ASCII letters, digits and - _ . : ~ @ + =")


def no_step(text: str, field: str) -> None:
    """Refuse a new name that HTTP clients take for a step in a path: they send `/streams/../events` as `/events`. What
    has such a name already can be read.
    """
    if text in (".", ".."):
        raise InvalidInput(field, "must not be . or .., which HTTP clients take for steps in a path")


def is_fed(name: str) -> bool:
    """Whether a stream is in the feed. Of the system's, tags are; an event under a reserved tag is under
    one of its own as well.
    """
    return not name.startswith("$") or (name.startswith(TAG_STREAMS) and name[len(TAG_STREAMS) :][:1] != "$")


def category_of(name: str) -> str:
    """What precedes the first `-`; the whole name where there is none."""
    return name.partition("-")[0]
