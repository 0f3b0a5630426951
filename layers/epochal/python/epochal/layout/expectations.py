"""What a writer expects of a stream, held to the head that is there."""

from __future__ import annotations

from enum import Enum
from typing import Final

from epochal.layout.streams import Head
from epochal.model.versions import NO_STREAM, ExpectedVersion, Token, meets


class Unread(Enum):
    """The head has not been looked at."""

    UNREAD = "unread"


UNREAD: Final = Unread.UNREAD


def told(expected: ExpectedVersion) -> Token | Unread | None:
    """What an expectation alone says of the head."""
    if expected is NO_STREAM:
        return None
    return expected if isinstance(expected, Token) and expected.etag is not None else UNREAD


def version_of(known: Head | Token | None) -> int:
    """The next index, as far as the writer knows."""
    return 0 if known is None else known.version


def accepts(expected: ExpectedVersion, head: Head | None) -> bool:
    """Whether a head is what a writer expects."""
    if head is not None and head.deleted:
        return False
    if isinstance(expected, Token):
        version, etag = (0, None) if head is None else (head.version, head.etag)
        return version == expected.version and (expected.etag is None or etag == expected.etag)
    return meets(expected, None if head is None else head.version)
