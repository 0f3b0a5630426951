"""A process as a member of a consumer group: it reads and replaces the group's state, and knows where a new group
begins.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Final

from epochal.feed.reader import FeedReader
from epochal.index.checkpoints import BEGINNING, Checkpoint
from epochal.index.group_state import GroupState
from epochal.index.groups import LoadedState, StateConflict, group_stream, load, save
from epochal.index.parking_causes import Cause, forget_cause, keep_cause, read_causes
from epochal.index.wire_batch import Ids
from epochal.lazy_dataclasses import dataclass
from epochal.model.kinds import must_be
from epochal.reactions.definition import Delivery, Reaction, Start
from epochal.reactions.failures import Failure
from epochal.store.driver import Driver

POLL_SECONDS: Final = 0.1
"""Seconds between two reads of the group's state while waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A process that runs a reaction as a member of its group: loads and saves the group's state.

    Attributes:
        reaction: reaction that is run.
        reader: reader of the feed; the group's state is in the same table.
        now: returns nanoseconds since 1970.
        fresh: returns random bytes.
    """

    reaction: Reaction
    reader: FeedReader
    now: Callable[[], int] = time.time_ns
    fresh: Callable[[int], bytes] = os.urandom

    def __post_init__(self) -> None:
        """Check that `reaction` is a `Reaction`, not a bare function."""
        must_be(Reaction, self.reaction, "reaction", "a function decorated with @reaction(name=…)")

    @property
    def driver(self) -> Driver:
        """Driver of requests to the index table."""
        return self.reader.driver

    @property
    def table(self) -> str:
        """Name of the index table."""
        return self.reader.table

    def load(self, partition: int) -> LoadedState:
        """Load the group's state in a partition."""
        return self.driver.run(load(self.table, group_stream(partition, self.reaction.name)))

    def save(self, held: LoadedState, state: GroupState) -> LoadedState | StateConflict:
        """Replace the group's state, unless it has changed since it was loaded."""
        return self.driver.run(save(self.table, held, state, self._ids()))

    def start(self, partition: int) -> Checkpoint:
        """Return the checkpoint at which a new group begins in a partition.

        Raises:
            InvalidInput: it begins at the tail, and the partition is not on record.
        """
        start = self.reaction.start
        place = start.get(partition, BEGINNING) if isinstance(start, Mapping) else start
        return self.reader.find_checkpoint(partition, place)

    def wait_for(self, partition: int, position: Checkpoint, *, seconds: float = 10.0) -> bool:
        """Wait up to `seconds` until everything before a position is handled or parked; return whether it is.

        For callers that have seen the position, as a tail or a page's `next`. One that has just appended knows a stream
        and a version instead: `ReadModel.wait_for`.

        Args:
            seconds: how long to wait.
        """
        ends = self.driver.clock() + seconds
        while (state := self.load(partition).state) is None or state.checkpoint < position:
            if self.driver.clock() >= ends:
                return False
            self.driver.sleep(POLL_SECONDS)
        return True

    def keep(self, partition: int, failure: Failure) -> None:
        """Store why a stream is parked, from its failure."""
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
        """Store a cause for which a stream is parked."""
        self.driver.run(keep_cause(self.table, partition, self.reaction.name, cause))

    def causes(self, partition: int, state: GroupState) -> dict[str, Cause]:
        """Read the stored causes of the streams that are parked."""
        return self.driver.run(read_causes(self.table, partition, self.reaction.name, state.parked))

    def forget(self, partition: int, stream: str) -> None:
        """Delete the stored cause of a stream."""
        self.driver.run(forget_cause(self.table, partition, self.reaction.name, stream))

    def _ids(self) -> Ids:
        """Draw the identity of a write."""
        return Ids.drawn(self.now(), self.fresh)


def stand_in(group: str, start: Start = "beginning") -> Reaction:
    """Build a reaction of a group's name that handles nothing, for steering the group."""
    return Reaction(name=group, handler=_never, start=start)


def _never(_: Delivery) -> None:
    """Raise: a stand-in handles nothing."""
    raise RuntimeError("a stand-in handles nothing")
