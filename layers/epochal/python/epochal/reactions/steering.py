"""Steers consumer groups: pause, resume, reset, delete, begin like another; and shows their lag and processes.

    pause     running processes take no more events, and commit nothing: their next write is refused
    reset     checkpoints are set; events that will be repeated or skipped are counted first; `dry_run` only counts them
    begin     a group that has handled nothing begins at another group's checkpoints, with its parked streams
    delete    nothing is left of the group; a process that runs it begins anew

Each replaces a group's state in a partition as a commit does, on the state that was read: a process in the middle of a
batch is refused its commit, and goes on from what it finds. So no event is skipped but those that a reset passes over.
A partition where the group has not begun has no state: it begins as its reaction says.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from epochal.errors import BeyondTheEnd, GroupMissing, InvalidInput
from epochal.feed.filters import span_filter
from epochal.feed.reader import FeedReader
from epochal.index.checkpoints import Checkpoint, parse_place
from epochal.index.failed_runs import FailedRun, delete_failed_runs, read_failed_runs
from epochal.index.feed_walk import FeedWalk, PlacedEntry, step, tails_in
from epochal.index.group_state import GroupState, with_generation_drawn
from epochal.index.groups import LoadedState, StateConflict, group_stream, remove
from epochal.index.indexer_failures import indexer_failures
from epochal.index.live_members import assign_units, read_signs, remove_sign
from epochal.index.parking_causes import Cause
from epochal.index.series import Series, read_series
from epochal.layout.changes import Span
from epochal.layout.registry import source_of
from epochal.lazy_dataclasses import asdict, dataclass, replace
from epochal.model.moments import format_ticks, from_unix_nanoseconds
from epochal.model.stream_names import TIMERS
from epochal.reactions.definition import Reaction, Start
from epochal.reactions.group_member import Member, stand_in
from epochal.reactions.reset_effect import ResetEffect

PAGE: Final = 200
"""Number of index entries in one request."""

COUNTED: Final = 100_000
"""Largest lag that is counted, in events; a group that is further behind has at least this lag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFigures:
    """The progress of a group in one partition: its checkpoint and its backlog.

    Attributes:
        partition: partition of the feed.
        checkpoint: place in the partition up to which the group has handled the events.
        tail: checkpoint after the last entry of the partition, which a group reaches once it has handled everything.
        events: number of events that the group has not handled yet, of those that its reaction reads (or of all:
            `of_all`). The constant `COUNTED` means at least that many; None means that the checkpoint belongs to
            another index.
        seconds: seconds since the oldest event that is not handled was indexed; 0 if there is none.
        parked: number of streams that the group has parked in the partition.
        paused: time at which the group was paused; empty if it is not.
        of_all: whether `events` counts events of all kinds, because what the reaction reads is not recorded, or is
            everything.
        indexer: reason why the indexer adds no further events to the partition; empty if none is recorded.
        last_failure: error because of which the most recently parked stream was parked.
        blocked: for each group member that has made no progress since its last run failed, that run.
    """

    partition: int
    checkpoint: Checkpoint
    tail: Checkpoint
    events: int | None
    seconds: float
    parked: int
    paused: str
    of_all: bool = False
    indexer: str = ""
    last_failure: Cause | None = None
    blocked: tuple[FailedRun, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupProcess:
    """A process that runs the reaction, and the partitions that fall to it.

    If the group has several members, these are the partitions of which it has a share. Functions are not listed.
    """

    owner: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """The change that a reset of a group makes in one partition.

    Attributes:
        partition: partition of the feed.
        before: checkpoint before the reset.
        after: checkpoint after the reset.
        again: number of events that will be delivered again, though the old checkpoint had passed them or they were
            handled ahead of it.
        skipped: number of events that were not handled before the reset, and will not be delivered after it.
        parked: number of streams that stay parked, because the events that they wait for are not delivered again.
    """

    partition: int
    before: Checkpoint
    after: Checkpoint
    again: int
    skipped: int
    parked: int


def start_of(text: str, partitions: Iterable[int] = ()) -> Start:
    """Parse a reset's target: `beginning`, `tail`, a moment or checkpoint, by partition if any are given.

    Raises:
        InvalidInput: it is none of these, or a checkpoint of no partition.
    """
    place, starts = parse_place(text, "to"), dict.fromkeys(partitions)
    if starts:
        return dict.fromkeys(starts, place)
    if isinstance(place, Checkpoint):
        raise InvalidInput("partition", "must be given, because a checkpoint belongs to one partition")
    return place


@dataclass(frozen=True, slots=True)
class Groups:
    """Shows, pauses, resets and deletes the consumer groups of an index.

    Attributes:
        reader: reader of the feed.
        now: function that returns the time in nanoseconds since 1970.
        fresh: function that returns a given number of random bytes.
    """

    reader: FeedReader
    now: Callable[[], int] = time.time_ns
    fresh: Callable[[int], bytes] = os.urandom

    def read_series(self) -> Series:
        """Read which partitions the index of the feed has; passed as `series`, it saves other methods this read."""
        return self.reader.driver.run(read_series(self.reader.table))

    def standing(self, group: str | Reaction, series: Series | None = None) -> list[GroupFigures]:
        """Return a group's progress and backlog in each partition; raise `GroupMissing` if it is unknown.

        Partitions where it has not begun are left out. A group that has begun nowhere, and whose runs failed, is at the
        beginning of the partitions where they did.

        Args:
            group: name of the group; or its reaction, so that the events are counted that it wants now, whatever is
                recorded.
            series: partitions that there are, if they have been read.

        Raises:
            GroupMissing: it has begun nowhere, and no run of it has failed.
        """
        driver, table, series = self.reader.driver, self.reader.table, series or self.read_series()
        tails, member = dict(driver.run(tails_in(table, series))), self._member(group)
        failures = driver.run(indexer_failures(table, series, from_unix_nanoseconds(self.now())))
        wants = group if isinstance(group, Reaction) else None
        return [
            replace(
                self._figures(
                    partition,
                    state,
                    tails[partition],
                    self._counter(partition, wants or _recorded_reaction(state)),
                ),
                of_all=wants is None and state.reads is None,
                indexer=failures.get(source_of(partition), ""),
                last_failure=_last_failure(member, partition, state),
                blocked=self._blocked_members(member, partition, state, tails[partition]),
            )
            for partition, state in self._shown_states(member, series)
        ]

    def indexer_failures(self) -> dict[str, str]:
        """Return, by layout, the recorded reasons why the indexer adds no further events to the feed."""
        now = from_unix_nanoseconds(self.now())
        return self.reader.driver.run(indexer_failures(self.reader.table, self.read_series(), now))

    def members(self, group: str, series: Series | None = None) -> list[GroupProcess]:
        """List a group's running processes, not functions, with partitions; raise `GroupMissing` if unknown.

        Args:
            group: name of the group.
            series: partitions that there are, if they have been read.
        """
        reader = self.reader
        signs = reader.driver.run(read_signs(reader.table, group))
        owners = sorted(sign.owner for sign in signs if sign.until * 1_000_000 > self.now())
        units = [
            unit
            for partition, state in self._shown_states(self._member(group), series)
            for unit in state.sharing.units(partition)
        ]
        return [
            GroupProcess(owner=owner, partitions=tuple(dict.fromkeys(unit.partition for unit in own_units)))
            for owner in owners
            for own_units in [assign_units(owner, owners, units)]
        ]

    def pause(self, group: str) -> list[int]:
        """Stop a group from handling more events, wherever it runs; return the partitions where it has begun.

        What a process has handled and not committed comes again once the group goes on.

        Args:
            group: name of the group.
        """
        since = format_ticks(from_unix_nanoseconds(self.now()))
        return self._change(group, lambda state: replace(state, paused=state.paused or since))

    def resume(self, group: str) -> list[int]:
        """Let a paused group go on; return the partitions where it has begun.

        Processes go on at once, a function with its next wake-up: an event, or its schedule's.

        Args:
            group: name of the group.
        """
        return self._change(group, lambda state: replace(state, paused=""))

    def reset(self, group: str | Reaction, to: Start, *, dry_run: bool = False) -> list[Reset]:
        """Set a group's checkpoints to a target, or only count (`dry_run`); return the effect by partition.

        Everything after the new checkpoint comes, whether it was handled or not; nothing before it does. A stream that
        is parked stays so, unless what it waits for is after the new checkpoint: then it comes with the feed.

        Events are counted first, which reads the index between the two checkpoints, and further if the group has
        handled or parked events ahead of its own.

        Args:
            group: name of the group; or its reaction, so that only events that it wants are counted.
            to: target, in the form of a reaction's `start`. Partitions that a mapping does not name keep their
                checkpoints.
            dry_run: whether to change nothing.

        Raises:
            GroupMissing: the group has begun nowhere, or was deleted meanwhile.
            InvalidInput: it has not begun in a partition that is named.
            BeyondTheEnd: a checkpoint is none of this index. Nothing has been changed.
        """
        member = self._member(group)
        states = {partition: held for partition, held, _ in self._started_states(member)}
        if isinstance(to, Mapping) and (unknown := to.keys() - states.keys()):
            raise InvalidInput(
                "partition", f"{member.reaction.name} has not begun in partition {min(unknown, key=str)}"
            )
        member = self._member(group, to)
        wants = member.reaction if isinstance(group, Reaction) else None
        targets = {
            partition: member.start(partition) for partition in (to if isinstance(to, Mapping) else states)
        }
        for partition, target in targets.items():
            self.reader.driver.run(step(self.reader.table, FeedWalk(partition=partition, at=target), 1))
        return [
            self._reset(member, partition, states[partition], target, wants, dry_run=dry_run)
            for partition, target in targets.items()
        ]

    def begin(self, group: str, like: str) -> list[int]:
        """Begin a group at the checkpoints of group `like`, with its parked streams; return the partitions.

        It gets the other group's checkpoints, what that has handled ahead and what it has parked. All states are read
        before the first is written.

        Args:
            group: name of the group that begins.
            like: name of the group whose place it takes over.

        Raises:
            GroupMissing: the other has begun nowhere.
            InvalidInput: the group has begun already, and nothing was written; or a process began it meanwhile, and the
                message says in which partitions it begins like the other.
        """
        member, other = self._member(group), self._member(like)
        states = self._started_states(other)
        states_of_group = dict(self._all_states(member))
        if started := [partition for partition, held in states_of_group.items() if held.state is not None]:
            raise InvalidInput(
                "group",
                f"{group} has already begun in {_list_partitions(started)}: reset or delete it first",
            )
        written: list[int] = []
        for partition, _, state in states:
            for cause in other.causes(partition, state).values():
                member.record(partition, cause)
            copied = replace(state, trying={}, unmet=(), unmet_types=(), paused="", generation=0, reads=None)
            saved = member.save(states_of_group[partition], with_generation_drawn(copied, self.fresh))
            if isinstance(saved, StateConflict):
                parked = {} if saved.held.state is None else saved.held.state.parked
                for stream in state.parked.keys() - parked.keys():
                    member.forget(partition, stream)
                raise InvalidInput(
                    "group",
                    f"a process began {group} meanwhile in {_list_partitions([partition])}. It begins like {like} in "
                    f"{_list_partitions(written)}. Stop the process, delete {group}, and begin it again",
                )
            written.append(partition)
        return written

    def delete(self, group: str) -> list[int]:
        """Delete all that is stored of a group, and return its partitions; raise if a process runs it.

        A function that still runs it begins anew.

        Args:
            group: name of the group.

        Raises:
            GroupMissing: it has begun nowhere, and no run of it has failed.
            InvalidInput: a process runs it.
        """
        member, reader = self._member(group), self.reader
        if running := self.members(group):
            raise InvalidInput("group", f"{group} is run by the process {running[0].owner}: stop it first")
        states = self._shown_states(member)
        for partition, state in states:
            for stream in state.parked:
                member.forget(partition, stream)
            reader.driver.run(delete_failed_runs(reader.table, group, partition))
            reader.driver.run(remove(reader.table, group_stream(partition, group)))
        for sign in reader.driver.run(read_signs(reader.table, group)):
            reader.driver.run(remove_sign(reader.table, group, sign.owner))
        return [partition for partition, _ in states]

    def _member(self, group: str | Reaction, start: Start = "beginning") -> Member:
        """Build a member of a group, from its name or its reaction."""
        reaction = replace(group, start=start) if isinstance(group, Reaction) else stand_in(group, start)
        return Member(reaction=reaction, reader=self.reader, now=self.now, fresh=self.fresh)

    def _shown_states(self, member: Member, series: Series | None = None) -> list[tuple[int, GroupState]]:
        """Return a group's states where it has begun or, if nowhere, where its runs failed; raise if neither.

        Args:
            series: partitions that there are, if they have been read.
        """
        states = self._all_states(member, series)
        started = [(partition, held.state) for partition, held in states if held.state is not None]
        if started:
            return started
        reader, group, now = self.reader, member.reaction.name, from_unix_nanoseconds(self.now())
        failed = [
            (partition, GroupState())
            for partition, _ in states
            if reader.driver.run(read_failed_runs(reader.table, group, partition, GroupState(), now))
        ]
        if not failed:
            raise GroupMissing(group)
        return failed

    def _started_states(
        self, member: Member, series: Series | None = None
    ) -> list[tuple[int, LoadedState, GroupState]]:
        """List the partitions where a group has begun, with its states; raise `GroupMissing` if nowhere.

        Args:
            series: partitions that there are, if they have been read.
        """
        helds = self._all_states(member, series)
        states = [(partition, held, held.state) for partition, held in helds if held.state is not None]
        if not states:
            raise GroupMissing(member.reaction.name)
        return states

    def _all_states(self, member: Member, series: Series | None = None) -> list[tuple[int, LoadedState]]:
        """Load a group's state in every partition, whether it has begun there or not."""
        return [
            (partition, member.load(partition)) for partition, _ in (series or self.read_series()).reached()
        ]

    def _change(self, group: str, change: Callable[[GroupState], GroupState]) -> list[int]:
        """Apply a change to the group's state in each partition where it has begun; return these."""
        member = self._member(group)
        states = self._started_states(member)
        for _, held, _ in states:
            _replace(member, held, change)
        return [partition for partition, _, _ in states]

    def _blocked_members(
        self, member: Member, partition: int, state: GroupState, tail: Checkpoint
    ) -> tuple[FailedRun, ...]:
        """Return the failed runs that block members of a partition; nothing if the group is at the end."""
        if state.checkpoint >= tail:
            return ()
        reader, group, now = self.reader, member.reaction.name, from_unix_nanoseconds(self.now())
        return reader.driver.run(read_failed_runs(reader.table, group, partition, state, now))

    def _figures(
        self, partition: int, state: GroupState, tail: Checkpoint, count: Callable[[Span], int]
    ) -> GroupFigures:
        """Count the events that a group has not handled in a partition, up to `COUNTED`; return its figures."""
        events: int | None = None if state.checkpoint > tail else 0
        oldest: PlacedEntry | None = None
        try:
            for placed in self._entries(partition, state.checkpoint, lambda checkpoint: checkpoint < tail):
                if placed.after > tail:
                    break
                counts = [
                    count(span.since(state.next_of(span.stream)))
                    for span in placed.entry().spans
                    if placed.after > state.checkpoint_of(span.stream)
                ]
                oldest = oldest or (placed if any(counts) else None)
                events = (events or 0) + sum(counts)
                if events >= COUNTED:
                    events = COUNTED
                    break
        except BeyondTheEnd:
            events = None
        return GroupFigures(
            partition=partition,
            checkpoint=state.checkpoint,
            tail=tail,
            events=events,
            seconds=0.0 if oldest is None else max(0.0, self.now() / 1e9 - oldest.seconds),
            parked=len(state.parked),
            paused=state.paused,
        )

    def _reset(
        self,
        member: Member,
        partition: int,
        held: LoadedState,
        target: Checkpoint,
        wants: Reaction | None,
        *,
        dry_run: bool,
    ) -> Reset:
        """Reset a group in one partition, on its newest state; return the effect. `dry_run` only counts it."""
        count = self._counter(partition, wants)
        while True:
            state = held.state
            if state is None:  # deleted meanwhile
                raise GroupMissing(member.reaction.name)
            effect = self._effect(partition, state, target, count)
            numbered = with_generation_drawn(state, self.fresh)
            after = _state_at(numbered, target, _still_parked(state, effect.first_beyond))
            effect_ = Reset(
                partition=partition,
                before=state.checkpoint,
                after=target,
                again=effect.again,
                skipped=effect.skipped,
                parked=len(after.parked),
            )
            if dry_run:
                return effect_
            saved = member.save(held, after)
            if isinstance(saved, LoadedState):
                for stream in state.parked.keys() - after.parked.keys():
                    member.forget(partition, stream)
                return effect_
            held = saved.held

    def _effect(
        self, partition: int, state: GroupState, target: Checkpoint, count: Callable[[Span], int]
    ) -> ResetEffect:
        """Count which events come again and which are skipped if the checkpoint is set to a target."""
        effect = ResetEffect(state, target, count)
        places = (target, *(state.shares or (state.checkpoint,)))
        end = max(places)
        with suppress(BeyondTheEnd):  # the group's checkpoint may be of another index
            for placed in self._entries(
                partition, min(places), lambda checkpoint: checkpoint < end or bool(effect.unmet)
            ):
                for span in placed.entry().spans:
                    effect.add(span, placed.after)
        return effect

    def _counter(self, partition: int, wants: Reaction | None) -> Callable[[Span], int]:
        """Return a function that counts the events of a span that a reaction wants; all without a reaction."""
        if wants is None:
            return lambda span: len(span.types)
        types = wants.types
        is_wanted = span_filter(partial(self.reader.categories, partition), wants.categories, wants.wants)

        def count(span: Span) -> int:
            """Count the events of a span that the reaction wants, as far as the index tells."""
            matching = sum(kind not in TIMERS if types is None else kind in types for kind in span.types)
            return matching if matching and is_wanted(span) else 0

        return count

    def _entries(
        self, partition: int, start: Checkpoint, is_wanted: Callable[[Checkpoint], bool]
    ) -> Iterator[PlacedEntry]:
        """Iterate over a partition's index entries from a checkpoint, while more are wanted, up to the tail.

        The last request may return some beyond what is wanted.
        """
        walk, at_tail = FeedWalk(partition=partition, at=start), False
        while not at_tail and is_wanted(walk.at):
            page = self.reader.driver.run(step(self.reader.table, walk, PAGE))
            yield from page.placed
            walk, at_tail = page.walk, page.at_tail


def standing_view(figures: GroupFigures) -> dict[str, Any]:
    """Convert a group's figures in a partition into JSON."""
    return {
        "partition": figures.partition,
        "checkpoint": str(figures.checkpoint),
        "tail": str(figures.tail),
        "events": figures.events,
        "ofAllEvents": figures.of_all,
        "seconds": round(figures.seconds, 1),
        "parked": figures.parked,
        "paused": figures.paused or None,
        "indexerFailure": figures.indexer or None,
        "lastFailure": None if figures.last_failure is None else failure_view(figures.last_failure),
        "blocked": list(map(blocked_view, figures.blocked)),
    }


def failure_view(cause: Cause) -> dict[str, Any]:
    """Convert the cause of a parked stream into JSON."""
    return {
        "stream": cause.stream,
        "index": cause.index,
        "cause": cause.text,
        "attempts": cause.attempts,
        "since": cause.timestamp,
    }


def blocked_view(failed: FailedRun) -> dict[str, Any]:
    """Convert a failed run into JSON."""
    return {
        "member": failed.member,
        "cause": failed.cause,
        "stream": failed.stream or None,
        "index": failed.index,
        "since": failed.since,
        "last": failed.last,
        "runs": failed.runs,
        "nextRun": failed.due or None,
    }


def reset_view(reset: Reset) -> dict[str, Any]:
    """Convert the effect of a reset into JSON."""
    return asdict(reset) | {"before": str(reset.before), "after": str(reset.after)}


def _list_partitions(partitions: Sequence[int]) -> str:
    """Write a list of partitions for an error message."""
    if not partitions:
        return "no partition"
    return f"partition{'s' if len(partitions) > 1 else ''} {', '.join(map(str, partitions))}"


def _recorded_reaction(state: GroupState) -> Reaction | None:
    """Build a reaction that reads the recorded categories and types; None if none are recorded."""
    if state.reads is None:
        return None
    categories, types = (None if names is None else frozenset(names) for names in state.reads)
    return replace(stand_in("on-record"), categories=categories, types=types)


def _last_failure(member: Member, partition: int, state: GroupState) -> Cause | None:
    """Return the cause of the stream that was parked last; None without parked streams."""
    causes = member.causes(partition, state) if state.parked else {}
    return max(causes.values(), key=lambda cause: cause.timestamp, default=None)


def _still_parked(state: GroupState, again: Mapping[str, int]) -> dict[str, int]:
    """Return the streams that stay parked after a reset: those that wait before what comes again.

    `again` has, by stream, the first index that comes again.
    """
    return {stream: index for stream, index in state.parked.items() if again.get(stream, index + 1) > index}


def _state_at(state: GroupState, target: Checkpoint, parked: Mapping[str, int]) -> GroupState:
    """Return the state at another checkpoint; what was handled ahead of the old one comes again too."""
    return replace(
        state,
        checkpoint=target,
        parked=parked,
        ahead={},
        trying={},
        shares=(target,) * len(state.shares),
        generation=state.generation + 1,
    )


def _replace(member: Member, held: LoadedState, change: Callable[[GroupState], GroupState]) -> None:
    """Replace a group's state on whatever it is by now; a state that has been deleted stays so."""
    while held.state is not None and (after := change(held.state)) != held.state:
        saved = member.save(held, after)
        if isinstance(saved, LoadedState):
            return
        held = saved.held
