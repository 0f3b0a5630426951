"""All the way from appends of every layout to a handler: DynamoDB Local's own tables and streams, AWS's rules between.

    tips, snapshot, tags → mapping → indexer → index, topic → queue → mapping → reaction → handler

Whatever can go wrong between them does, as a seed has it. Two things are looked at: before each delivery, that it takes
its stream no further than one event at a time; and after each write of a group's state, that nothing lies behind its
checkpoint that is neither handled nor parked.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from aws_lambda_powertools import Logger

from epochal.contrib.equinox.port import TIPS
from epochal.contrib.equinox.streams import Tips
from epochal.contrib.event_store_adapter.history import AggregateHistory
from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.items import JOURNAL, SNAPSHOT, site_of
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.contrib.sekiban.history import TagHistory
from epochal.contrib.sekiban.items import EVENTS, TAGS, tag_site_of
from epochal.contrib.sekiban.store import DcbEvents
from epochal.dynamo.interpreter import interpreter
from epochal.feed.indexer import Indexer, sources_of
from epochal.feed.reader import FeedReader
from epochal.feed.stream_history import StreamHistory
from epochal.hosting.metrics import Metrics
from epochal.hosting.reaction_function import ReactionFunction
from epochal.hosting.wakeup_queue import Queue
from epochal.index.epochs import EpochLimits
from epochal.index.groups import group_stream, load
from epochal.layout.registry import partitions_of
from epochal.layout.tables import INDEX
from epochal.model.events import Event
from epochal.plan.ops import Execute, Op, Put, Reply, Update
from epochal.reactions.definition import Delivery, Reaction
from epochal.reactions.group_member import Member
from epochal.reactions.reactor import Reactor
from epochal.settings import Settings
from epochal.store.driver import Driver, Meter, Patience
from epochal.store.streams import Streams
from tests.simulation.fifo import Context, FifoQueue, FifoTopic, publishing
from tests.simulation.index_event_source import EventSource, IndexerFunction, StreamRecord, records_of
from tests.simulation.scheduler import Killed, alone, failing
from tests.simulation.world import Calm
from tests.support.leases import once
from tests.support.tables import Tables

GROUP = "board"
Place = tuple[int, str, int]
"""Partition, stream, index."""


@dataclass
class Handler:
    """Notes what it has handled; fails, or takes its process with it, over events that it is told to.

    Attributes:
        seconds: that a delivery takes, by the simulated clock.
    """

    clock: Calm
    poison: set[tuple[str, int]] = field(default_factory=set)
    deadly: set[tuple[str, int]] = field(default_factory=set)
    seconds: float = 0.0
    handled: set[Place] = field(default_factory=set)
    times: Counter[Place] = field(default_factory=Counter)
    deaths: int = 0
    wrong: list[str] = field(default_factory=list)

    def __call__(self, delivery: Delivery) -> None:
        self.clock.sleep(self.seconds)
        for event in delivery.events:
            place = (delivery.partition, delivery.stream, event.index)
            if event.index > 0 and (*place[:2], event.index - 1) not in self.handled:
                self.wrong.append(f"{place} came before its predecessor was handled")
            if place[1:] in self.deadly:
                self.deaths += 1
                raise Killed
            if place[1:] in self.poison:
                raise ValueError("poison")
            self.handled.add(place)
            self.times[place] += 1


@dataclass
class Pipeline:
    """A deployment, what was appended to it, and what has gone wrong.

    Attributes:
        faults: how likely a request of the indexer or a refusal of the topic goes wrong.
        truth: events by stream, of every layout.
    """

    tables: Tables
    table_streams: Any
    seed: int = 0
    faults: float = 0.0
    max_receives: int = 10
    function_seconds: float = 60.0
    truth: Counter[str] = field(default_factory=Counter)
    given_up: list[StreamRecord] = field(default_factory=list)
    _shown: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.settings = Settings.of(
            tips_table=self.tables.create(TIPS),
            index_table=self.tables.create(INDEX),
            journal_table=self.tables.create(JOURNAL),
            snapshot_table=self.tables.create(SNAPSHOT),
            events_table=self.tables.create(EVENTS),
            tags_table=self.tables.create(TAGS),
            tips_partitions=2,
            dcb_partitions=2,
        )
        self.luck = random.Random(self.seed)
        self.clock = Calm()
        self.handler = Handler(clock=self.clock)
        self.queue = FifoQueue(
            clock=self.clock, max_receives=self.max_receives, undeleted=self.faults, seed=self.seed
        )
        self.topic = FifoTopic(clock=self.clock, queues=(self.queue,), refuses=self.faults, seed=self.seed)
        self.perform = interpreter(self.tables.client)
        self.indexer = IndexerFunction(self._indexer)
        self.reaction: dict[str, Any] = {"max_events": 3, "attempts": 2, "parallel": 4}
        self._lock = threading.Lock()
        driver = Driver(execute=self.perform, meter=Meter())
        self.streams = Streams(driver=driver, table=self.settings.table("tips"), layout=Tips())
        self.aggregates = AggregateStore(driver=driver, site=site_of(self.settings))
        self.tagged = DcbEvents(driver=driver, site=tag_site_of(self.settings))

    def append(self, appends: int) -> None:
        """To streams of every layout, by turns."""
        for number in range(appends):
            which, some = self.luck.randrange(4), self.luck.randint(1, 3)
            self.streams.append(f"Order-{which}", [Event(type=f"T{k}") for k in range(some)])
            self.truth[f"Order-{which}"] += some
            alice = AggregateId(type="account", value=f"{which}")
            self.aggregates.append(alice, [AggregateEvent(type="Opened", data=b"{}")], snapshot=b"{}")
            self.truth[str(alice)] += 1
            tags = (f"course:{which}", f"student:{number % 3}")
            self.tagged.append([Event(type="Enrolled", data=b"{}", tags=tags)])
            self.truth.update(tags)

    def index(self, *, batch: int = 6) -> None:
        """Whatever the tables' streams have to tell goes to the indexer."""
        for table in (
            self.settings.table("tips"),
            self.settings.table("snapshot"),
            self.settings.table("tags"),
        ):
            self._map(self.indexer, self._fresh(table), batch, lanes=2, again=2 * self.faults, retries=50)

    def react(self, *, pollers: int = 2) -> None:
        """Whatever the queue holds goes to the reaction, each invocation in a process of its own."""
        self.queue.run(self.invoke, pollers=pollers)
        assert self.handler.wrong == []

    def flow(self) -> None:
        """All of the way."""
        self.index()
        self.react()

    def invoke(self, event: dict[str, Any]) -> dict[str, Any]:
        """The reaction's function answers one event."""
        queue = Queue(cast("Any", self.queue), "queue")
        function = ReactionFunction(
            reactor=self.reactor(),
            queue=queue,
            logger=Logger(service=GROUP),
            metrics=Metrics(GROUP),
            now=self.clock,
            beats=once,
        )
        context = Context(clock=self.clock, ends=self.clock() + self.function_seconds)
        return function.handle(event, cast("Any", context))

    def reactor(self) -> Reactor:
        """A process of the group."""
        driver = Driver(execute=self._judged, meter=Meter(), clock=self.clock, sleep=lambda _: None)
        reaction = Reaction(name=GROUP, handler=self.handler, **self.reaction)
        return Reactor(member=Member(reaction=reaction, reader=self.reader(driver)))

    def reader(self, driver: Driver) -> FeedReader:
        """Of the feed with its events."""
        return FeedReader(
            driver=driver,
            table=self.settings.index_table,
            histories=(
                StreamHistory(Streams(driver=driver, table=self.settings.table("tips"), layout=Tips())),
                AggregateHistory(AggregateStore(driver=driver, site=site_of(self.settings))),
                TagHistory(DcbEvents(driver=driver, site=tag_site_of(self.settings))),
            ),
        )

    def missing(self) -> list[tuple[str, int]]:
        """What was appended and never handled."""
        done = {place[1:] for place in self.handler.handled}
        wanted = [(stream, index) for stream, count in self.truth.items() for index in range(count)]
        return [place for place in wanted if place not in done]

    def parked(self) -> dict[str, tuple[int, int, str]]:
        """Parked streams: partition, index, cause; as an operator is told."""
        told = [
            each
            for partition in partitions_of(self.settings)
            for each in self.invoke({"command": "parked", "partition": partition})["parked"]
        ]
        return {each["stream"]: (each["partition"], each["index"], each["cause"]) for each in told}

    def _map(
        self,
        function: Callable[[dict[str, Any]], Any],
        records: list[StreamRecord],
        batch: int,
        *,
        lanes: int,
        again: float,
        retries: int,
    ) -> None:
        mapping = EventSource(
            function, batch=batch, lanes=lanes, retries=retries, again=again, seed=self.seed
        )
        mapping.deliver([records])
        self.given_up += mapping.given_up

    def _fresh(self, table: str) -> list[StreamRecord]:
        """Records of a table's stream that have not been asked for before."""
        arn = self.tables.client.describe_table(TableName=table)["Table"]["LatestStreamArn"]
        (shard,) = records_of(self.table_streams, arn)
        before, self._shown[table] = self._shown[table], len(shard)
        return shard[before:]

    def _indexer(self, number: int) -> Indexer:
        execute = failing(self.perform, random.Random(f"{self.seed} {number}"), self.faults)
        return Indexer(
            driver=Driver(execute=execute, meter=Meter(), patience=Patience(first=0.001, longest=0.005)),
            index_table=self.settings.index_table,
            sources=sources_of(self.settings),
            limits=EpochLimits(entries=6),
            publish=publishing(self.topic, alone(execute)),
        )

    @property
    def _judged(self) -> Execute:
        """The tables; what each write of a group's state says is looked at."""

        def execute(op: Op) -> Reply:
            reply = self.perform(op)
            key = op.item if isinstance(op, Put) else op.key if isinstance(op, Update) else {}
            if key.get("p", {}).get("S", "").startswith("$ReaderCheckpoint-"):
                with self._lock:
                    self._judge(int(key["p"]["S"].split("_")[1]))
            return reply

        return execute

    def _judge(self, partition: int) -> None:
        """Nothing before a checkpoint is neither handled nor parked."""
        driver = Driver(execute=self.perform, meter=Meter())
        state = driver.run(load(self.settings.index_table, group_stream(partition, GROUP))).state
        assert state is not None
        for page in self.reader(driver).read(partition, limit=1):
            if page.next > state.checkpoint:
                return
            for item in page.items:
                waits = item.stream in state.parked and state.parked[item.stream] <= item.index
                if not waits and (partition, item.stream, item.index) not in self.handler.handled:
                    self.handler.wrong.append(
                        f"checkpoint {state.checkpoint} passed {item.stream}@{item.index}"
                    )
