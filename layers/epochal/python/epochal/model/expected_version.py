"""What a writer expects of a stream: any version, no stream, some stream, an exact version, or an exact state."""

from __future__ import annotations

from enum import Enum
from typing import Final

from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass
from epochal.model.kinds import must_be, must_be_whole
from epochal.model.tokens import MAX_VERSION, Token


class Expected(Enum):
    """Expected versions that need no number: any, no stream, or an existing stream. A stream exists once anything was
    written to it, even if only unfolds.
    """

    ANY = "any"
    NO_STREAM = "no_stream"
    STREAM_EXISTS = "stream_exists"


ANY: Final = Expected.ANY
"""Expected version that accepts any stream, existing or not; only a deleted one is refused."""
NO_STREAM: Final = Expected.NO_STREAM
"""Expected version of a stream to which nothing has been written yet."""
STREAM_EXISTS: Final = Expected.STREAM_EXISTS
"""Expected version of a stream to which something has been written, even if only unfolds."""


@dataclass(frozen=True, slots=True)
class AtVersion:
    """Expects that the stream holds exactly `version` events, as in `AtVersion(2)`.

    Unfolds may have changed meanwhile.

    Attributes:
        version: number of events that the stream must have, 0 or more.
    """

    version: int

    def __post_init__(self) -> None:
        """Raise `InvalidInput` unless the version is an integer within bounds."""
        if isinstance(self.version, bool):
            raise InvalidInput("version", "must be a number, not bool")
        must_be(int, self.version, "version", "a number")
        if not 0 <= self.version <= MAX_VERSION:
            raise InvalidInput(
                "expected", f"must be a version from 0 to {MAX_VERSION:,}, got {self.version:,}"
            )


ExpectedVersion = Expected | AtVersion | Token
"""What a writer expects a stream's version to be; an append to a stream in another state is refused."""


def meets(expected: Expected | AtVersion, version: int | None) -> bool:
    """Return whether a stream at `version` (None: no stream) meets a writer's expectation."""
    match expected:
        case Expected.ANY:
            return True
        case Expected.NO_STREAM:
            return version is None
        case Expected.STREAM_EXISTS:
            return version is not None
        case AtVersion(version=required):
            return (version or 0) == required


def state_meets(expected: ExpectedVersion, version: int | None, etag: str | None) -> bool:
    """Return whether a stream at `version` with this etag (None: no stream) meets a writer's expectation."""
    if isinstance(expected, Token):
        return (version or 0) == expected.version and expected.etag in (None, etag)
    return meets(expected, version)


class Unread(Enum):
    """Marks a stream whose head has not been read."""

    UNREAD = "unread"


UNREAD: Final = Unread.UNREAD


def expected_head(expected: ExpectedVersion) -> Token | Unread | None:
    """Return what an expectation alone tells about the head: a token, None for no stream, or `UNREAD`."""
    if expected is NO_STREAM:
        return None
    return expected if isinstance(expected, Token) and expected.etag is not None else UNREAD


def check_expected(expected: object) -> None:
    """Raise `InvalidInput` unless a value is an expected version, such as `ANY` or a valid token.

    Anything else would always conflict.
    """
    must_be(
        (Expected, AtVersion, Token),
        expected,
        "expected",
        "ANY, NO_STREAM, STREAM_EXISTS, AtVersion(version=…) or a token",
    )
    if isinstance(expected, Token):
        must_be_whole(expected.version, "expected.version", 0, MAX_VERSION)
