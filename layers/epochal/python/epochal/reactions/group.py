"""A process as a member of a consumer group: it reads and replaces the group's state, and knows where a new group
begins.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final, Literal

from epochal.feed.reader import FeedReader, Predicate
from epochal.index.checkpoints import BEGINNING, Checkpoint
from epochal.index.groups import (
    Cause,
    GroupState,
    Held,
    StateConflict,
    forget_cause,
    group_stream,
    keep_cause,
    load,
    read_causes,
    save,
)
from epochal.index.tip_append import Ids
from epochal.layout.port import Categories
from epochal.layout.registry import source_of
from epochal.model.kinds import must_be
from epochal.model.spans import Span
from epochal.reactions.handling import Failure
from epochal.reactions.reaction import Delivery, Reaction, Start
from epochal.store.driver import Driver

POLL_SECONDS: Final = 0.1
"""Between looks while waiting: half a read unit each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One of the processes that run a reaction.

    Attributes:
        reader: of the feed; the group's state is in the same table.
        now: nanoseconds since 1970.
        fresh: random bytes.
    """

    reaction: Reaction
    reader: FeedReader
    now: Callable[[], int] = time.time_ns
    fresh: Callable[[int], bytes] = os.urandom

    def __post_init__(self) -> None:
        """Refuse a function that is no reaction."""
        must_be(Reaction, self.reaction, "reaction", "a function that @reaction(name=…) is written above")

    @property
    def driver(self) -> Driver:
        """Runs requests on the index table."""
        return self.reader.driver

    @property
    def table(self) -> str:
        """The index table."""
        return self.reader.table

    def load(self, partition: int) -> Held:
        """The group's state in a partition."""
        return self.driver.run(load(self.table, group_stream(partition, self.reaction.name)))

    def save(self, held: Held, state: GroupState) -> Held | StateConflict:
        """Replace a state, if it is still the one that is held."""
        return self.driver.run(save(self.table, held, state, self._ids()))

    def start(self, partition: int) -> Checkpoint:
        """Where a group that is new begins.

        Raises:
            InvalidInput: it begins at the tail, and the partition is not on record.
        """
        start = self.reaction.start
        place = start.get(partition, BEGINNING) if isinstance(start, Mapping) else start
        return self.reader.place(partition, place)

    def wait_for(self, partition: int, position: Checkpoint, *, seconds: float = 10.0) -> bool:
        """Wait until everything before a position of the feed is handled or parked; whether it is.

        For callers that have seen the position, as a tail or a page's `next`. One that has just appended knows a stream
        and a version instead: `ReadModel.wait_for`.
        """
        ends = self.driver.clock() + seconds
        while (state := self.load(partition).state) is None or state.checkpoint < position:
            if self.driver.clock() >= ends:
                return False
            self.driver.sleep(POLL_SECONDS)
        return True

    def keep(self, partition: int, failure: Failure) -> None:
        """Put on record why a stream is parked."""
        cause = Cause(
            stream=failure.stream,
            index=failure.index,
            text=failure.cause,
            trace=failure.trace,
            attempts=failure.attempts,
            timestamp=self._ids().timestamp,
        )
        self.record(partition, cause)

    def record(self, partition: int, cause: Cause) -> None:
        """Put a cause on record."""
        self.driver.run(keep_cause(self.table, partition, self.reaction.name, cause))

    def causes(self, partition: int, state: GroupState) -> dict[str, Cause]:
        """What is on record about the streams that are parked."""
        return self.driver.run(read_causes(self.table, partition, self.reaction.name, state.parked))

    def forget(self, partition: int, stream: str) -> None:
        """Forget why a stream was parked."""
        self.driver.run(forget_cause(self.table, partition, self.reaction.name, stream))

    def _ids(self) -> Ids:
        return Ids.drawn(self.now(), self.fresh)


def stand_in(group: str, start: Start = "beginning") -> Reaction:
    """A reaction of a group's name, for what handles nothing."""
    return Reaction(name=group, handler=_never, start=start)


