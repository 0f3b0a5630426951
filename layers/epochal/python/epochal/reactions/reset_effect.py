"""Counts what a reset does to the events of a partition, entry by entry of the index.

After a reset the feed brings everything beyond the target, but for streams that stay parked, whose events come with a
replay:

    beyond the target      comes again where the checkpoint had passed it, or it was handled ahead of the checkpoint
    up to the target       is skipped where it was not handled and does not wait in a parked stream

What a group has handled ahead of its checkpoint, and where its parked streams wait, may be far beyond both the old
checkpoint and the new one. So counting goes on until each of these places has been met, or to the tail.
"""

from __future__ import annotations

from collections.abc import Callable

from epochal.index.checkpoints import Checkpoint
from epochal.index.group_state import GroupState
from epochal.layout.changes import Span


class ResetEffect:
    """The effect of setting a group's checkpoint to `target`, for the entries added so far.

    Attributes:
        again: number of events that come again.
        skipped: number of events that never come.
        first_beyond: by stream, the index of its first event beyond the target.
        unmet: by stream that is ahead or parked, the index up to which its events have yet to be added.
    """

    def __init__(self, state: GroupState, target: Checkpoint, count: Callable[[Span], int]) -> None:
        """Begin to count the effect of setting the checkpoint to `target`, before any entry.

        Args:
            state: state of the group before the reset.
            target: checkpoint that is set.
            count: returns how many events of a span count.
        """
        self.again = 0
        self.skipped = 0
        self.first_beyond: dict[str, int] = {}
        self.unmet = {**state.ahead, **{stream: index + 1 for stream, index in state.parked.items()}}
        self._state = state
        self._target = target
        self._count = count

    def add(self, span: Span, after: Checkpoint) -> None:
        """Count which events of a span come again and which are skipped; add spans in the order of entries.

        `after` is the checkpoint after the entry.
        """
        state, stream = self._state, span.stream
        waits, is_passed = state.parked.get(stream), after <= state.checkpoint_of(stream)
        handled = state.next_of(stream) if waits is None else waits
        if after > self._target:
            first = self.first_beyond.setdefault(stream, span.index)
            if waits is None or first <= waits:
                self.again += self._count(span if is_passed else span.until(handled))
        elif waits is None and not is_passed:
            self.skipped += self._count(span.since(handled))
        if span.next >= self.unmet.get(stream, span.next + 1):
            del self.unmet[stream]
