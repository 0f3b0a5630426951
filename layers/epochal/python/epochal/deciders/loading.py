"""Loads states: from the store, from the cache, or by assumption.

    REQUIRE_LOAD   reads the head in one request, and brings the cached state up to date with newer events
    ALLOW_LAG      the same by an eventually consistent read, for half the read units
    AllowStale     takes the cached state, if it is young enough, without a request; else as REQUIRE_LOAD
    ASSUME_EMPTY   takes the initial state, without a request

A state that was not read, or that may lag, is unconfirmed. A decision on an unconfirmed state is confirmed by an append
on its token, or by a read.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import Final, Generic, TypeVar

from epochal.deciders.cache import Cache, CachedState
from epochal.deciders.folding import Folder, Loaded
from epochal.errors import (
    CorruptData,
    EventsPruned,
    InvalidInput,
    MissingBody,
    OutcomeUndetermined,
    UnknownType,
)
from epochal.layout import decision_keys
from epochal.layout.decision_keys import DecisionKey
from epochal.layout.streams import Head
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.kinds import must_be_seconds
from epochal.model.outcomes import Appended, Undetermined
from epochal.model.tokens import Token
from epochal.plan.ops import Steps
from epochal.store.answers import token_of

S = TypeVar("S")
T = TypeVar("T")
E = TypeVar("E")


class Load(Enum):
    """The ways to load a state: by a strongly consistent read, by one that may lag, or as that of a new stream."""

    REQUIRED = "required"
    ALLOW_LAG = "allow_lag"
    ASSUME_EMPTY = "assume_empty"


REQUIRE_LOAD: Final = Load.REQUIRED
ALLOW_LAG: Final = Load.ALLOW_LAG
ASSUME_EMPTY: Final = Load.ASSUME_EMPTY


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowStale:
    """Load option: take the state from the cache, even if it is not the latest; a decision on it only conflicts sooner.

    Attributes:
        max_age: maximum number of seconds since the state was known to be the latest; None for any age.
    """

    max_age: float | None = None

    def __post_init__(self) -> None:
        if self.max_age is not None:
            must_be_seconds(self.max_age, "max_age")

    def accepts(self, age: float) -> bool:
        """Return whether a state may be used that was known to be the latest `age` seconds ago.

        Args:
            age: age of the state in seconds.
        """
        return self.max_age is None or age <= self.max_age


def check_load(how: object) -> None:
    """Raise `InvalidInput` unless a caller's `load` is one of the ways to load a state."""
    if not isinstance(how, Load | AllowStale):
        shown = repr(how) if isinstance(how, str | int | None) else type(how).__name__
        raise InvalidInput(
            "load", f"must be REQUIRE_LOAD, ALLOW_LAG, ASSUME_EMPTY or AllowStale(…), not {shown[:64]}"
        )


