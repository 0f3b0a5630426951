"""The indexers of a table's shards under a virtual clock, which rest where they crowd a partition.

Each shard has a mapping, which gathers heads for a window and delivers them as a batch until that is acknowledged, and
a process. Processes die, also in a rest, and are ended where an invocation takes too long; their clocks are set back;
batches come again. `run(seed)` plays a world to its end, and fails with the seed.

    whatever happens      the feed has every event once, each stream in order; the last entry of each partition was
                          notified; a process rests after it has notified, never after a batch that failed, never until
                          its invocation is ended, and the report says for how long
    in fair weather       rests are as long as what others have written asks for, at least and at most (`rest_rules`),
                          and refused writes are spread over half a rest
    otherwise             rests are as long as that at most
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random

import pytest

from epochal.feed.indexer import Indexer, Report
from epochal.feed.stream_records import Record
from epochal.index import crowding, ingestion
from epochal.index.checkpoints import Checkpoint, is_tip
from epochal.index.ingestion import Ingested, Times, no_times
from epochal.layout.changes import Change
from epochal.layout.healing import Heal
from epochal.layout.source import Source
from epochal.model.events import Event
from epochal.pages.port import pages_source
from epochal.plan.failures import Lost, RequestNotApplied
from epochal.plan.ops import Op, Put, Refusal, Reply, Transact, Update
from epochal.plan.values import read_number
from epochal.store.driver import Driver, Meter, Patience
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_streams, memory_tables
from tests.simulation.index_checks import EPOCH, Reading, Watch, check_order, item_of, key_of, writes_of
from tests.simulation.rest_rules import RestRules
from tests.simulation.rest_weather import RestWeather, in_small
from tests.simulation.scheduler import Killed
from tests.simulation.virtual_time import VirtualTime

BATCH = 40
"""Records of a batch at most."""

ENOUGH = 400.0
"""Seconds after which a world that has not come to rest never will."""

PRECISION = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An append to an epoch: events that it has taken, and of which process."""

    partition: int
    process: int
    entries: int


@dataclass(slots=True)
class Seen:
    """What a process may have seen of a partition.

    Attributes:
        rules: what it may make of it.
        since: appends to the index before the last batch in which it looked at the partition.
        written: appends to the index before its own last one, which has seen them all; it may not have had any.
    """

    rules: RestRules = field(default_factory=RestRules)
    since: int | None = None
    written: int = 0


