"""What an import knows of each stream, in bounded memory: of recent streams here, of the others in a file that goes
with the run.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from epochal.model.versions import Token

RECENT: Final = 20_000
"""Streams that are kept in memory: some 20 MB."""

_TABLE: Final = "CREATE TABLE s (name TEXT PRIMARY KEY, first, next, digest, stopped) WITHOUT ROWID"
_KEEP: Final = "REPLACE INTO s VALUES (?, ?, ?, ?, ?)"


@dataclass(slots=True)
class Account:
    """A stream, as far as the source was read.

    Attributes:
        first: the index of its first event in the source.
        next: the index that its next event must have.
        digest: of its events, each with that of those before.
        stopped: why no more of it is brought in; empty where it goes on.
        token: of the stream, as this run has left it; None where that is not known any more.
    """

    first: int = 0
    next: int = 0
    digest: bytes = b""
    stopped: str = ""
    token: Token | None = None

    def add(self, digest: bytes) -> None:
        """Count an event."""
        self.digest = chained(self.digest, digest)
        self.next += 1


def chained(before: bytes, event: bytes) -> bytes:
    """The digest of a stream with one more event."""
    return hashlib.sha256(before + event).digest()


class Ledger:
    """Accounts by their streams. Of one thread."""

    def __init__(self, recent: int = RECENT) -> None:
        self._most = recent
        self._recent: OrderedDict[str, Account] = OrderedDict()
        self._file = sqlite3.connect("")  # a file without a name, which grows out of memory when it must
        self._file.execute(_TABLE)
        self._streams = 0

    def __len__(self) -> int:
        return self._streams

    def of(self, stream: str) -> Account:
        """The account of a stream, which may be changed until the next one is asked for."""
        found = self._recent.get(stream)
        if found is not None:
            self._recent.move_to_end(stream)
            return found
        query = "SELECT first, next, digest, stopped FROM s WHERE name = ?"
        kept = self._file.execute(query, (stream,)).fetchone() if self._streams > len(self._recent) else None
        found = Account() if kept is None else Account(*kept)
        self._streams += kept is None
        self._recent[stream] = found
        if len(self._recent) > self._most:
            self._keep(*self._recent.popitem(last=False))
        return found

    def all(self) -> Iterator[tuple[str, Account]]:
        """Every stream by its name."""
        for stream, account in self._recent.items():
            self._keep(stream, account)
        for name, *kept in self._file.execute("SELECT * FROM s ORDER BY name"):
            yield name, Account(*kept)

    def _keep(self, stream: str, account: Account) -> None:
        kept = (account.first, account.next, account.digest, account.stopped)
        self._file.execute(_KEEP, (stream, *kept))
