"""A process as a member of a consumer group: it reads and replaces the group's state, and knows where a new group
begins.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from epochal.errors import InvalidInput
from epochal.feed.reader import FeedReader
from epochal.index.checkpoints import BEGINNING, Checkpoint
from epochal.index.groups import GroupState, Held, StateConflict, group_stream, load, save
from epochal.index.parked import Cause, forget_cause, keep_cause, read_causes
from epochal.index.series import Ids
from epochal.model.kinds import must_be
from epochal.reactions.handling import Failure
from epochal.reactions.reaction import Reaction
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
        if isinstance(start, Mapping):
            return start.get(partition, BEGINNING)
        if start == "beginning":
            return BEGINNING
        tails = {each.partition: each.tail for each in self.reader.partitions()}
        if partition not in tails:
            raise InvalidInput("partition", f"{partition} is not on record: deploy its indexer first")
        return tails[partition]

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
        self.driver.run(keep_cause(self.table, partition, self.reaction.name, cause))

    def causes(self, partition: int, state: GroupState) -> dict[str, Cause]:
        """What is on record about the streams that are parked."""
        return self.driver.run(read_causes(self.table, partition, self.reaction.name, state.parked))

    def forget(self, partition: int, stream: str) -> None:
        """Forget why a stream was parked."""
        self.driver.run(forget_cause(self.table, partition, self.reaction.name, stream))

    def _ids(self) -> Ids:
        return Ids.drawn(self.now(), self.fresh)