@dataclass(slots=True)
class Process:
    """A process of the function, and what it is at.

    Attributes:
        ends: when its invocation is ended.
        offset: seconds that its clock is ahead of the truth.
        unpublished: whether it has written entries since its last notice.
        rested: seconds of its rest after this batch; None before it.
        resting: whether it is in its rest.
        spread: of how many writes in a row were refused.
        last: length of its last rest, before chance varied it; None if that is not known.
        drawn: its last random number.
    """

    world: RestWorld
    number: int
    ends: float = math.inf
    offset: float = 0.0
    unpublished: bool = False
    rested: float | None = None
    resting: bool = False
    refusals: int = 0
    failed: bool = False
    last: float | None = 0.0
    drawn: float | None = None
    looked: set[int] = field(default_factory=set)
    seen: dict[int, Seen] = field(default_factory=dict)

    def clock(self) -> float:
        """The process's own clock."""
        return self.world.time.now + self.offset

    def luck(self) -> float:
        """Draw a random number."""
        self.drawn = self.world.rng.random()
        return self.drawn

    def sleep(self, seconds: float) -> None:
        """Sleep; what for, and whether it may, the world says."""
        if self.resting:
            self.rested = (self.rested or 0.0) + seconds
        elif not self.failed:
            self.world.check_pause(self, seconds)
        self.wait(seconds)
        if self.resting and self.world.chance(self.world.weather.dies):
            self.world.met["dies in its rest"] += 1
            raise Killed

    def wait(self, seconds: float) -> None:
        """Wait, or until Lambda ends the invocation."""
        time = self.world.time
        if time.now + seconds < self.ends:
            time.wait(seconds)
            return
        assert not self.resting, "an invocation is ended in its rest"
        time.wait(max(0.0, self.ends - time.now))
        self.world.met["is ended"] += 1
        raise Killed

    def execute(self, op: Op) -> Reply:
        """Perform a request in the middle of the time that it takes."""
        world, fate = self.world, self.world.rng.random()
        self.wait(world.weather.request / 2)
        self.failed = True
        if world.chance(world.weather.faults, fate):
            raise RequestNotApplied("throttled")
        reply = world.perform(self, op)
        if world.chance(2 * world.weather.faults, fate):
            raise Lost("cut off")
        if world.chance(2.3 * world.weather.faults, fate):
            world.met["dies at a request"] += 1
            raise Killed
        self.failed = False
        self.wait(world.weather.request / 2)
        return reply

    def publish(self, positions: Mapping[int, Checkpoint]) -> None:
        """Notify of positions, unless that fails."""
        if self.world.chance(self.world.weather.faults):
            raise ConnectionError("the topic is out")
        self.unpublished = False
        for number, position in positions.items():
            self.world.published[number] = max(position, self.world.published.get(number, position))


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedIndexer(Indexer):
    """An indexer whose batches and rests a world looks at."""

    process: Process

    def ingest(self, heal: Heal, partition: int, changes: list[Change], times: Times = no_times) -> Ingested:
        """Index changes; what others have written meanwhile is taken into account."""
        process, begun = self.process, len(self.process.world.log)
        process.refusals = 0
        process.looked.discard(partition)
        try:
            ingested = Indexer.ingest(self, heal, partition, changes, times)
        except BaseException:
            process.seen.pop(partition, None)
            raise
        process.world.end_batch(process, partition, begun, len(changes))
        return ingested

    def rest(self, partitions: Iterable[int], deadline: float = math.inf) -> float:
        """Rest, if it may."""
        process, numbers = self.process, list(partitions)
        process.resting, process.drawn = True, None
        try:
            seconds = Indexer.rest(self, numbers, deadline)
        finally:
            process.resting = False
        process.world.check_rest(process, numbers, deadline)
        return seconds


