"""A bounded cache of states in this process.

Entries are states with the token of the head that they were made from. The cache decides nothing: the store confirms
each entry that is used, by a read of the head or by a write on the entry's etag. So an outdated entry costs a request
but never gives a wrong result, and any number of processes may each have a cache. The least recently used entry is
evicted first.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from math import inf
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final

from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass
from epochal.model.kinds import must_be_seconds, must_be_whole
from epochal.model.plain_functions import must_be_plain
from epochal.model.tokens import Token

_SHARED: Final = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
"""Objects that states refer to, and which do not count towards their size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedState:
    """A state of a stream in the cache.

    Attributes:
        state: the state.
        token: token of the stream's head at the version that the state was made from.
        low_water: index below which events had been pruned when the state was cached. If more has been pruned since,
            the state is not used, so that a cache never changes what a load finds.
        as_of: clock reading in seconds; the state is at least as new as the stream was then.
        begun: clock reading in seconds before the first event of the state was read; it stays when later events are
            folded in.
    """

    state: Any
    token: Token
    low_water: int
    as_of: float
    begun: float


class Cache:
    """Keeps states in memory by key; safe under threads, and may be shared by any number of deciders.

    States are handed out as they are, to several threads at once: `evolve` and `decide` must not change them.

    Args:
        entries: largest number of states.
        max_bytes: largest total of `size_of` over all states; None for no limit. A state that exceeds it alone is not
            kept.
        max_seconds: age in seconds after which a state is read again; None for no limit. Set it for states with
            unsealed data: the data of a forgotten subject may stay in a state for this long (docs/guide/forgetting.md).
        size_of: function that estimates a state's bytes; None counts all objects that the state refers to, in time
            proportional to their number.
    """

    def __init__(
        self,
        *,
        entries: int = 10_000,
        max_bytes: int | None = None,
        max_seconds: float | None = None,
        size_of: Callable[[Any], int] | None = None,
    ) -> None:
        """Check the limits, and begin with an empty cache."""
        must_be_whole(entries, "entries", 1, sys.maxsize)
        if max_bytes is not None:
            must_be_whole(max_bytes, "max_bytes", 1, sys.maxsize)
        if max_seconds is not None:
            must_be_seconds(max_seconds, "max_seconds")
            if max_seconds <= 0:
                raise InvalidInput("max_seconds", f"must be more than 0 seconds, got {max_seconds}")
        if size_of is not None:
            must_be_plain(size_of, "size_of")
        self._entries: OrderedDict[Hashable, tuple[CachedState, int]] = OrderedDict()
        self._most = entries
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds
        self._size_of = size_of or approximate_size
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def bytes(self) -> int:
        """Approximate size of all cached states in bytes; 0 if it is not limited, and so not measured."""
        return self._bytes

    def get(self, key: Hashable, now: float = -inf) -> CachedState | None:
        """Return the entry under `key` and mark it as used; drop it and return None if it is too old at `now`.

        Args:
            key: key that `put` kept the entry under.
            now: reading of the clock in seconds, of the same clock as `begun` of the entries.
        """
        with self._lock:
            if key not in self._entries:
                return None
            entry, _ = self._entries[key]
            if self._max_seconds is not None and now - entry.begun >= self._max_seconds:
                self._drop(key)
                return None
            self._entries.move_to_end(key)
            return entry

    def put(self, key: Hashable, entry: CachedState) -> None:
        """Keep an entry unless a later one is cached; evict the least recently used if there is no room.

        Args:
            key: key of the entry.
            entry: state, with the version that it has.
        """
        size = 0 if self._max_bytes is None else self._size_of(entry.state)
        with self._lock:
            if key in self._entries and _later(self._entries[key][0], entry):
                return
            self._drop(key)
            self._entries[key] = (entry, size)
            self._bytes += size
            while self._overfull():
                self._drop(next(iter(self._entries)))

    def clear(self) -> None:
        """Remove everything: for tests, and after a table was restored to an earlier time."""
        with self._lock:
            self._entries.clear()
            self._bytes = 0

    def _overfull(self) -> bool:
        """Return whether the cache has more entries or bytes than allowed."""
        return len(self._entries) > self._most or (
            self._max_bytes is not None and self._bytes > self._max_bytes
        )

    def _drop(self, key: Hashable) -> None:
        """Remove an entry, if there is one."""
        _, size = self._entries.pop(key, (None, 0))
        self._bytes -= size


def _later(one: CachedState, other: CachedState) -> bool:
    """Return whether the first state is later than the other."""
    return (one.token.version, one.as_of) > (other.token.version, other.as_of)


def approximate_size(value: Any) -> int:
    """Estimate the bytes of a value and all it refers to, without classes and functions.

    An object that is referred to twice counts once.
    """
    seen: set[int] = set()
    total, pending = 0, [value]
    while pending:
        current = pending.pop()
        if id(current) not in seen and not isinstance(current, _SHARED):
            seen.add(id(current))
            total += sys.getsizeof(current)
            pending.extend(gc.get_referents(current))
    return total
