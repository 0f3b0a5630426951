"""Every interleaving of a few invocations on a small index: the real generators, each state visited once.

A generator cannot be copied, but it is a function of the replies it was sent. So an invocation is its batch and those
replies, and a state of the world is the index with every invocation's past; the same state reached in two ways is one.

What need not be interleaved is not: the source and closed epochs never change here, so reading them is part of the
step before; a crash between two reads leaves what a crash before the next write leaves. Otherwise any invocation may
go on at any time, and while the budget lasts a write may lose its answer, arrive late, or be its sender's last. A
process that is done may rest for any time, while others go on, and die before its batch is acknowledged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, TypeVar

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.contrib.equinox.port import heal_tips
from epochal.index import ingestion, marks
from epochal.index.epochs import EpochLimits
from epochal.index.ingestion import Indexing, Ingested, Partition
from epochal.index.marks import LEAF
from epochal.index.wire_batch import Ids
from epochal.layout.changes import Span
from epochal.model.events import Event
from epochal.plan.ops import Get, Op, Refusal, Reply
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_tables
from tests.simulation.exploring import explore, frames, put
from tests.simulation.index_checks import EPOCH, WRITES, Reading, Watch, check_order, closed, item_of
from tests.simulation.index_states import NOTHING, Budget, Past, State
from tests.simulation.index_world import NOW, in_turn, shown

T = TypeVar("T")


@dataclass(slots=True)
class Explorer:
    """Explores all that may happen to `shards`.

    Attributes:
        processes: which shard each process takes batches of; two of one shard overlap.
        batch: records of a batch at most.
        warm: a process keeps its state from one invocation to the next.
        parents: the shard that each was split from, read to its end before it; none where there are none.
        partitions: of the feed, to which the streams of each shard belong.
        pausing: a refused write pauses, and looks at the epoch again.
        leaf: bytes of a leaf of marks at most; 1 splits it at every other mark.
    """

    shards: tuple[tuple[Span, ...], ...]
    processes: tuple[int, ...]
    limits: EpochLimits
    budget: Budget = NOTHING
    batch: int = 2
    warm: bool = False
    parents: tuple[int | None, ...] = ()
    partitions: tuple[int, ...] = ()
    pausing: bool = False
    leaf: int = LEAF
    source: MemoryTables = field(default_factory=memory_tables)
    indexes: list[MemoryTables] = field(default_factory=list)
    reached: list[dict[str, int]] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    performed: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    constants: dict[tuple[int, int], bool] = field(default_factory=dict)
    same: dict[Past, Past] = field(default_factory=dict)
    firsts: dict[bytes, Past] = field(default_factory=dict)
    following: dict[Past, int | None] = field(default_factory=dict)

    def explore(self) -> int:
        """Visit every state; how many there are. Fails with the way that led to one that must not be."""
        streams = memory_tips(self.source)
        # As they were appended: a shard may have them otherwise, and twice.
        for span in sorted({span for shard in self.shards for span in shard}):
            streams.append(span.stream, [Event(type=kind) for kind in span.types])
        first = State(
            tables=self._index_number(self.source),
            working=(None,) * len(self.processes),
            held=(None,) * len(self.processes),
            started=(0,) * len(self.processes),
            done=(0,) * len(self.shards),
            budget=self.budget,
        )
        with pytest.MonkeyPatch.context() as patch:
            # Marks are written with every entry that owes any, so that what comes between two of them comes.
            patch.setattr(ingestion, "MARKS_TOGETHER", 1)
            patch.setattr(marks, "LEAF", self.leaf)
            return explore(first, self._steps, self._check)

    # ------------------------------------------------------------------------------------------------------- the steps

    def _steps(self, state: State) -> Iterator[tuple[str, State]]:
        for place, number in enumerate(state.on_the_way):
            left = state.on_the_way[:place] + state.on_the_way[place + 1 :]
            index, _ = self._perform(state.tables, number)
            yield f"late: {shown(self.ops[number])}", state._replace(tables=index, on_the_way=left)
        for slot, past in enumerate(state.working):
            if past is None:
                yield from self._begin(state, slot)
            else:
                yield from self._go_on(state, slot, past)

    def _begin(self, state: State, slot: int) -> Iterator[tuple[str, State]]:
        shard = self.processes[slot]
        done, spans = state.done[shard], self.shards[shard]
        parent = self.parents[shard] if self.parents else None
        if done == len(spans) or (parent is not None and state.done[parent] < len(self.shards[parent])):
            return
        serial = state.started[slot]
        started = put(state.started, slot, serial + 1)
        for end in range(done + 1, min(done + self.batch, len(spans)) + 1):
            past = Past(f"{slot}.{serial}", shard, done, end, before=state.held[slot])
            begun = state._replace(working=put(state.working, slot, past), started=started)
            yield f"#{past.who} gets {spans[done:end]}", self._settled(begun, slot)
        if state.budget.drops:
            skipped = state._replace(
                done=put(state.done, shard, done + 1),
                dropped=(*state.dropped, spans[done]),
                budget=state.budget.less("drops"),
            )
            yield f"{spans[done]} never arrives", skipped

    def _go_on(self, state: State, slot: int, past: Past) -> Iterator[tuple[str, State]]:
        number = self._next(past)
        if number is None:
            yield from self._finish(state, slot, past)
            return
        index, reply = self._perform(state.tables, number)
        told = state._replace(tables=index, working=put(state.working, slot, self._told(past, reply)))
        yield f"#{past.who} {shown(self.ops[number])}", self._settled(told, slot)
        if isinstance(self.ops[number], WRITES):
            yield from self._mishaps(state, slot, past, number, index)

    def _finish(self, state: State, slot: int, past: Past) -> Iterator[tuple[str, State]]:
        gone = state._replace(
            working=put(state.working, slot, None), held=put(state.held, slot, past if self.warm else None)
        )
        if state.done[past.shard] == past.first:
            yield f"#{past.who} is done", gone._replace(done=put(state.done, past.shard, past.end))
        else:
            yield f"#{past.who} is done, after another", gone
        if state.budget.again:
            yield f"#{past.who} is done, unheard", gone._replace(budget=state.budget.less("again"))
        if state.budget.rests:
            dead = gone._replace(held=put(state.held, slot, None), budget=state.budget.less("rests"))
            yield f"#{past.who} dies in its rest", dead

    def _mishaps(
        self, state: State, slot: int, past: Past, number: int, index: int
    ) -> Iterator[tuple[str, State]]:
        what, budget = shown(self.ops[number]), state.budget
        gone = state._replace(working=put(state.working, slot, None), held=put(state.held, slot, None))
        if budget.crashes:
            gone_once = gone._replace(budget=budget.less("crashes"))
            yield f"#{past.who} crashes before {what}", gone_once
            yield f"#{past.who} crashes after {what}", gone_once._replace(tables=index)
        if budget.late:
            late = gone._replace(on_the_way=(*state.on_the_way, number), budget=budget.less("late"))
            yield f"#{past.who} crashes during {what}", late
        if budget.lost and not past.lost:
            unheard = put(state.working, slot, past._replace(lost=True))
            yield (
                f"#{past.who} {what}, unheard",
                state._replace(tables=index, working=unheard, budget=budget.less("lost")),
            )

    def _settled(self, state: State, slot: int) -> State:
        """Reads of what never changes, done at once."""
        while True:
            past = state.working[slot]
            assert past is not None
            number = self._next(past)
            if number is None or not self._constant(state.tables, number):
                return state
            _, reply = self._perform(state.tables, number)
            state = state._replace(working=put(state.working, slot, self._told(past, reply)))

    def _constant(self, index: int, number: int) -> bool:
        if (index, number) not in self.constants:
            op = self.ops[number]
            epoch = isinstance(op, Get) and EPOCH.fullmatch(op.key["p"]["S"])
            self.constants[index, number] = (not isinstance(op, WRITES) and op.table == "tips") or (  # type: ignore[union-attr]
                bool(epoch) and closed(item_of(self.indexes[index], op.key))  # type: ignore[union-attr]
            )
        return self.constants[index, number]

    # -------------------------------------------------------------------------------------- the generators, and tables

    def _partition_of(self, shard: int) -> int:
        return self.partitions[shard] if self.partitions else 0

    def _told(self, past: Past, number: int) -> Past:
        """An invocation that has been sent one more reply."""
        reply = self.replies[number]
        if past.lost and isinstance(reply, Refusal):
            number = self._reply_number(replace(reply, ambiguous=True))
        return self._same(past._replace(replies=(*past.replies, number), lost=False))

    def _same(self, past: Past) -> Past:
        """The first past found that led to the same state of the generator, whatever it was told before."""
        if past not in self.same:
            partition, made = Partition(number=self._partition_of(past.shard)), count()
            steps, op = self._replay(past, partition, made)
            key = f"{past.who} {past.first} {past.end} {next(made)} {partition} {list(frames(steps))}"
            first = self.firsts.setdefault(hashlib.sha256(key.encode()).digest(), past)
            self.same[past] = first
            self.following[first] = None if op is None else self._number(repr(op), self.ops, op)
        return self.same[past]

    def _next(self, past: Past) -> int | None:
        """What an invocation with this past asks for next; None at its end."""
        return self.following[self._same(past._replace(lost=False) if past.lost else past)]

    def _replay(
        self, past: Past, partition: Partition, made: Iterator[int]
    ) -> tuple[Generator[Op, Any, Ingested], Op | None]:
        if past.before is not None:
            self._replay(past.before, partition, count())
        indexing = Indexing(
            table="index",
            heal=heal_tips("tips"),
            ids=lambda: ids(past.who, next(made)),
            limits=self.limits,
            pause=lambda longest: self.pausing and longest > 0,
        )
        steps = in_turn(indexing.ingest(partition, self.shards[past.shard][past.first : past.end]))
        try:
            op = next(steps)
            for number in past.replies:
                op = steps.send(self.replies[number])
        except StopIteration:
            return steps, None
        return steps, op

    def _perform(self, index: int, number: int) -> tuple[int, int]:
        """What a request makes of an index, and the reply to it."""
        if (index, number) not in self.performed:
            op, tables, after = self.ops[number], self.indexes[index], index
            if isinstance(op, WRITES):
                tables = tables.copy()
                reply = Watch(tables).execute(op)
                after = self._index_number(tables)
            else:
                reply = tables.execute(op)
            self.performed[index, number] = after, self._reply_number(reply)
        return self.performed[index, number]

    def _reply_number(self, reply: Reply) -> int:
        return self._number(repr(reply), self.replies, reply)

    def _index_number(self, tables: MemoryTables) -> int:
        content = sorted(map(repr, tables.items("index")))
        number = self._number(hashlib.sha256(repr(content).encode()).hexdigest(), self.indexes, tables)
        if number == len(self.reached):
            readings = (Reading.whole(tables, partition) for partition in {*self.partitions, 0})
            reached = [check_order(reading.seen, {}) for reading in readings]
            self.reached.append({stream: end for each in reached for stream, end in each.items()})
        return number

    def _number(self, key: str, values: list[T], value: T) -> int:
        if key not in self.numbers:
            self.numbers[key] = len(values)
            values.append(value)
        return self.numbers[key]

    def _check(self, state: State) -> None:
        """At rest, all is indexed, but for streams whose last record never arrived."""
        ends = tuple(map(len, self.shards))
        if state.done != ends or state.on_the_way or any(state.working):
            return
        last = {span.stream: span for span in sorted(span for shard in self.shards for span in shard)}
        due = {stream: span.next for stream, span in last.items() if span not in state.dropped}
        reached = self.reached[state.tables]
        assert due.items() <= reached.items(), f"lost: {due} were appended, {reached} are indexed"


def ids(who: str, number: int) -> Ids:
    """Ids of an invocation's write: its own, and the same in every replay."""
    fresh = hashlib.sha256(f"{who} {number}".encode()).digest()[:16]
    return Ids(etag=fresh.hex(), append_id=fresh, timestamp=NOW)