@dataclass(slots=True)
class RestWorld:
    """A table, its shards, and their indexers."""

    rng: Random
    weather: RestWeather
    tables: MemoryTables = field(default_factory=memory_tables)
    log: list[Written] = field(default_factory=list)
    published: dict[int, Checkpoint] = field(default_factory=dict)
    met: Counter[str] = field(default_factory=Counter)
    types: dict[str, list[str]] = field(default_factory=dict)
    time: VirtualTime = field(init=False)
    source: Source = field(init=False)
    streams: Streams = field(init=False)
    watch: Watch = field(init=False)
    _versions: dict[str, int] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=count)
    _changes: int = 0

    def __post_init__(self) -> None:
        self.time = VirtualTime(self.rng)
        self.source = pages_source("streams", self.weather.partitions)
        self.streams = replace(memory_streams(self.tables), fresh=self.rng.randbytes, now=lambda: 10**18)
        self.watch = Watch(self.tables)

    def play(self) -> None:
        """Everything that happens; then everything is in the feed, in order, and has been notified."""
        for shard in range(self.weather.shards):
            self.time.begin(lambda shard=shard: self._follow(shard))  # type: ignore[misc]
        self.time.run()
        reached: dict[str, int] = {}
        for number in range(self.source.base, self.source.base + self.weather.partitions):
            reading = Reading.whole(self.tables, number)
            reached |= check_order(reading.seen, {}, lambda stream, index: self.types[stream][index])
            assert self.published.get(number, reading.start) == reading.walk.at, "an entry was never notified"
        truth = {stream: len(types) for stream, types in self.types.items()}
        assert reached == truth, f"lost: {truth} were appended, {reached} are indexed"

    def chance(self, probability: float, luck: float | None = None) -> bool:
        """Whether something happens that does so with this probability."""
        return probability > 0 and (self.rng.random() if luck is None else luck) < probability

    # Mappings: each follows a shard.

    def _follow(self, shard: int) -> None:
        """Deliver a shard's heads in batches, each until it is acknowledged."""
        process, due = self._start(), self._heads(shard)
        while due:
            self.time.wait(max(0.0, due[0][0] - self.time.now))
            self.time.wait(self._window())
            records: list[Record] = []
            while due and due[0][0] <= self.time.now and len(records) < BATCH:
                records += self._append(due.pop(0)[1])
            if self.chance(self.weather.restarts):
                process = self._start()
            process = self._deliver(process, records)
            if self.chance(self.weather.again):
                self.met["comes again"] += 1
                self.time.begin(lambda records=records: self._deliver(self._start(), records))  # type: ignore[misc]

    def _window(self) -> float:
        """How long a mapping gathers changes that begin to come now."""
        window = self.weather.window
        return window - self.time.now % window if self.weather.together and window else window

    def _deliver(self, process: WatchedIndexer, records: list[Record]) -> WatchedIndexer:
        """Deliver a batch until it succeeds; return the process that is left."""
        while True:
            assert self.time.now < ENOUGH, "the indexers do not come to rest"
            try:
                report = self._invoke(process, records)
            except Killed:
                process = self._start()
                continue
            numbers = [record.sequence_number for record in records]
            if not report.failed:
                return process
            records = records[min(map(numbers.index, report.failed)) :]

    def _invoke(self, indexer: WatchedIndexer, records: list[Record]) -> Report:
        process, weather = indexer.process, self.weather
        if self.chance(weather.set_back):
            process.offset -= self.rng.choice((0.5, 1.0, 5.0)) * self.rng.random()
        process.rested, process.ends = None, self.time.now + weather.timeout
        report = indexer.index(records, weather.timeout)
        assert not report.set_aside
        rested = process.rested or 0.0
        assert report.rested == rested, f"the report says {report.rested} s, but it rested for {rested} s"
        assert not (report.failed and rested), "it rests after a batch that failed"
        self.met["rests"] += rested > 0
        self.met["fails"] += bool(report.failed)
        return report

    def _start(self) -> WatchedIndexer:
        process = Process(self, next(self._numbers))
        driver = Driver(
            execute=process.execute,
            meter=Meter(),
            patience=Patience(seconds=0.4, first=0.02, longest=0.1),
            clock=process.clock,
            sleep=process.sleep,
            luck=process.luck,
        )
        return WatchedIndexer(
            driver=driver,
            index_table="index",
            sources=(self.source,),
            limits=self.weather.limits,
            now=lambda: int((1_700_000_000 + self.time.now) * 1e9),
            fresh=self.rng.randbytes,
            publish=process.publish,
            process=process,
        )

    def _heads(self, shard: int) -> list[tuple[float, str]]:
        """When heads of a shard are appended, and of which streams."""
        heads, moment = list[tuple[float, str]](), 0.0
        names = self._names(shard)
        while True:
            rate = self.weather.busy[moment > self.weather.seconds / 2]
            moment += self.rng.expovariate(rate)
            if moment > self.weather.seconds:
                return heads
            heads.append((moment, self.rng.choice(names)))

    def _names(self, shard: int) -> list[str]:
        """Streams of a shard: most are in the first partition."""
        names = [f"S-{shard}-{number}" for number in range(16)]
        if self.weather.partitions == 1:
            return names
        first = [name for name in names if self.source.partition_of(name) == self.source.base]
        return [*first * 4, *(name for name in names if name not in first)]

    def _append(self, stream: str) -> list[Record]:
        types = self.types.setdefault(stream, [])
        types.append(f"{stream}:{len(types)}")
        self.streams.append(stream, [Event(type=types[-1])])
        images = self.tables.changes("streams")
        fresh = range(self._changes, len(images))
        self._changes = len(images)
        return [
            Record(table="streams", sequence_number=f"{number:021d}", image=images[number])
            for number in fresh
        ]

    # The index: who has written what to it.

    def perform(self, process: Process, op: Op) -> Reply:
        """Perform a request, and note what it appends to an epoch."""
        reply = self.watch.execute(op)
        for key in _keys(op):
            epoch = EPOCH.fullmatch(key["p"]["S"])
            if epoch is None:
                continue
            process.looked.add(int(epoch[1]))
            if isinstance(reply, Refusal):
                process.refusals += is_tip(key)
            elif isinstance(op, Put | Update | Transact):
                self._note(process, int(epoch[1]), key["p"]["S"])
        return reply

    def _note(self, process: Process, partition: int, name: str) -> None:
        item = item_of(self.tables, {"p": {"S": name}, "i": {"N": "2147483647"}})
        version = (read_number(item, "n") if item else None) or 0
        entries = version - self._versions.get(name, 0)
        if entries > 0:
            self._versions[name] = version
            self.log.append(Written(partition=partition, process=process.number, entries=entries))
            process.unpublished, process.refusals = True, 0

    def others(self, process: Process, partition: int, start: int, end: int | None = None) -> int:
        """How many entries others have written to a partition, between two places of the log."""
        return sum(
            written.entries
            for written in self.log[start:end]
            if written.partition == partition and written.process != process.number
        )

    def end_batch(self, process: Process, partition: int, begun: int, changes: int) -> None:
        """Take a partition's part of a batch into account, which began when the log had so many appends."""
        seen = process.seen.setdefault(partition, Seen())
        fewest, highest = 0, self.others(process, partition, begun if seen.since is None else seen.since)
        if self.weather.fair:
            last = max(
                place
                for place, written in enumerate(self.log)
                if written.partition == partition and written.process == process.number
            )
            fewest = highest = self.others(process, partition, seen.written, last)
            seen.written = last
        seen.rules.end_batch(process.clock(), fewest, highest, changes)
        if partition in process.looked:
            seen.since = begun

    # Rules.

    def check_rest(self, process: Process, partitions: list[int], deadline: float) -> None:
        """Judge a rest that is over, or that there was none."""
        seconds = process.rested or 0.0
        rules = [process.seen[number].rules for number in partitions if number in process.seen]
        least = max((rule.least for rule in rules), default=0.0)
        most = max((rule.most for rule in rules), default=0.0)
        assert seconds <= 1.25 * crowding.LONGEST, f"a rest of {seconds} s is too long"
        if not seconds:
            hurried = deadline - process.clock() < PRECISION
            assert hurried or least < PRECISION, f"no rest in a crowd, which asks for {least} s"
            process.last = 0.0
            return
        assert not process.unpublished or self.weather.faults, "it rests before it has notified"
        assert process.drawn is not None, "rests do not vary"
        length = seconds / (0.75 + process.drawn / 2)
        cut = seconds > (deadline - process.clock()) - PRECISION
        process.last = None if cut else length
        assert length <= most + PRECISION, f"a rest of {length} s, where {most} s are due at most"
        assert cut or length >= least - PRECISION, f"a rest of {length} s, where {least} s are due at least"
        self.met["is cut short"] += cut

    def check_pause(self, process: Process, seconds: float) -> None:
        """Judge a pause of a process that another one has refused."""
        assert process.rested is None, "it pauses after its rest"
        # Elsewhere a partition may be more crowded than the last rest shows.
        shown = self.weather.fair and self.weather.partitions == 1
        last = process.last if shown and process.last is not None else crowding.LONGEST
        longest = max(ingestion.MOST_SPREAD, last / 2) + PRECISION
        assert seconds <= longest, f"a pause of {seconds} s, where a spread of {longest} s is due at most"
        if not shown or process.last is None or not process.refusals or not process.drawn:
            return
        spread, due = seconds / process.drawn, ingestion.LEAST_SPREAD * 2.0 ** (process.refusals - 1)
        least = min(due, last / 2) - PRECISION
        assert spread >= least, f"a spread of {spread} s, where {least} s are due"
        self.met["is spread over half a rest"] += spread > ingestion.MOST_SPREAD + PRECISION


def _keys(op: Op) -> list[dict[str, dict[str, str]]]:
    """Items that a request reads or writes by key."""
    if isinstance(op, Put | Update | Transact):
        return [key_of(write) for write in writes_of(op)]  # type: ignore[misc]
    key = getattr(op, "key", None)
    return [key] if key is not None and "p" in key else []


def run(seed: int) -> RestWorld:
    """Play one world to its rest; an `AssertionError` names the seed."""
    rng = Random(seed)
    world = RestWorld(rng=rng, weather=RestWeather.draw(rng))
    try:
        with pytest.MonkeyPatch.context() as patch:
            in_small(patch)
            world.play()
    except Exception as failure:
        raise AssertionError(f"seed {seed}: {failure!r}\n{world.weather}") from failure
    return world
