"""Everything at once: writers of all three layouts, a pruner, indexers over the tables' streams, a topic, the
queues of two groups, their reactors, an operator, and someone who looks after the index.

    tips, snapshot, tags → shards → indexers → index, topic → queues → reactors → handlers

All share one database and one scheduler. A seed says who comes next, which requests are throttled, lost, unanswered or
late, which processes die and where, which shards split, which batches come twice, are withheld or given up for lost,
what the topic refuses, what handlers fail at, and how wrong clocks are. When everyone is done fair weather comes, and
then all must be well (`system_checks`).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from epochal.care.auditor import Auditor
from epochal.care.mender import Mender
from epochal.care.repair import Repairer
from epochal.care.verify import Verifier
from epochal.contrib.equinox.port import tips_source
from epochal.contrib.equinox.streams import Tips
from epochal.contrib.event_store_adapter.history import AggregateHistory
from epochal.contrib.event_store_adapter.port import journal_source
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.contrib.sekiban.history import TagHistory
from epochal.contrib.sekiban.port import dcb_source
from epochal.contrib.sekiban.store import DcbEvents
from epochal.errors import Unavailable
from epochal.feed.index_writer import publish_nothing
from epochal.feed.indexer import Indexer, Report
from epochal.feed.reader import FeedReader
from epochal.feed.stream_history import StreamHistory
from epochal.layout.registry import layout_names, source_of
from epochal.layout.source import Source
from epochal.layout.tables import store_tables
from epochal.plan.ops import Execute, Op, Put, Reply, Transact, Update
from epochal.reactions.definition import OnFailure, Reaction
from epochal.store.driver import Driver
from epochal.store.streams import Streams
from epochal.testing.memory import Faults
from tests.layouts.stores import JOURNAL, tag_site
from tests.simulation.dcb_world import Tables
from tests.simulation.fifo import FifoQueue, FifoTopic, publishing
from tests.simulation.group_checks import Group
from tests.simulation.histories import schedule
from tests.simulation.index_checks import WRITES, Watch, key_of, writes_of
from tests.simulation.index_event_source import EventSource, Function, IndexerFunction
from tests.simulation.scheduler import PAUSE, Body, Killed, Pause, Process, alone, mortal, run
from tests.simulation.system_reactions import Consumer, attending, operating
from tests.simulation.system_weather import Weather
from tests.simulation.system_writers import STREAMS, Writers
from tests.simulation.table_streams import Shard, TableStream
from tests.simulation.world import NOON, Calm, bytes_of, driver_on

SKEW = 10**12
"""Nanoseconds that a clock may be wrong by, either way."""

AT_ONCE = 4
"""Records of a batch at most."""


@dataclass
class System:
    """A deployment, and everyone at work on it.

    Attributes:
        networks: of each process.
        mappings: of the tables' streams to functions.
        wrong: what was written to the index that must never be.
        met: how often what the seeds are to bring about has come about.
        untold: partitions that an indexer could not tell of even when their records came again, and how far they were.
    """

    seed: int
    tables: Tables = field(default_factory=lambda: Tables(store_tables()))
    clock: Calm = field(default_factory=Calm)
    processes: dict[str, Process] = field(default_factory=dict)
    networks: list[Faults] = field(default_factory=list)
    mappings: list[EventSource] = field(default_factory=list)
    wrong: list[AssertionError] = field(default_factory=list)
    met: Counter[str] = field(default_factory=Counter)
    untold: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.luck = random.Random(self.seed)
        self.weather = Weather.draw(self.luck)
        self.watch = Watch(self.tables)
        self.writers = Writers(self.seed, self.tables)
        self.sources = self._sources()
        self.heads = [TableStream(self.tables, source.table) for source in self.sources]
        self.consumers = [
            self._consumer("board", "park", frozenset(layout_names())),
            self._consumer("ledger", "block", frozenset({self.weather.ledger})),
        ]
        queues = tuple(each.queue for each in self.consumers)
        self.topic = FifoTopic(clock=self.clock, queues=queues, refuses=self.weather.refuses, seed=self.seed)

    # ---------------------------------------------------------------------------------------------- what is deployed

    def _sources(self) -> tuple[Source, ...]:
        count = self.weather.partitions
        site = tag_site(type_heads=self.writers.tagged.world.type_heads)
        return (
            tips_source("tips", count["tips"]),
            journal_source(JOURNAL, count["journal"]),
            dcb_source(site, count["dcb"]),
        )

    def _consumer(self, name: str, on_failure: OnFailure, sources: frozenset[str]) -> Consumer:
        group = Group.drawn(name, self.tables, self.luck, STREAMS)
        group.excused = lambda stream, index: index < self.writers.low_water(stream)
        reaction = Reaction(
            name=name,
            handler=group.handler(self.clock.sleep),
            sources=sources,
            max_events=2,
            attempts=2,
            parallel=1,
            on_failure=on_failure,
        )
        return Consumer(
            reaction=reaction,
            group=group,
            queue=FifoQueue(clock=self.clock, undeleted=self.weather.again, seed=self.seed),
            partitions=tuple(number for number in self.partitions if source_of(number) in sources),
            clock=self.clock,
            reader=self.reader,
            now=self._now(),
        )

    @property
    def partitions(self) -> tuple[int, ...]:
        """Partitions of the feed, of all sources."""
        return tuple(source.base + number for source in self.sources for number in range(source.partitions))

    def reader(self, driver: Driver) -> FeedReader:
        """Return a reader of the feed with its events."""
        site = tag_site(type_heads=self.writers.tagged.world.type_heads)
        return FeedReader(
            driver=driver,
            table="index",
            histories=(
                StreamHistory(Streams(driver=driver, table="tips", layout=Tips())),
                AggregateHistory(AggregateStore(driver=driver, site=JOURNAL)),
                TagHistory(DcbEvents(driver=driver, site=site)),
            ),
        )

    def _indexer(self, name: str, execute: Execute) -> Indexer:
        return Indexer(
            driver=driver_on(execute),
            index_table="index",
            sources=self.sources,
            limits=self.weather.limits,
            now=self._now(),
            fresh=bytes_of(name),
            publish=publishing(self.topic, execute),
        )

    def mender(self, name: str, execute: Execute) -> Mender:
        """Return a mender of the index, as its caretakers use it."""
        return Mender(
            driver=driver_on(execute, self.clock),
            index_table="index",
            limits=self.weather.limits,
            now=self._now(),
            fresh=bytes_of(name),
            publish=publishing(self.topic, execute),
        )

    def _now(self) -> Callable[[], int]:
        """Return the clock of a process."""
        skew = self.luck.choice((0, SKEW, -SKEW))
        return lambda: NOON + skew

    def perform(self, op: Op) -> Reply:
        """The tables; whatever is written to the index is looked at, and what is wrong with it kept: a function that
        raises is only invoked again.
        """
        if not isinstance(op, WRITES) or writes_of(op)[0].table != "index":
            return self.tables.execute(op)
        try:
            return self._written(op)
        except AssertionError as error:
            self.wrong.append(error)
            raise

    def _written(self, op: Put | Update | Transact) -> Reply:
        reply = self.watch.write(op)
        name = key_of(writes_of(op)[0])["p"]["S"]
        if name.startswith("$ReaderCheckpoint-"):
            _, partition, group = name.split("_")
            self.group(group).judge(int(partition))
        return reply

    def group(self, name: str) -> Group:
        """Return a group by its name."""
        return next(each.group for each in self.consumers if each.group.name == name)

    # ------------------------------------------------------------------------------------------ who is at work on it

    def play(self) -> None:
        """Run everyone until all are done; then let a system without faults come to rest."""
        for number in range(2):
            self._begin_writing(f"writer {number}", self.writers.writer)
        self._begin_writing("pruner", self.writers.pruner)
        for number in range(2):
            self._begin(f"indexer {number}", self._indexing)
        self._begin("care", self._caring)
        for number in range(2):
            self._begin(f"reactor {number}", self._reacting)
        self._begin("operator", self._operating)
        run(self.processes, self.luck.choice)
        self.tables.settle()
        for network in self.networks:
            network.land()
        self._judge()
        self._note()
        self._settle()
        self._judge()

    def _judge(self) -> None:
        for error in self.wrong:
            raise error

    def _note(self) -> None:
        """What has come about by now."""
        for consumer in self.consumers:
            self.met += consumer.group.met
            self.met["handled"] += len(consumer.group.handled)
            self.met["dead-lettered"] += len(consumer.queue.dead)
            self.met["died reacting"] += sum(isinstance(each, Killed) for each in consumer.queue.raised)
        self.met["given up"] += sum(len(each.given_up) for each in self.mappings)
        self.met["split"] += sum(len(each.shards) > 1 for each in self.heads)
        self.met["closed"] += self.watch.closed
        self.met["pruned"] += sum(map(self.writers.low_water, STREAMS))

    def _begin_writing(self, name: str, work: Callable[[random.Random, str, int | None], Body]) -> None:
        luck = self._own()
        execute = self.writers.execute(luck, self.weather.faults)
        body = work(luck, f"{self.seed} {name}", self.weather.lifetime(luck))
        self._start(name, execute, body)

    def _begin(self, name: str, work: Callable[[str, random.Random], Body]) -> None:
        self._start(name, self.perform, work(name, self._own()))

    def _start(self, name: str, execute: Execute, body: Body) -> None:
        network = Faults(execute, schedule(self.luck, self.weather.faults, 100))
        self.networks.append(network)
        self.processes[name] = Process(name, network.execute, body)

    def _own(self) -> random.Random:
        return random.Random(self.luck.random())

    def _over(self, *kinds: str) -> bool:
        """Return whether everyone of these kinds is done."""
        return all(process.done for name, process in self.processes.items() if name.startswith(kinds))

    def _indexing(self, name: str, luck: random.Random) -> Body:
        """Simulate Lambda, which passes the changes of the tables of heads to an indexer."""

        def body(execute: Execute) -> None:
            function = IndexerFunction(
                lambda number: self._indexer(
                    f"{name} {number}", mortal(execute, self.weather.lifetime(luck))
                ),
                self._reported,
            )
            source = self._mapping(function, self.weather.retries)
            self._attend(execute, self.heads, source, luck, ("writer", "pruner"))

        return body

    def _reported(self, report: Report) -> None:
        """An indexer could not tell the topic. Where the batch comes again, it is not over."""
        if report.notice_error is not None:
            self.met["told again" if report.failed else "untold"] += 1
            if not report.failed:
                self.untold |= {number: self._end(number) for number in report.by_partition}

    def _end(self, number: int) -> int:
        return self.consumers[0].group.feed(number).walk.at

    def _mapping(self, function: Function, retries: int) -> EventSource:
        self.mappings.append(EventSource(function, retries=retries, again=self.weather.again))
        return self.mappings[-1]

    def _attend(
        self,
        execute: Execute,
        streams: Sequence[TableStream],
        source: EventSource,
        luck: random.Random,
        kinds: tuple[str, ...],
    ) -> None:
        """Deliver the changes in streams as long as anyone of these kinds is at work."""

        def ready() -> list[Shard]:
            return [shard for stream in streams for shard in stream.ready()]

        while True:
            execute(Pause(lambda: bool(ready()) or self._over(*kinds)))
            shards = ready()
            if not shards:
                return
            if luck.random() < self.weather.splits:
                luck.choice(streams).split()
            if luck.random() >= self.weather.withheld:
                with luck.choice(shards).next(luck.randint(1, AT_ONCE)) as batch:
                    execute(PAUSE)
                    source.deliver_batch(batch, luck)

    def _reacting(self, name: str, luck: random.Random) -> Body:
        return attending(
            self.consumers,
            luck,
            self.weather,
            lambda: self._over("writer", "pruner", "indexer", "care"),
            name,
        )

    def _operating(self, name: str, luck: random.Random) -> Body:
        return operating(self.consumers[0], luck, self.weather, lambda: self._over("reactor"), name)

    def _caring(self, name: str, luck: random.Random) -> Body:
        """Audit or repair the index from time to time."""

        def body(execute: Execute) -> None:
            for life in range(luck.randrange(3)):
                for _ in range(luck.randrange(40)):
                    execute(PAUSE)
                mender = self.mender(f"{name} {life}", mortal(execute, self.weather.lifetime(luck)))
                care = luck.choice((self._audit, self._repair))
                try:
                    care(mender)
                except (Killed, Unavailable):
                    self.met["left to schedules"] += 1

        return body

    def _audit(self, mender: Mender) -> int:
        """Audit the index, and return the number of streams of which it lacked events."""
        return Auditor(mender=mender, sources=self.sources).audit(60.0).missing

    def _repair(self, mender: Mender) -> None:
        """Repair the index as the command does, without a topic."""
        mender = replace(mender, publish=publish_nothing)
        for done in Repairer(Verifier(mender=mender, sources=self.sources)).repair():
            assert done.finding.kind in ("missing", "unregistered"), done
            self.met["left to schedules"] += 1

    # -------------------------------------------------------------------------------------------------- fair weather

    def _settle(self) -> None:
        """Deliver what is left, let the auditor find what was given up, and handle everything."""
        self.topic.refuses = 0.0
        indexer = self._indexer("settler", alone(self.perform))
        indexer.register()  # it may be the first that lives long enough to
        self._deliver(IndexerFunction(lambda _: indexer), self.heads)
        mender = self.mender("settler", alone(self.perform))
        missing = sum(self._audit(mender) for _ in range(2))
        assert not missing or self.met["given up"], "the index lacked what was delivered to indexers"
        late = self.met["left to schedules"] or self.met["given up"]
        for consumer in self.consumers:
            consumer.settle(self.perform, woken=not late and not any(map(self._owes, consumer.partitions)))
            self.met["woken by notices alone"] += not late

    def _owes(self, number: int) -> bool:
        return self.untold.get(number, 0) > self.topic.reached.get(number, 0)

    def _deliver(self, function: Function, streams: Sequence[TableStream]) -> None:
        source, luck = EventSource(function, retries=0), self._own()
        while ready := [shard for stream in streams for shard in stream.ready()]:
            with ready[0].next(10) as batch:
                source.deliver_batch(batch, luck)
        assert source.given_up == []
