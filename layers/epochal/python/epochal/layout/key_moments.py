"""The moment in an idempotency key that ends with a UUIDv7: when the key was made.

If stamps increase along a stream, every append under the key gets a stamp after that moment, whatever the clock says.
So a state from that moment or earlier cannot contain the append, and no record is needed; in a later state, the search
stops at the moment.
"""

from __future__ import annotations

import re
from typing import Final

from epochal.errors import InvalidInput, KeyAhead
from epochal.layout.streams import (
    NEVER,
)
from epochal.model.moments import PER_SECOND, Ticks, from_unix_nanoseconds

_TELLS: Final = re.compile(r"(?ai)([\da-f]{8})-([\da-f]{4})-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}\Z")

_AHEAD: Final = 300 * PER_SECOND
"""How far a key's moment may be ahead of the clock. Later events of the stream are stamped after it, too."""

_REFUSED_AHEAD: Final = 3_600 * PER_SECOND
"""A moment further ahead is refused: waiting for the clock would not help."""


def moment_of_key(key: str, now: Ticks) -> Ticks:
    """Return the time in a key that ends with a UUIDv7, `NEVER` for others; raise if it is too far ahead.

    Raises:
        KeyAhead: the moment is more than five minutes ahead.
        InvalidInput: it is more than an hour ahead.
    """
    if (match := _TELLS.search(key)) is None:
        return NEVER
    moment = from_unix_nanoseconds(int(match[1] + match[2], 16) * 1_000_000)
    if moment > now + _REFUSED_AHEAD:
        raise InvalidInput("idempotency_key", "must not contain a time more than an hour in the future")
    if moment > now + _AHEAD:
        raise KeyAhead((moment - now) // PER_SECOND)
    return moment
