"""The last run of a group's member that failed: an item for each member, beside the group's state.

    a run fails              the item is written, in place of an earlier one
    the member advances      the item is out of date, because it names the state at which the run failed
    the group is deleted     the item is deleted
    a group has not begun    the item is about the state of a group at the beginning

So a run that succeeds makes no request for this. A process that is killed leaves the item with the time of a run that
never comes: a minute after that time, readers no longer expect the run.
"""

from __future__ import annotations

import hashlib
import json
from typing import Final

from epochal.errors import InvalidInput
from epochal.index.group_state import GroupState, Unit
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.moments import PER_SECOND, Ticks, parse_time
from epochal.model.quantities import quantity
from epochal.plan.ops import Delete, Put, Query, Steps
from epochal.plan.values import Item, Key, number, read_number, read_text, text

MAX_CAUSE: Final = 400
"""Characters of a cause that are kept."""

CANNOT_LOAD: Final = "the reaction cannot be loaded: "
"""Beginning of the cause of a run whose function could not load its reaction."""

OVERDUE: Final = 60 * PER_SECOND
"""Ticks after which a run that has not come is no longer expected: clocks differ, and wake-ups may be late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRun:
    """The last run of a member, which failed.

    Attributes:
        member: the member's share of the partition; 0 where the group has one member.
        cause: the error, as text.
        since: time of the first run that failed at this state of the member.
        last: time of this run.
        due: time when the next run is expected; empty where its process has ended, or the run has not come.
        runs: how many runs have failed at this state.
        stream: the stream that could not be handled; empty where the run did not fail at a stream.
        index: index of the first event of `stream` that is not handled; None if the run failed at no stream.
        state: digest of the member's state.
        missed: time when a run was expected that has not come; empty if there is none.
    """

    member: int
    cause: str
    since: str
    last: str
    due: str
    runs: int = 1
    stream: str = ""
    index: int | None = None
    state: str
    missed: str = ""

    @property
    def is_failed_load(self) -> bool:
        """Whether the function could not load the reaction."""
        return self.cause.startswith(CANNOT_LOAD)

    @property
    def remedy(self) -> str:
        """What to do about the failure, in a sentence."""
        if self.is_failed_load:
            return "Add the missing package, module or reaction name to the function, and deploy it again."
        return "Fix the cause and deploy: the reaction then resumes by itself."

    @property
    def place(self) -> str:
        """The stream and index at which the run failed, as text; empty if it failed at no stream."""
        return self.stream if self.index is None else f"{self.stream} at {self.index}"

    @property
    def words(self) -> str:
        """The failure as a sentence for people."""
        where = f" by {self.place}" if self.stream else ""
        following = f"the next run is expected at {self.due}" if self.due else "its process has ended"
        if self.missed:
            following = (
                f"the next run was expected at {self.missed} but did not start: its process may have died"
            )
        return (
            f"blocked{where} since {self.since}, {quantity(self.runs, 'run')} failed, the last at {self.last}:"
            f" {self.cause}; {following}"
        )


def digest_of(state: GroupState, member: int) -> str:
    """Return a digest of a member's progress, which changes when it advances or the group is reset."""
    sharing = state.sharing
    # A member that the state does not know yet stands where the group does.
    part = sharing.part(state, member) if member < sharing.members else state
    own = (
        sorted((stream, index) for stream, index in indices.items() if sharing.share_of(stream) == member)
        for indices in (part.parked, part.ahead)
    )
    done = [int(part.checkpoint), *own, state.generation]
    return hashlib.sha256(json.dumps(done).encode()).hexdigest()[:16]


def record_failed_run(table: str, group: str, partition: int, failed: FailedRun) -> Steps[None]:
    """Store a member's failed run in place of its last one, counting on if that failed at the same state."""
    for earlier in (yield from _read_runs(table, group, partition)):
        if (earlier.member, earlier.state) == (failed.member, failed.state):
            since, runs = earlier.since, earlier.runs + 1
            break
    else:
        since, runs = failed.last, 1
    counted = replace(failed, since=since, runs=runs)
    yield Put(table=table, item=_item(group, partition, counted))


def end_failed_run(table: str, group: str, unit: Unit) -> Steps[None]:
    """Record that no next run of a member is expected after its failed one, since its process has ended."""
    for run in (yield from _read_runs(table, group, unit.partition)):
        if run.member == unit.share and run.due:
            yield Put(table=table, item=_item(group, unit.partition, replace(run, due="")))


def read_failed_runs(
    table: str, group: str, partition: int, state: GroupState, now: Ticks
) -> Steps[tuple[FailedRun, ...]]:
    """Read the failed runs of a partition's members that have made no progress since."""
    stored = yield from _read_runs(table, group, partition)
    return tuple(_expected_at(run, now) for run in stored if run.state == digest_of(state, run.member))


def _expected_at(run: FailedRun, now: Ticks) -> FailedRun:
    """Return a run as it is at a time: without the next run's time if that is over by more than `OVERDUE`."""
    try:
        is_over = bool(run.due) and parse_time(run.due) + OVERDUE < now
    except InvalidInput:
        return run
    return replace(run, due="", missed=run.due) if is_over else run


def delete_failed_runs(table: str, group: str, partition: int) -> Steps[None]:
    """Delete the records of a group's failed runs in a partition."""
    for run in (yield from _read_runs(table, group, partition)):
        yield Delete(table=table, key=_key(group, Unit(partition, run.member)))


def _read_runs(table: str, group: str, partition: int) -> Steps[list[FailedRun]]:
    """Read all recorded failed runs of a group in a partition."""
    reply = yield Query(table=table, partition=("p", text(_name(group, partition))))
    return [
        FailedRun(
            member=read_number(item, "i") or 0,
            cause=item["x"]["S"],
            since=item["s"]["S"],
            last=item["t"]["S"],
            due=read_text(item, "u") or "",
            runs=read_number(item, "r") or 1,
            stream=read_text(item, "w") or "",
            index=read_number(item, "n"),
            state=item["d"]["S"],
        )
        for item in reply.items
    ]


def _item(group: str, partition: int, run: FailedRun) -> Item:
    """Build the record of a failed run."""
    item = {
        **_key(group, Unit(partition, run.member)),
        "d": text(run.state),
        "x": text(run.cause[:MAX_CAUSE] or "-"),
        "s": text(run.since),
        "t": text(run.last),
        "r": number(run.runs),
    }
    if run.due:
        item["u"] = text(run.due)
    if run.stream:
        item["w"] = text(run.stream)
    if run.index is not None:
        item["n"] = number(run.index)
    return item


def _name(group: str, partition: int) -> str:
    """Return the partition key of a group's failed runs."""
    return f"$ReaderFailure-{partition}_{group}"


def _key(group: str, unit: Unit) -> Key:
    """Return the key of the record of one member."""
    return {"p": text(_name(group, unit.partition)), "i": number(unit.share)}