@dataclass(frozen=True, kw_only=True)
class Loader(Generic[S, E]):
    """Loads states of one kind through a cache."""

    folder: Folder[S, E]
    cache: Cache | None

    def load(self, stream: str, how: Load | AllowStale, latest: Token | None = None) -> Loaded[S]:
        """Load a stream's state in the requested way: from the store, the cache, or by assumption.

        A state that is older than the stream's token `latest` is not returned: the store is read instead, since an
        append on that state would be refused.
        """
        check_load(how)
        if how is ASSUME_EMPTY and latest is None:
            return Loaded(state=self.folder.begin(), known_head=None, confirmed=False, begun=self.now())
        entry = None if self.cache is None else self.cache.get(self._key(stream), self.now())
        cached: Loaded[S] | None = None
        if entry is not None:
            cached = Loaded(
                state=entry.state,
                known_head=entry.token,
                low_water=entry.low_water,
                confirmed=False,
                begun=entry.begun,
            )
            is_accepted = isinstance(how, AllowStale) and how.accepts(self.now() - entry.as_of)
            if is_accepted and not _is_older(entry.token, latest):
                return cached
        if how is ALLOW_LAG:
            loaded = self.read_lagging(stream, cached)
            if not _is_older(token_of(loaded.known_head), latest):
                return loaded
        return self.read(stream, cached)

    def read_lagging(self, stream: str, before: Loaded[S] | None = None) -> Loaded[S]:
        """Load a state by an eventually consistent read, or a consistent one if it fails; or return `before`.

        `before` is returned if it is later than what the store returns. What is read eventually consistently is
        unconfirmed, and not cached, because it may be of any age; what a decision on it leads to is cached.
        """
        begun = self.now()
        folder = replace(self.folder, consistent=False)
        head = folder.streams.head(stream, consistent=False, whole=self._needs_all(before))
        if before is not None and before.version > (0 if head is None else head.version):
            return before
        try:
            loaded = folder.load(stream, head, before)
        except (CorruptData, EventsPruned, MissingBody, UnknownType):
            # An old head may need what has been pruned, or replaced, since.
            return self.read(stream, before)
        return replace(loaded, confirmed=False, begun=begun if before is None else before.begun)

    def read(self, stream: str, before: Loaded[S] | None = None) -> Loaded[S]:
        """Load the latest state from the store, reusing the one `before` if that saves work."""
        as_of = self.now()
        head = self.folder.streams.head(stream, whole=self._needs_all(before))
        return self.make_state(stream, head, before, as_of)

    def make_state(self, stream: str, head: Head | None, before: Loaded[S] | None, as_of: float) -> Loaded[S]:
        """Make the state at a head that was read at `as_of` or later, and cache it."""
        begun = as_of if before is None else before.begun
        loaded = replace(self.folder.load(stream, head, before), begun=begun)
        self.keep(stream, loaded, as_of)
        return loaded

    def begin_decision(self, key: DecisionKey, loaded: Loaded[S]) -> Loaded[S] | Appended:
        """Start a decision under a key: return the state to decide on, or an earlier decision's result."""
        as_of = self.now()
        outcome = self._run_lookup(key, decision_keys.begin_decision(key, loaded.known_head))
        if isinstance(outcome, Appended):
            return outcome
        return self.make_state(key.stream, outcome.head, loaded, as_of) if outcome.read else loaded

    def resume_decision(
        self, key: DecisionKey | None, before: Loaded[S], loaded: Loaded[S]
    ) -> Loaded[S] | Appended:
        """Look under the key for an earlier decision; return its outcome, or the newer state to decide on."""
        if key is None:
            return loaded
        outcome = self._run_lookup(
            key, decision_keys.resume_decision(key, before.known_head, loaded.known_head)
        )
        return outcome if isinstance(outcome, Appended) else loaded

    def _run_lookup(self, key: DecisionKey, steps: Steps[Appended | Undetermined | T]) -> Appended | T:
        """Run the steps of a key's lookup; raise `OutcomeUndetermined` if its outcome cannot be known."""
        outcome = self.folder.streams.driver.run(steps)
        if isinstance(outcome, Undetermined):
            raise OutcomeUndetermined(key.stream, outcome.first)
        return outcome

    def keep(self, stream: str, loaded: Loaded[S], as_of: float) -> None:
        """Cache a state, if there is a cache and the state's stream exists."""
        token = token_of(loaded.known_head)
        if self.cache is not None and token is not None:
            entry = CachedState(
                state=loaded.state, token=token, low_water=loaded.low_water, as_of=as_of, begun=loaded.begun
            )
            self.cache.put(self._key(stream), entry)

    def _needs_all(self, before: Loaded[S] | None) -> bool:
        """Return whether all events of a stream are needed to make its state."""
        return before is None and self.folder.access.every_event_counts

    def now(self) -> float:
        """Return the reading of the store's clock in seconds."""
        return self.folder.streams.driver.clock()

    def _key(self, stream: str) -> Hashable:
        """Return the cache key, which distinguishes stores and kinds of state, so that deciders can share a cache."""
        kind, streams = self.folder, self.folder.streams
        rules = (kind.initial, kind.evolve, kind.codec, kind.access, kind.forget_pruned)
        return (stream, streams.driver.execute, streams.table, rules)


def _is_older(token: Token | None, latest: Token | None) -> bool:
    """Return whether a state's token, None without a stream, is older than the stream's latest one that is known."""
    if latest is None or token is None:
        return latest is not None
    return token.version < latest.version or (token.version == latest.version and token.etag != latest.etag)
