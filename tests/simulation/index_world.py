"""The indexer's generators under a scheduler that a seed decides: who goes on next, and what befalls each request.

A source whose appends go to shards, by stream; invocations that take batches of a shard and may overlap, crash, lose
answers, come too late or be started again on batches long done; readers of the feed beside them. The source is of any
layout (`index_writers`). `run(seed, layout)` plays one world to its rest and fails with the seed and what was done.
Whoever wants to see it again runs the same seed.

What must hold is `index_checks`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, TypeVar

import pytest

from epochal.index import ingestion, marks
from epochal.index.ingestion import Indexing, Partition
from epochal.index.wire_batch import Ids
from epochal.layout.changes import Change, Removal
from epochal.layout.healing import Gap, Heal, Healed
from epochal.layout.source import Source
from epochal.plan.ops import Op, Refusal, Reply, Several, Steps
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_tables
from tests.simulation.index_checks import Reading, Watch, check_feed
from tests.simulation.index_weather import Weather
from tests.simulation.index_writers import Writer, changes_of, writer_of

T = TypeVar("T")

NOW = "2013-01-01T00:00:00.0000000+00:00"
PATIENCE = 4_000
"""Turns after which a world that has not come to rest never will: the longest take a tenth of it."""


@dataclass(slots=True)
class Shard:
    """What the records of some streams tell, in order.

    Attributes:
        done: records before this one have been acknowledged.
        delivered: for the first record of a batch, how many epochs had closed when it was first delivered.
    """

    changes: list[Change] = field(default_factory=list)
    done: int = 0
    delivered: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Invocation:
    """One run of the indexer on records `first` to `end` - 1 of a shard, held up before `op`.

    Attributes:
        lost: an earlier try of `op` may have been applied.
    """

    name: str
    shard: Shard
    first: int
    end: int
    held: Partition
    steps: Generator[Op, Any, Any]
    op: Op | None = None
    lost: bool = False

    def go_on(self, reply: Reply | None) -> None:
        """Until its next request, or its end."""
        if self.lost and isinstance(reply, Refusal):
            reply = replace(reply, ambiguous=True)
        self.lost = False
        try:
            self.op = self.steps.send(reply)
        except StopIteration:
            self.op = None


@dataclass(slots=True)
class World:
    """A source, its shards, and everyone at work on its index.

    Attributes:
        held: what invocations that ended well hold, for later ones in the same processes.
        on_the_way: requests whose senders are gone and that have not arrived yet.
        told: what has happened, a line for each turn.
        late: records that are on their way to their shard, where changes come twice and in any order.
        met: how often what the seeds are to bring about has come about.
    """

    rng: random.Random
    weather: Weather
    layout: str = "tips"
    tables: MemoryTables = field(default_factory=memory_tables)
    invocations: list[Invocation] = field(default_factory=list)
    held: list[Partition] = field(default_factory=list)
    on_the_way: list[Op] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    late: list[Change] = field(default_factory=list)
    met: Counter[str] = field(default_factory=Counter)
    pruned: dict[str, int] = field(default_factory=dict)
    shards: list[Shard] = field(init=False)
    writer: Writer = field(init=False)
    watch: Watch = field(init=False)
    left: int = field(init=False)
    seen: int = 0
    calm: bool = False
    cared_for: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self.shards = [Shard() for _ in range(self.weather.shards)]
        self.writer = writer_of(self.layout, self.tables, self.rng)
        self.watch = Watch(self.tables)
        self.left = self.weather.appends

    # ------------------------------------------------------------------------------------------------------- the turns

    def play(self) -> None:
        """Turn by turn to rest; then once more in fair weather, so that what was dropped is found."""
        while not self._at_rest():
            self._turn()
        self.calm = True
        for stream in sorted(self.writer.types):
            self._append([stream])
        while not self._at_rest():
            self._turn()
        removed = self._removed()
        cared_for = self.cared_for
        check_feed(self.tables, self.writer.types, self.pruned, self.readings, removed, cared_for=cared_for)

    def _removed(self) -> dict[str, int]:
        """The mark of the last removal of each stream that a record has told."""
        told = [each for shard in self.shards for each in shard.changes if isinstance(each, Removal)]
        return {
            stream: max(each.mark for each in told if each.stream == stream)
            for stream in {each.stream for each in told}
        }

    def _at_rest(self) -> bool:
        working = self.left or self.invocations or self.on_the_way or self.late
        return not working and all(shard.done == len(shard.changes) for shard in self.shards)

    def _turn(self) -> None:
        assert len(self.told) < PATIENCE, "the index does not come to rest"
        self.rng.choice(self._possible())()

    def _possible(self) -> Sequence[Callable[[], object]]:
        """Everything that can happen now, as often as it is likely."""
        turns: list[Callable[[], object]] = []
        turns += [self._write] * bool(self.left)
        turns += [partial(self._step, each) for each in self.invocations] * 3
        turns += [partial(self._land, op) for op in self.on_the_way]
        turns += [partial(self._arrive, change) for change in self.late]
        if len(self.invocations) < self.weather.invocations:
            turns += [partial(self._deliver, shard) for shard in self.shards if shard.changes]
        return [*turns, self._read]

    def _chance(self, probability: float) -> bool:
        return not self.calm and self.rng.random() < probability

    def _tell(self, what: str) -> None:
        self.told.append(what)

    # ------------------------------------------------------------------------------------------------------ the source

    def _write(self) -> None:
        self.left -= 1
        streams = [f"S-{self.rng.randrange(self.weather.streams)}" for _ in range(self.rng.randint(1, 2))]
        stream = streams[0]
        if stream in self.writer.types and self._chance(self.weather.prunes):
            before = self.rng.randint(0, len(self.writer.types[stream]))
            if self.writer.prune(stream, before):
                self.pruned[stream] = max(before, self.pruned.get(stream, 0))
                self._tell(f"{stream} is pruned below {before}")
        else:
            self._append(streams)

    def _append(self, streams: list[str]) -> None:
        self.writer.append(streams)
        for stream in streams:
            self._tell(f"{stream} has {len(self.writer.types.get(stream, ()))} events")
        self._to_shards()

    def _to_shards(self) -> None:
        changes, self.seen = changes_of(self.writer, self.tables, self.seen)
        for change in changes:
            if self._chance(self.weather.drops):
                self._tell(f"{change} never arrives")
            else:
                self._send(change)

    def _send(self, change: Change) -> None:
        """To its shard; or, as DynamoDB sends changes to Kinesis, once more as well, and later than others."""
        copies = 2 if self.weather.jumbled and self._chance(self.weather.jumbled) else 1
        for _ in range(copies):
            if self.weather.jumbled and self._chance(self.weather.jumbled):
                self.late.append(change)
            else:
                self._shard_of(change).changes.append(change)

    def _arrive(self, change: Change) -> None:
        self.late.remove(change)
        shard = self._shard_of(change)
        self.met["comes after a later one"] += not is_last(change, shard.changes)
        self.met["comes twice"] += change in shard.changes
        self._tell(f"{change} arrives")
        shard.changes.append(change)

    def _shard_of(self, change: Change) -> Shard:
        return self.shards[int(change.stream[2:]) % len(self.shards)]

    # ------------------------------------------------------------------------------------------------- the invocations

    def _deliver(self, shard: Shard) -> None:
        """A batch to an invocation: the next one, or any other that has been there before."""
        if self._chance(self.weather.again):
            first = self.rng.randrange(len(shard.changes))
        else:
            first = shard.done
            at_it = any(each.shard is shard and each.first == first for each in self.invocations)
            if at_it or first == len(shard.changes):
                return
        end = min(len(shard.changes), first + self.rng.randint(1, self.weather.batch))
        held = Partition(number=0)
        if self.held and self._chance(self.weather.stale):
            held = self.held.pop(self.rng.randrange(len(self.held)))
        rolled = self.watch.closed - shard.delivered.setdefault(first, self.watch.closed)
        self.met[f"delivered again after {min(rolled, 3)} rollovers"] += 1
        steps = in_turn(self._indexing().ingest(held, shard.changes[first:end]), self.rng.shuffle)
        name = f"#{len(self.told)}"
        invocation = Invocation(name=name, shard=shard, first=first, end=end, held=held, steps=steps)
        self._tell(f"{name} gets {shard.changes[first:end]} holding {epoch_of(held)}")
        self.invocations.append(invocation)
        invocation.go_on(None)
        self._end(invocation)

    def _indexing(self) -> Indexing:
        def ids() -> Ids:
            return Ids(etag=self.rng.randbytes(16).hex(), append_id=self.rng.randbytes(16), timestamp=NOW)

        heal = heal_of(self.writer.source)
        if self.weather.pieces:
            heal = in_pieces(heal)
        return Indexing(table="index", heal=heal, ids=ids, limits=self.weather.limits)

    def _step(self, invocation: Invocation) -> None:
        op = invocation.op
        assert op is not None
        who = invocation.name
        if not self._chance(self.weather.faults):
            self._tell(f"{who} {shown(op)}")
            invocation.go_on(self.watch.execute(op))
            self._end(invocation)
            return
        fate = self.rng.choice(FATES)
        self.met[fate] += 1
        self._tell(f"{who} {fate} {shown(op)}")
        if fate in ("is not answered on", "crashes after"):
            self.watch.execute(op)
        if fate == "crashes with, under way,":
            self.on_the_way.append(op)
        if fate.startswith("crashes"):
            self.crash(invocation)
        invocation.lost = invocation.lost or fate in ("loses", "is not answered on")

    def crash(self, invocation: Invocation) -> None:
        """An invocation's process is gone, and what it held with it."""
        self.invocations.remove(invocation)

    def _land(self, op: Op) -> None:
        self.on_the_way.remove(op)
        self._tell(f"late: {shown(op)}")
        self.watch.execute(op)

    def _end(self, invocation: Invocation) -> None:
        if invocation.op is not None:
            return
        self.invocations.remove(invocation)
        self.held.append(invocation.held)
        shard = invocation.shard
        if self._chance(self.weather.again):
            self._tell(f"{invocation.name} is done, and nobody hears of it")
        elif shard.done == invocation.first:
            shard.done = invocation.end

    # ----------------------------------------------------------------------------------------------------- the readers

    def _read(self) -> None:
        """A reader takes its next page, or a new one begins where another has been."""
        if not self.readings or self._chance(0.05):
            begun = self.rng.choice(self.readings) if self.readings else None
            self.readings.append(Reading.resumed(begun))
        self.rng.choice(self.readings).read(self.tables)
        self._tell("a reader reads")


