"""What a writer expects of a stream, held to the head that is there."""

from __future__ import annotations

from enum import Enum
from typing import Final

from epochal.layout.streams import Head
from epochal.model.versions import NO_STREAM, AtVersion, Expected, ExpectedVersion, Token


class Unread(Enum):
    """The head has not been looked at."""

    UNREAD = "unread"


UNREAD: Final = Unread.UNREAD


def told(expected: ExpectedVersion) -> Token | Unread | None:
    """What an expectation alone says of the head."""
    if expected is NO_STREAM:
        return None
    return expected if isinstance(expected, Token) and expected.etag is not None else UNREAD


def accepts(expected: ExpectedVersion, head: Head | None) -> bool:
    """Whether a head is what a writer expects."""
    if head is not None and head.deleted:
        return False
    version = 0 if head is None else head.version
    match expected:
        case Expected.ANY:
            return True
        case Expected.NO_STREAM:
            return head is None
        case Expected.STREAM_EXISTS:
            return head is not None
        case AtVersion(version=wanted):
            return version == wanted
        case Token(version=wanted, etag=etag):
            return version == wanted and (etag is None or (head is not None and head.etag == etag))
