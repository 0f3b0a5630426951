"""The progress of a consumer group in one partition, as a value, and how its streams are shared among members.

    checkpoint   every event before it is handled, except those of parked streams
    parked       streams set aside after failures: the first index of each that is not handled
    ahead        streams handled further than the checkpoint shows: the next index of each
    trying       streams whose events a process handles one by one, and how often it has begun to
    unmet        categories that were asked for when the group began, and that have had no stream yet
    unmet_types  types of events, in the same way
    paused       since when its processes handle nothing; empty if they are not paused
    shares       the checkpoint of each member, if a group has several; `checkpoint` is the least of them
    by           the pattern by which its streams are shared among members
    generation   a number that each reset changes, stored as `resets`: after one, a member does not repeat a commit
                 whose response was lost, and a replay does not count what it handled before. It is random, since a
                 group that is deleted and begins again needs another number: it is drawn when a group of several
                 members begins, else when the group first parks a stream
    reads        the categories and types that its reaction asks for, as of its last write; the lag counts only these

Within a partition, streams are shared among members by hashes of their names, or of a part of their names. Each member
has a checkpoint and sees its own part of the state; all parts are in one item. More partitions would do the same, but
they need another index, and every group would have them. Each member reads the whole index, and only its own streams.

    another number of members    a member begins at the least checkpoint of those that had its streams
    another pattern              every member begins at the least checkpoint of all
    two members commit           the later commit is refused, and is repeated on the state that the other has written
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

from epochal.index.checkpoints import BEGINNING, Checkpoint
from epochal.lazy_dataclasses import dataclass, field, replace

MAX_READS: Final = 300
"""Largest bytes of the names of categories and types that a reaction reads. More are not stored, since every commit
writes them."""


class Reads(NamedTuple):
    """The categories and event types that a reaction asks for; None for all."""

    categories: tuple[str, ...] | None
    types: tuple[str, ...] | None

    @classmethod
    def of(cls, categories: Collection[str] | None, types: Collection[str] | None) -> Reads | None:
        """Return the categories and types to record; None if they are everything, or too long to store."""
        size = sum(len(name.encode()) for names in (categories, types) for name in names or ())
        if (categories is None and types is None) or size > MAX_READS:
            return None
        return cls(*(None if names is None else tuple(sorted(names)) for names in (categories, types)))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState:
    """How far a group has come in one partition.

    The maps go from stream to index, or to the number of attempts. `unmet` are categories, `unmet_types` event types.
    """

    checkpoint: Checkpoint = BEGINNING
    parked: Mapping[str, int] = field(default_factory=dict)
    ahead: Mapping[str, int] = field(default_factory=dict)
    trying: Mapping[str, int] = field(default_factory=dict)
    unmet: tuple[str, ...] = ()
    unmet_types: tuple[str, ...] = ()
    paused: str = ""
    shares: tuple[Checkpoint, ...] = ()
    by: str = ""
    generation: int = field(default=0, compare=False)
    reads: Reads | None = field(default=None, compare=False)

    def next_of(self, stream: str) -> int:
        """Return the index below which a stream's events are known to be handled."""
        return self.ahead.get(stream, 0)

    @property
    def sharing(self) -> Sharing:
        """How streams were divided among members when the state was written."""
        return Sharing(len(self.shares) or 1, self.by)

    def checkpoint_of(self, stream: str) -> Checkpoint:
        """Return the checkpoint of the member to which a stream belonged."""
        return self.shares[self.sharing.share_of(stream)] if self.shares else self.checkpoint


MAX_MEMBERS: Final = 64


class Unit(NamedTuple):
    """The work of one member: its share of a partition's streams, out of `Sharing.members`."""

    partition: int
    share: int = 0

    def __str__(self) -> str:
        return f"{self.partition}/{self.share}" if self.share else str(self.partition)


@dataclass(frozen=True, slots=True)
class Sharing:
    """How a group's streams are divided among its members.

    Attributes:
        members: number of members.
        by: regular expression. The part of a stream's name that its group matches decides to which member the stream
            belongs; without a pattern or a match, the whole name does.
    """

    members: int = 1
    by: str = ""

    def units(self, partition: int) -> list[Unit]:
        """Return the units of work of a partition, one for each member."""
        return [Unit(partition, share) for share in range(self.members)]

    def share_of(self, stream: str) -> int:
        """Return the number of the member to which a stream belongs."""
        if self.members == 1:
            return 0
        match = re.search(self.by, stream) if self.by else None
        key = stream if match is None else match[1] or ""
        # Other bytes than those that say which partition a stream is in.
        return int.from_bytes(hashlib.sha256(key.encode()).digest()[4:8], "big") * self.members >> 32

    def checkpoint(self, state: GroupState, share: int) -> Checkpoint:
        """Return the least checkpoint of the stored shares that a member's share overlaps; else the group's.

        Shares are ranges of hashes, so a member whose share was part of a larger one goes on where that was.
        """
        stored = len(state.shares)
        if not stored or state.by != self.by:
            return state.checkpoint
        first, end = share * stored // self.members, -(-(share + 1) * stored // self.members)
        return min(state.shares[first:end])

    def part(self, state: GroupState, share: int) -> GroupState:
        """Return the state as one member sees it; entries of other members' streams do not concern it."""
        if self.members == 1 and not state.shares:
            return state
        return replace(state, checkpoint=self.checkpoint(state, share), shares=(), by="")

    def joined(self, state: GroupState, part: GroupState, share: int) -> GroupState:
        """Return the group's state with one member's part put into it."""
        if self.members == 1:
            return part

        def both(others: Mapping[str, int], own: Mapping[str, int]) -> dict[str, int]:
            """Merge a map: entries of the member's streams from its part, all others from the state."""
            merged = {name: value for name, value in others.items() if self.share_of(name) != share}
            return merged | {name: value for name, value in own.items() if self.share_of(name) == share}

        shares = [self.checkpoint(state, member) for member in range(self.members)]
        shares[share] = part.checkpoint
        return GroupState(
            checkpoint=min(shares),
            parked=both(state.parked, part.parked),
            ahead=both(state.ahead, part.ahead),
            trying=both(state.trying, part.trying),
            unmet=tuple(name for name in state.unmet if name in part.unmet),
            unmet_types=tuple(name for name in state.unmet_types if name in part.unmet_types),
            paused=state.paused,
            shares=tuple(shares),
            by=self.by,
            generation=state.generation,
            reads=part.reads,
        )

    def is_others(self, before: GroupState, after: GroupState, share: int) -> bool:
        """Return whether a change between two states concerns only other members."""
        if self.members == 1 or (before.paused, before.generation) != (after.paused, after.generation):
            return False
        was, now = (self.joined(GroupState(), self.part(state, share), share) for state in (before, after))
        return was == now


def with_generation_drawn(state: GroupState, fresh: Callable[[int], bytes]) -> GroupState:
    """Return the state with a generation; if it has none, a random one is drawn."""
    return state if state.generation else replace(state, generation=int.from_bytes(fresh(6), "big"))