FATES = (
    "is throttled on",
    "loses",
    "is not answered on",
    "crashes before",
    "crashes after",
    "crashes with, under way,",
)


def is_last(change: Change, before: Sequence[Change]) -> bool:
    """Whether none of its stream that was appended later came before it."""
    end = getattr(change, "next", 0)
    return all(each.stream != change.stream or getattr(each, "next", 0) <= end for each in before)


def in_turn(
    steps: Steps[T], arrange: Callable[[list[int]], object] = lambda order: order
) -> Generator[Op, Any, T]:
    """The same steps with what may go out side by side one after the other, as `arrange` puts it: whatever comes of a
    request comes between two others.
    """
    step: Op | Several
    try:
        step = next(steps)
        while True:
            if isinstance(step, Several):
                order = list(range(len(step.ops)))
                arrange(order)
                replies: dict[int, Reply] = {}
                for place in order:
                    replies[place] = yield step.ops[place]
                step = steps.send([replies[place] for place in sorted(replies)])
            else:
                step = steps.send((yield step))
    except StopIteration as end:
        outcome: T = end.value
        return outcome


def epoch_of(held: Partition) -> str:
    """Which epoch an invocation believes to be active."""
    return "nothing" if held.loaded is None else f"epoch {held.loaded.active.number}"


