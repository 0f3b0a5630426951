"""Sequence numbers of the last records that this process has put into a Kinesis stream, by partition key.

Kinesis promises that a record comes after another of its key only if its put names that one's number. What a process
does not know, such as numbers of before it began, is ordered by the time of arrival, which is then long ago.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

MOST: Final = 10_000
"""Keys that are kept: those that were used last. A number has 56 digits, so they take 2 MB."""


class SequenceNumbers:
    """Keeps the number of the last record of each partition key; threads may share it."""

    def __init__(self) -> None:
        self._numbers: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def last(self, key: str) -> str | None:
        """Return the number of the last record of a key, or None if it is not known."""
        with self._lock:
            return self._numbers.get(key)

    def keep(self, key: str, number: str) -> None:
        """Remember the number of a record as the last of its key, and forget the key that was used longest ago."""
        with self._lock:
            self._numbers[key] = number
            self._numbers.move_to_end(key)
            if len(self._numbers) > MOST:
                self._numbers.popitem(last=False)
