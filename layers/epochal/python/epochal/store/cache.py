"""A bounded cache of states, in this process.

Entries are states with the token of the head they were made from. The cache decides nothing: the store confirms each
entry that is used, by a read of the head or by a write on the entry's etag. So an old entry costs a request and is
never wrong, and any number of processes may each have a cache. The least recently used entry goes first.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import inf
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final

from epochal.errors import InvalidInput
from epochal.model.versions import Token

_SHARED: Final = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
"""Objects that states refer to, and which do not count towards their size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedState:
    """A state of a stream.

    Attributes:
        token: of the Tip it was made from.
        low_water: what was pruned then. Where more has been pruned since, the state is not used, so that a cache never
            changes what a load finds.
        as_of: clock reading at which the state was the latest, or later.
        begun: clock reading before the first of its events was read; states that are moved on keep it.
    """

    state: Any
    token: Token
    low_water: int
    as_of: float
    begun: float


class Cache:
    """States by key; safe under threads, and shared by as many deciders as one likes.

    States are handed out as they are, to several threads at once: `evolve` and `decide` must not change them.

    Args:
        entries: at most so many states.
        max_bytes: at most so much by `size_of`; None for no such bound. A state that alone exceeds it is not kept.
        max_seconds: what was read longer ago is read again; None for never. For states that hold what was unsealed: so
            long after a subject was forgotten its data may still be in one (docs/guide/forgetting.md).
        size_of: bytes of a state, about; None reckons all that a state refers to, in time proportional to it.
    """

    def __init__(
        self,
        *,
        entries: int = 10_000,
        max_bytes: int | None = None,
        max_seconds: float | None = None,
        size_of: Callable[[Any], int] | None = None,
    ) -> None:
        if entries < 1 or (max_bytes is not None and max_bytes < 1):
            raise InvalidInput("cache", "must have room for at least 1 entry and 1 byte")
        if max_seconds is not None and not max_seconds > 0:
            raise InvalidInput("cache", "must keep states for more than 0 seconds")
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
        """Bytes of all states, about; 0 where they are not bounded, and so not reckoned."""
        return self._bytes

    def get(self, key: Hashable, now: float = -inf) -> CachedState | None:
        """The entry under `key`, unless it is too old by the clock reading `now`; this counts as its use."""
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
        """Keep an entry, unless there is a later one."""
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
        """Forget everything: for tests, and after a table was restored to an earlier time."""
        with self._lock:
            self._entries.clear()
            self._bytes = 0

    def _overfull(self) -> bool:
        return len(self._entries) > self._most or (
            self._max_bytes is not None and self._bytes > self._max_bytes
        )

    def _drop(self, key: Hashable) -> None:
        _, size = self._entries.pop(key, (None, 0))
        self._bytes -= size


def _later(one: CachedState, other: CachedState) -> bool:
    return (one.token.version, one.as_of) > (other.token.version, other.as_of)


def approximate_size(value: Any) -> int:
    """Bytes of a value and all it refers to, classes and functions aside; what occurs twice counts once."""
    seen: set[int] = set()
    total, pending = 0, [value]
    while pending:
        current = pending.pop()
        if id(current) not in seen and not isinstance(current, _SHARED):
            seen.add(id(current))
            total += sys.getsizeof(current)
            pending.extend(gc.get_referents(current))
    return total