def shown(op: Op) -> str:
    """A request in a few words."""
    key = getattr(op, "key", None) or getattr(op, "item", None) or {}
    return f"{type(op).__name__} {key.get('p', {}).get('S', getattr(op, 'keys', ''))}"


def heal_of(source: Source) -> Heal:
    """How a source's gaps are healed."""
    return source.heal


def in_pieces(heal: Heal) -> Heal:
    """The same in pieces of one event, as if each were as large as a piece may be."""

    def healed(gap: Gap) -> Steps[Healed]:
        found = yield from heal(gap)
        if found.events <= 1:
            return found
        first = found.spans[0]
        return Healed(spans=[first._replace(types=first.types[:1])], whole=False)

    return healed


def run(seed: int, layout: str = "tips", *, jumbled: float = 0.0) -> World:
    """Play one world to its rest; an `AssertionError` names the seed and tells what was done."""
    rng = random.Random(seed)
    weather = replace(Weather.draw(rng), jumbled=jumbled)
    world = World(rng=rng, weather=weather, layout=layout)
    try:
        with pytest.MonkeyPatch.context() as patch:
            # Marks go out with every entry that owes any, and in some worlds leaves split.
            patch.setattr(ingestion, "MARKS_TOGETHER", 1)
            patch.setattr(marks, "LEAF", (marks.LEAF, 40, 1)[seed % 3])
            world.play()
    except Exception as failure:
        story = "\n".join(f"  {turn:4} {what}" for turn, what in enumerate(world.told))
        raise AssertionError(f"seed {seed} of {layout}: {failure!r}\n{world.weather}\n{story}") from failure
    return world