def _never(_: Delivery) -> None:
    raise RuntimeError("a stand-in handles nothing")


# Which of the categories and types that a reaction names have come: a reaction to a misspelt one handles nothing,
# and nothing fails.
#
# A group begins with all that it asks for as `unmet`, in each partition. A run that moves the checkpoint takes out
# what it has passed: a category with any stream of it, a type with any event of it in the categories asked for. Once
# the group has come to the end everywhere, a name left in every partition is not in the feed. A group that began
# before this was kept, or asks for more since, is not reported: it is not known to be wrong.

MOST: Final = 100
"""Categories and types to look out for at most, and to remember as suggestions."""

Name = tuple[Literal["category", "type"], str]
"""A name that a reaction asks for, or that came, and what it is of."""

_SAID: Final = {"category": "stream of the category", "type": "event of the type"}


def at_first(names: Collection[str] | None) -> tuple[str, ...]:
    """What a group that begins has not met, of categories or of types."""
    return tuple(sorted(names or ())[:MOST])


@dataclass(slots=True, kw_only=True)
class Meeting:
    """What comes of a partition.

    Attributes:
        categories: that are asked for; None for all.
        known: which streams of the partition belong to a category.
        unmet: of those categories.
        unmet_types: of the types of events that are asked for.
        seen: what came while something was unmet.
    """

    known: Callable[[], Categories]
    categories: Collection[str] | None = None
    unmet: tuple[str, ...] = ()
    unmet_types: tuple[str, ...] = ()
    seen: set[Name] = field(default_factory=set)

    def watched(self, wanted: Predicate) -> Predicate:
        """The same predicate, which also notes what it is asked about while anything is unmet."""
        if not (self.unmet or self.unmet_types):
            return wanted

        def noting(span: Span) -> bool:
            if self.unmet:
                self._note_category(span.stream)
            if self.unmet_types and self._asks_for(span.stream, self.categories):
                self._note_types(span.types)
            return wanted(span)

        return noting

    def _note_category(self, stream: str) -> None:
        self.unmet = tuple(name for name in self.unmet if not self._asks_for(stream, (name,)))
        self._see("category", self.known().of(stream))

    def _note_types(self, types: tuple[str, ...]) -> None:
        self.unmet_types = tuple(name for name in self.unmet_types if name not in types)
        for name in types:
            self._see("type", name)

    def _asks_for(self, stream: str, categories: Collection[str] | None) -> bool:
        return categories is None or self.known().hold(stream, categories)

    def _see(self, kind: Literal["category", "type"], name: str) -> None:
        if len(self.seen) < 2 * MOST:
            self.seen.add((kind, name))


def unmet(member: Member) -> tuple[Name, ...]:
    """What a reaction asks for and has not come, as far as its group has come; nothing where it has not come to the end
    of every partition.
    """
    left: set[Name] = {("category", name) for name in member.reaction.categories or ()}
    left |= {("type", name) for name in member.reaction.types or ()}
    for each in member.reader.partitions():
        if source_of(each.partition) not in member.reaction.sources:
            continue
        state = member.load(each.partition).state
        if state is None or state.checkpoint < each.tail:
            return ()
        left.intersection_update(_unmet_in(state))
        if not left:
            return ()
    return tuple(sorted(left))


def _unmet_in(state: GroupState) -> Iterator[Name]:
    for name in state.unmet:
        yield "category", name
    for name in state.unmet_types:
        yield "type", name


def told_of(names: Collection[Name], seen: Collection[Name]) -> Iterator[str]:
    """A sentence for each of the names that are unmet, with those that it may have been meant for."""
    for kind, name in names:
        came = sorted(other for its_kind, other in seen if its_kind == kind)
        similar = get_close_matches(name, came, cutoff=0.5)
        instead = f"; did you mean {similar[0]!r}?" if similar else ""
        others = f" What has come: {', '.join(came)}." if came else ""
        yield f"no {_SAID[kind]} {name!r} has come since the group began{instead or '.'}{others}"
