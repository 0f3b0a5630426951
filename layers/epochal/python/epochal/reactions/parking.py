"""Lists and replays parked streams, or skips the events that they wait for.

A replay loads the group's state, reads the stream from the store to its end, handles its events, and unparks the
stream, provided that the loaded state has not changed. It has changed if the feed has passed more events of the stream
meanwhile: then the replay reads on from where it stopped, until no other writer is faster (DESIGN §5.11). If the group
was reset meanwhile, or deleted and begun anew, the events handled before no longer count: the replay continues from the
index at which the stream waits then.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf

from epochal.errors import InvalidInput
from epochal.feed.reader import FeedReader
from epochal.index.group_state import GroupState
from epochal.index.groups import LoadedState
from epochal.index.parking_causes import Cause
from epochal.layout.changes import Removal
from epochal.lazy_dataclasses import dataclass
from epochal.reactions.calls import Around
from epochal.reactions.failures import Failure
from epochal.reactions.group_member import Member, stand_in
from epochal.reactions.handling import TaskProgress, Work
from epochal.reactions.page_tasks import Task, advance_parked, unpark
from epochal.reactions.reactor import Reactor


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedStream:
    """A stream that a consumer group has parked: set aside because its events could not be handled, so that the
    partition goes on without it.

    Attributes:
        partition: partition of the feed.
        stream: name of the stream.
        index: index of the first event of the stream that the group has not handled.
        cause: error because of which the stream was parked; None if it is not stored.
    """

    partition: int
    stream: str
    index: int
    cause: Cause | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The result of replaying, or discarding, the unhandled events of a parked stream.

    Attributes:
        next: index of the first event that is still not handled, as far as the replay knows.
        unparked: whether the stream is no longer parked, and follows the feed again.
        failure: error with which the handler failed again; None if it did not.
    """

    next: int
    unparked: bool
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parking:
    """Lists, replays and discards the streams that a group has parked because their handler kept failing.

    Attributes:
        reactor: the reactor that runs the group's reaction.
        around: function that wraps each call of the handler; None for none.
    """

    reactor: Reactor
    around: Around | None = None

    @classmethod
    def of(cls, group: str, reader: FeedReader) -> Parking:
        """Open a group's parked streams by its name, without its handler: to list and skip, not to replay.

        Args:
            group: name of the group.
            reader: reader of the feed that the group reads.
        """
        return cls(reactor=Reactor(member=Member(reaction=stand_in(group), reader=reader)))

    def streams(self, partition: int) -> list[ParkedStream]:
        """List the streams that the group has parked in a partition, with their causes.

        Args:
            partition: number of the partition.
        """
        member = self.reactor.member
        state = member.load(partition).state or GroupState()
        causes = member.causes(partition, state)
        return [
            ParkedStream(partition=partition, stream=stream, index=index, cause=causes.get(stream))
            for stream, index in state.parked.items()
        ]

    def replay(self, partition: int, stream: str, *, seconds: float) -> Replayed:
        """Handle a parked stream's unhandled events, unpark it if that succeeds in time; return the outcome.

        Args:
            partition: number of the partition.
            stream: name of the parked stream.
            seconds: time to handle events at most.

        Raises:
            InvalidInput: the stream is not parked.
        """
        work = self._work(partition, seconds)

        def handle(first: int) -> TaskProgress:
            """Handle the stream from an index to its present end."""
            end = self.reactor.member.reader.end_of(partition, stream, first)
            return work.handle(
                Task(stream=stream, first=first, end=end, removals=self._removals(partition, stream))
            )

        with self.reactor.calls:
            return self._catch_up(partition, stream, handle, work.ends)

    def discard(self, partition: int, stream: str) -> Replayed:
        """Skip all unhandled events of a parked stream, unpark it, and return the outcome.

        Args:
            partition: number of the partition.
            stream: name of the parked stream.

        Raises:
            InvalidInput: the stream is not parked.
        """
        end_of = self.reactor.member.reader.end_of
        return self._catch_up(
            partition, stream, lambda index: TaskProgress(next=end_of(partition, stream, index)), inf
        )

    def skip(self, partition: int, stream: str, index: int | None = None) -> int:
        """Skip a parked stream's first unhandled event; return the next index. The stream stays parked.

        Args:
            partition: number of the partition.
            stream: name of the parked stream.
            index: index of the event to be given up, if the caller has seen it; None for whichever it is.

        Raises:
            InvalidInput: the stream is not parked, or waits for another event by now.
        """
        held, index_now = self._load_parked(partition, stream)
        while True:
            if index not in (None, index_now):
                raise InvalidInput(
                    "index", f"the stream now waits at {index_now}, not at {index}: list parked streams again"
                )
            saved = self.reactor.member.save(held, advance_parked(_state(held), stream, index_now + 1))
            if isinstance(saved, LoadedState):
                return index_now + 1
            before, index_before, held = held, index_now, saved.held
            index_now = self._waiting_index(held, partition, stream)
            if index is None and _is_same_run(before, held) and index_now > index_before:
                return index_now  # another process has handled the event, or given it up

    def _catch_up(
        self, partition: int, stream: str, handle: Callable[[int], TaskProgress], ends: float
    ) -> Replayed:
        """Call `handle` for a parked stream until its end and unpark it, or let it stay; return the outcome.

        It is unparked only on a state that is older than that end.
        """
        held, index = self._load_parked(partition, stream)
        while True:
            progress = handle(index)
            index = progress.next
            if progress.failure is not None or self.reactor.member.driver.clock() >= ends:
                return self._save_progress(partition, stream, held, progress)
            saved = self.reactor.member.save(held, unpark(_state(held), stream, index))
            if isinstance(saved, LoadedState):
                self.reactor.member.forget(partition, stream)
                return Replayed(next=index, unparked=True)
            before, held = held, saved.held
            waits = _state(held).parked.get(stream)
            if waits is None:
                return Replayed(next=index, unparked=True)
            if not _is_same_run(before, held):
                index = waits

    def _save_progress(
        self, partition: int, stream: str, before: LoadedState, progress: TaskProgress
    ) -> Replayed:
        """Store how far a parked stream has come and why it failed, unless reset; return the outcome.

        Nothing is stored if the group was reset meanwhile; `before` is the state on which the stream was handled.
        """
        held, failure = self.reactor.member.load(partition), progress.failure
        while (waits := _state(held).parked.get(stream)) is not None:
            if not _is_same_run(before, held):
                return Replayed(next=waits, unparked=False, failure=failure)
            if failure is not None:
                self.reactor.member.keep(partition, failure)
            after = advance_parked(_state(held), stream, progress.next)
            saved = self.reactor.member.save(held, after)
            if isinstance(saved, LoadedState):
                return Replayed(next=after.parked[stream], unparked=False, failure=failure)
            held = saved.held
        return Replayed(next=progress.next, unparked=True, failure=failure)

    def _removals(self, partition: int, stream: str) -> tuple[Removal, ...]:
        """Return what was removed from a stream, in a tuple; empty if nothing, or the reaction ignores it.

        The feed has passed it, or has just reported it.
        """
        member = self.reactor.member
        if member.reaction.removed is None:
            return ()
        removal = member.reader.removal_of(partition, stream)
        return () if removal is None else (removal,)

    def _load_parked(self, partition: int, stream: str) -> tuple[LoadedState, int]:
        """Load the group's state, and return it with the index at which a parked stream waits."""
        held = self.reactor.member.load(partition)
        return held, self._waiting_index(held, partition, stream)

    def _waiting_index(self, held: LoadedState, partition: int, stream: str) -> int:
        """Return the index of the event that a parked stream waits for; raise `InvalidInput` if it is not parked."""
        index = _state(held).parked.get(stream)
        if index is None:
            raise InvalidInput("stream", f"{stream!r} is not parked in partition {partition}")
        return index

    def _work(self, partition: int, seconds: float) -> Work:
        """Build the `Work` that handles a partition's tasks, for `seconds` from now."""
        member = self.reactor.member
        return Work(
            reaction=member.reaction,
            call=self.reactor.calls if self.around is None else partial(self.around, self.reactor.calls),
            on_failed=self.reactor.on_failed,
            reader=member.reader,
            partition=partition,
            ends=member.driver.clock() + seconds,
        )


def _is_same_run(before: LoadedState, after: LoadedState) -> bool:
    """Return whether a group was neither reset nor begun anew between two states.

    Then what was handled in between counts.
    """
    return _state(before).generation == _state(after).generation


def _state(held: LoadedState) -> GroupState:
    """Return the loaded state, or an empty one."""
    return held.state or GroupState()
