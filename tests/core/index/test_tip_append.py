"""Appends to the index: each is made once, also where its answer is lost and others have written since."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import pytest

from epochal.codec.bodies import DIRECT, EMPTY, Encoded, encode
from epochal.index.calf_costs import calf_pays
from epochal.index.checkpoints import MAX_EPOCH, epoch_stream, poison_stream
from epochal.index.tip import Tip, load_tip, read_all
from epochal.index.tip_append import (
    BY_COST,
    CalfRule,
    append,
    append_on,
    append_once,
    attempt,
    calve_and_update,
    tip_after,
)
from epochal.index.tip_writes import create_tip, growth_of
from epochal.index.wire_batch import WireBatch, batch_of
from epochal.layout.streams import EncodedEvent
from epochal.layout.tables import INDEX
from epochal.model.outcomes import Appended, Conflict
from epochal.model.tokens import Token
from epochal.plan.failures import Lost
from epochal.plan.ops import Execute, Op, Put, Reply, Update
from epochal.plan.values import read_units
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_tables

STREAM = poison_stream(0)


def batch(name: str, etag: int = 0) -> WireBatch:
    event = EncodedEvent(type=name, data=encode(b"{}"), timestamp="2026-01-01T00:00:00.0000000+00:00")
    return batch_of(STREAM, (event,), etag=f"{name}{etag}".ljust(32, "0"), append_id=name.encode().ljust(16))


@dataclass
class Losing:
    """Writes, and loses the answer of the first; then others write."""

    execute: Execute
    others: Callable[[], object]
    lost: list[Op] = field(default_factory=list)

    def __call__(self, op: Op) -> Reply:
        reply = self.execute(op)
        if isinstance(op, Put | Update) and not self.lost:
            self.lost.append(op)
            self.others()
            raise Lost("connection reset")
        return reply


@pytest.fixture
def tables() -> MemoryTables:
    return MemoryTables({"index": INDEX})


def driver(execute: Execute) -> Driver:
    return Driver(execute=execute, meter=Meter(), sleep=lambda _: None)


def types(tables: MemoryTables) -> list[str]:
    return [event.type for event in driver(tables.execute).run(read_all("index", STREAM))]


def test_an_append_whose_answer_was_lost_is_known_by_its_etag(tables: MemoryTables) -> None:
    losing = Losing(tables.execute, others=lambda: None)
    made = driver(losing).run(append_on("index", batch("ours"), None))
    assert isinstance(made, Appended)
    assert (made.first, types(tables)) == (0, ["ours"])


def test_where_others_have_written_since_it_is_a_rejection_that_brings_what_is_there(
    tables: MemoryTables,
) -> None:
    theirs = driver(tables.execute)
    losing = Losing(tables.execute, others=lambda: theirs.run(append("index", batch("theirs"))))
    made = driver(losing).run(append_on("index", batch("ours"), None))
    assert isinstance(made, Conflict)
    assert made.version == 2
    assert types(tables) == ["ours", "theirs"]


@pytest.mark.parametrize("others", [0, 1, 300])
def test_what_is_known_by_its_append_id_is_appended_once_and_said_to_be_ours_once(
    tables: MemoryTables, others: int
) -> None:
    """Of so many that come between some are in calves by then."""
    theirs = driver(tables.execute)

    def write() -> None:
        for number in range(others):
            theirs.run(append("index", batch(f"t{number}")))

    ours = driver(Losing(tables.execute, others=write))
    assert ours.run(append_once("index", batch("ours"), None, 0))
    tip = ours.run(load_tip("index", STREAM))
    assert not ours.run(append_once("index", batch("ours", etag=1), tip, 0))
    assert types(tables) == ["ours", *(f"t{number}" for number in range(others))]
    assert tip is not None
    assert (tip.span.base > 0) is (others > 100)


def test_the_tip_that_an_append_left_is_known_to_the_byte_without_a_read(tables: MemoryTables) -> None:
    store, known, calves = driver(tables.execute), None, 0
    for number in range(60):
        event = EncodedEvent(type="Told", data=Encoded(0, b"x" * (number * 37 % 700)), timestamp="2026")
        closing = event._replace(type="Closed", data=EMPTY)
        events = [event, closing] if number % 7 == 6 else [event]
        made = batch_of(STREAM, events, etag=f"{number:032}", append_id=b"%016d" % number)
        result = store.run(append_on("index", made, known))
        assert isinstance(result, Appended)
        before: Tip | None = known
        known = tip_after(made, before, result.token)
        calves += before is not None and known.span.base > before.span.base
        assert (known, known.token()) == (store.run(load_tip("index", STREAM)), result.token)
    assert calves > 10


def test_a_tip_that_is_known_is_calved_without_a_read(tables: MemoryTables) -> None:
    asked: list[Op] = []

    def execute(op: Op) -> Reply:
        asked.append(op)
        return tables.execute(op)

    store, known = driver(execute), None
    for number in range(9):
        made = batch("x" * 600, number)
        result = store.run(append_on("index", made, known))
        assert isinstance(result, Appended)
        known = tip_after(made, known, result.token)
    assert {type(op) for op in asked} == {Put, Update}
    assert len(asked) > 9


# ------------------------------------------------------------------------------------------------- large Tips


def span_of(size: int) -> WireBatch:
    """Events of so many bytes together, to an epoch with the longest name."""
    data = Encoded(DIRECT, bytes(size))
    events = [EncodedEvent(type="Ingested", data=data, timestamp="2026-11-26T00:00:00.0000000Z")]
    stream = epoch_stream(999_999_999, MAX_EPOCH)
    return batch_of(stream, events, etag="0" * 32, append_id=bytes(16))


def written(memory: MemoryTables, *sizes: int, rule: CalfRule = BY_COST) -> float:
    """Write units of appends of such sizes."""
    driver = Driver(execute=memory.execute, meter=Meter())
    known: Tip | None = None
    for size in sizes:
        sent = driver.run(attempt("index", batch := span_of(size), known, rule))
        assert isinstance(sent, Token)
        known = tip_after(batch, known, sent)
        assert known.token() == sent
    return driver.meter.units.write


@pytest.mark.slow
def test_a_tip_that_costs_more_than_the_least_to_read_is_put_into_a_calf_by_whatever_comes_next() -> None:
    for size in (*range(3_000, 9_000, 97), 30_000, 300_000):
        batch = span_of(size)
        _, token = create_tip("index", batch)
        tip = tip_after(batch, None, token)
        if read_units(tip.size) > 1:
            following = (*range(1, 1_500, 7), 30_000, 380_000)
            assert all(BY_COST.calves(tip.token(), growth_of(span_of(each), tip)) for each in following), size


def test_a_tip_that_costs_the_least_to_read_is_put_into_a_calf_where_that_pays_alone() -> None:
    for size in range(100, 3_400, 97):
        batch = span_of(size)
        tip = tip_after(batch, None, create_tip("index", batch)[1])
        for each in (1, 300, 900, 30_000):
            growth = growth_of(span_of(each), tip)
            assert BY_COST.calves(tip.token(), growth) == calf_pays(tip.token(), growth, factor=1), size


@pytest.mark.slow
def test_to_calve_a_large_tip_at_once_saves_write_units() -> None:
    class Pays:
        calve = staticmethod(calve_and_update)
        calves = staticmethod(partial(calf_pays, factor=1))

    rng = random.Random(1)
    saved = list[float]()
    for _ in range(60):
        sizes = [rng.choice((rng.randrange(100, 700), rng.randrange(3_400, 40_000))) for _ in range(12)]
        # The last is small: where nothing follows a large one, nothing differs.
        sizes += [150, 150]
        units, before = (written(memory_tables(), *sizes, rule=rule) for rule in (BY_COST, Pays()))
        saved.append(1 - units / before)
    assert min(saved) > -0.01
    assert sum(saved) / len(saved) > 0.02
