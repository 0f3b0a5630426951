"""G10 in simulated worlds: beside indexers that overlap, die and lose answers, an index is verified, mended and built
anew, request by request in an order that a seed decides.

Every world drops records. Whoever looks after the index takes its turns among the others; at rest, the feed has every
event once and in order, in the old index and in the new one, and readers saw exactly that (`index_checks`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from random import Random
from typing import ClassVar

import pytest

from epochal.care.auditor import Auditor
from epochal.care.mender import Mender
from epochal.care.rebuild import Rebuilder
from epochal.care.repair import Repairer
from epochal.care.verify import Verifier
from epochal.index.chain_check import Finding
from epochal.index.checkpoints import BEGINNING, Checkpoint
from epochal.index.entries import Entry
from epochal.index.feed_walk import FeedWalk, step
from epochal.layout.source import Source
from epochal.layout.tables import INDEX, store_tables
from epochal.plan.ops import Execute, Op, Reply, Scan
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from tests.simulation.index_checks import check_order, perform
from tests.simulation.index_weather import Weather
from tests.simulation.index_world import World
from tests.simulation.index_writers import LAYOUTS
from tests.simulation.scheduler import Process
from tests.simulation.seeds import ranges

SIZE, COUNT = 5, 8


class Unpartitioned(Source):
    """A source of any layout whose partition is the index's first."""

    @property
    def base(self) -> int:
        return 0


@dataclass
class Cared(World):
    """A world in which someone looks after the index of `table`.

    Attributes:
        work: what they do, given a mender.
        process: how far they have got with it.
        found: what they found.
    """

    cared_for: ClassVar[bool] = True
    table: str = "index"
    work: Callable[[Cared, Mender], None] = lambda *_: None
    process: Process | None = None
    found: list[Finding] = field(default_factory=list)

    @property
    def source(self) -> Source:
        """The world's source. Its index has a single partition, whatever the layout."""
        given = self.writer.source
        return Unpartitioned(**{each.name: getattr(given, each.name) for each in fields(given)})

    def begin(self) -> None:
        """Let them begin, before anything has happened."""
        mender = self.mender
        self.process = Process("care", self.perform, lambda execute: self.work(self, mender(execute)))

    def mender(self, execute: Execute) -> Mender:
        driver = Driver(execute=execute, meter=Meter(), sleep=lambda _: None)
        return Mender(
            driver=driver,
            index_table=self.table,
            limits=self.weather.limits,
            now=lambda: 10**18,
            fresh=self.rng.randbytes,
        )

    def perform(self, op: Op) -> Reply:
        """Writes to the index in use are watched as the indexer's are."""
        if isinstance(op, Scan) or getattr(op, "table", "") == "anew":
            return self.tables.execute(op)
        return self.watch.execute(op)

    def _possible(self) -> list[Callable[[], object]]:
        turns = list(super()._possible())
        if self.process is not None and not self.process.done:
            turns += [partial(self._care, self.process)] * 3
        return turns

    def _care(self, process: Process) -> None:
        self.told.append("care goes on")
        process.step()
        if process.error is not None:
            raise process.error

    def _at_rest(self) -> bool:
        return super()._at_rest() and (self.process is None or self.process.done)


def play(seed: int, layout: str, work: Callable[[Cared, Mender], None], table: str = "index") -> Cared:
    """A world in which records are dropped, to its rest."""
    rng = Random(f"{seed} {layout}")
    weather = replace(Weather.draw(rng), drops=0.2)
    tables = MemoryTables({spec.kind: spec for spec in store_tables()} | {"anew": INDEX})
    world = Cared(rng=rng, weather=weather, layout=layout, tables=tables, work=work, table=table)
    world.begin()
    try:
        world.play()
    except Exception as failure:
        story = "\n".join(f"  {turn:4} {what}" for turn, what in enumerate(world.told))
        raise AssertionError(f"seed {seed} of {layout}: {failure!r}\n{weather}\n{story}") from failure
    return world


def verify(world: Cared, mender: Mender, streams: int = 3) -> list[Finding]:
    verifier = Verifier(mender=mender, sources=(world.source,), streams=streams)
    return [each for each in verifier.findings() if each.kind != "unregistered"]


@ranges(SIZE, COUNT, check=False)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_verify_beside_indexers_finds_nothing_but_what_was_dropped(seeds: range, layout: str) -> None:
    """What it compares changes under its eyes; only missing ends may be told, which are there to be healed."""

    def work(world: Cared, mender: Mender) -> None:
        for _ in range(3):
            world.found += verify(world, mender)

    missing = 0
    for seed in seeds:
        world = play(seed, layout, work)
        assert {each.kind for each in world.found} <= {"missing"}, f"seed {seed}: {world.found}"
        missing += len(world.found)
        assert verify(world, world.mender(world.tables.execute)) == []
    assert missing


@ranges(SIZE, COUNT, check=False)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_repair_beside_indexers_brings_what_was_dropped_and_nothing_comes_twice(
    seeds: range, layout: str
) -> None:
    def work(world: Cared, mender: Mender) -> None:
        verifier = Verifier(mender=mender, sources=(world.source,), streams=3)
        for _ in range(3):
            world.found += [each.finding for each in Repairer(verifier).repair() if each.mended]

    mended = [each for seed in seeds for each in play(seed, layout, work).found if each.kind == "missing"]
    assert mended


@ranges(SIZE, COUNT, check=False)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_auditor_beside_indexers_brings_what_was_dropped(seeds: range, layout: str) -> None:
    healed = 0

    def work(world: Cared, mender: Mender) -> None:
        nonlocal healed
        for _ in range(4):
            healed += Auditor(mender=mender, sources=(world.source,)).audit(60).healed

    for seed in seeds:
        play(seed, layout, work)
    assert healed


@pytest.mark.parametrize("table", ["anew", "index"])
@ranges(SIZE, COUNT, check=False)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_rebuild_beside_indexers_loses_nothing_once_it_is_repaired(
    seeds: range, layout: str, table: str
) -> None:
    """Indexers write to the old index meanwhile, as before the switch, or to the new one already. The last repair makes
    it whole.
    """

    def work(world: Cared, mender: Mender) -> None:
        Rebuilder(mender=mender).from_tables(world.source)

    for seed in seeds:
        world = play(seed, layout, work, table)
        mender = world.mender(world.tables.execute)
        list(Repairer(Verifier(mender=mender, sources=(world.source,))).repair())
        assert verify(world, mender) == []
        reached = check_order(
            feed_of(world, table), world.pruned, lambda stream, at, w=world: w.writer.types[stream][at]
        )
        there = {stream: len(types) for stream, types in world.writer.types.items()}
        wanted = {name: count for name, count in there.items() if count > world.pruned.get(name, 0)}
        assert wanted.items() <= reached.items(), f"seed {seed}"


def feed_of(world: Cared, table: str) -> list[tuple[Entry, Checkpoint]]:
    """Everything that an index holds."""
    walk, found = FeedWalk(partition=0, at=BEGINNING), []
    while True:
        stretch = perform(world.tables, step(table, walk))
        found += stretch.entries
        if stretch.at_tail:
            return found
        walk = stretch.walk
