"""Dictionaries come to whoever reads and writes pages: in time, once, and without being asked for twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from epochal.care.catch_up import Mender, scan
from epochal.care.rebuild import Rebuilder, Spool
from epochal.care.table_exports import export_at
from epochal.codec.dictionaries import finished, id_of, is_known, learn
from epochal.dynamo.table_kinds import kind_of
from epochal.errors import CorruptData
from epochal.index.epochs import register
from epochal.layout.port import INDEX
from epochal.layout.streams import DecidedBefore
from epochal.model.events import Event, Recorded
from epochal.model.versions import NO_STREAM, StreamAppend
from epochal.pages import dictionaries, writes
from epochal.pages.items import STREAMS, page_key, read_page
from epochal.pages.port import pages_source
from epochal.pages.streams import Pages
from epochal.plan.ops import Delete, Get, Op, Put, Query, Reply, Steps
from epochal.plan.values import Item, binary
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.testing.feeds import MemoryFeed
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_streams
from tests.support.dictionaries import TRAINED, forget
from tests.unit.care.exporting import export

ID = id_of(TRAINED)
KEY = {"p": {"S": "$dictionary:Flight"}, "i": {"N": str(int.from_bytes(ID, "big"))}}
IN_USE = {**KEY, "i": {"N": "0"}}
LEAST = 300
"""Seconds that a writer goes by what it found."""


def delay(minutes: int = 7) -> Event:
    return Event(
        type="Delayed", data=b'{"flight":"AA%d","minutes":%d,"gate":"B7"}' % (1000 + minutes, minutes)
    )


class World:
    """A table of streams, with the operations on it, and a clock."""

    def __init__(self) -> None:
        self.tables = MemoryTables({"streams": STREAMS, "archive": STREAMS, "index": INDEX})
        self.ops: list[Op] = []
        self.now = 1_357_000_000_000_000_000

    def execute(self, op: Op) -> Reply:
        self.ops.append(op)
        return self.tables.execute(op)

    def store(self, table: str = "streams") -> Streams:
        """What a process of its own opens."""
        driver = Driver(execute=self.execute, meter=Meter())
        return Streams(driver=driver, table=table, layout=Pages(dictionaries=True), now=lambda: self.now)

    def asked(self) -> list[str]:
        """The dictionaries that were asked for since it was last asked: `0` for one in use."""
        found = [op.sort[1]["N"] for op in self.ops if isinstance(op, Query) and op.sort and _of_one(op)]
        self.ops.clear()
        return found

    def train(self, category: str = "Flight") -> None:
        self.store().driver.run(dictionaries.put_in_use("streams", category, learn(TRAINED)))
        self.ops.clear()

    def pages(self, stream: str, table: str = "streams") -> list[frozenset[bytes]]:
        """Of each page, which dictionaries it names."""
        items = [each for each in self.tables.items(table) if each["p"]["S"] == stream]
        return [page.dictionaries for page in map(read_page, items)]


def _of_one(op: Query) -> bool:
    return op.partition[1]["S"].startswith("$dictionary:")


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes this process one that has met no dictionary."""
    return lambda: forget(monkeypatch)


def types(store: Streams, stream: str) -> list[str]:
    return [event.type for event in store.read(stream)]


# -------------------------------------------------------------------------------------------------------------- writers


def test_a_writer_packs_under_the_dictionary_of_its_category_and_asks_for_it_once(world: World) -> None:
    world.train()
    store = world.store()
    first = store.append("Flight-1", [delay()], expected=NO_STREAM)
    second = store.append("Flight-2", [delay()], expected=NO_STREAM)

    assert world.pages("Flight-1") == world.pages("Flight-2") == [{ID}]
    assert (first.capacity.requests, first.capacity.read) == (2, 0.5)
    assert (second.capacity.requests, second.capacity.read) == (1, 0)
    assert [event.data for event in store.read("Flight-1")] == [delay().data]


def test_a_category_without_one_is_asked_for_once_too(world: World) -> None:
    store = world.store()
    for number in range(3):
        store.append(f"Flight-{number}", [delay()])
    assert world.asked() == ["0"]
    assert world.pages("Flight-1") == [set()]


def test_what_is_too_short_to_be_compressed_asks_for_none(world: World) -> None:
    world.store().append("Flight-1", [Event(type="Landed", data=b'{"gate":"B7"}')])
    assert world.asked() == []


def test_a_stream_without_a_category_asks_for_none(world: World) -> None:
    world.store().append("Flights", [delay()])
    assert world.asked() == []


def test_a_writer_that_found_none_finds_one_after_five_minutes_and_not_before(world: World) -> None:
    store = world.store()
    store.append("Flight-1", [delay()])
    world.train()

    world.now += (LEAST - 1) * 10**9
    store.append("Flight-1", [delay()])
    assert (world.asked(), world.pages("Flight-1")) == ([], [set()])

    world.now += 10**9
    store.append("Flight-1", [delay()])
    assert (world.asked(), world.pages("Flight-1")) == (["0"], [{ID}])


def test_a_clock_that_was_set_back_makes_a_writer_ask_again(world: World) -> None:
    store = world.store()
    store.append("Flight-1", [delay()])
    world.asked()
    world.now -= 10**9
    store.append("Flight-2", [delay()])
    assert world.asked() == ["0"]


@pytest.mark.slow
def test_a_writer_remembers_a_thousand_categories_at_most(world: World) -> None:
    store = world.store()
    for number in range(1001):
        store.append(f"C{number}-1", [delay()])
    assert len(world.asked()) == 1001
    store.append("C1000-2", [delay()])
    assert world.asked() == []
    store.append("C0-2", [delay()])
    assert world.asked() == ["0"]


def test_a_dictionary_in_use_that_is_none_is_not_used_and_keeps_nobody_from_appending(world: World) -> None:
    broken = {"p": KEY["p"], "i": {"N": "0"}, "d": binary(b"no dictionary")}
    world.store().driver.ask(Put(table="streams", item=broken))
    world.store().append("Flight-1", [delay()])
    assert world.pages("Flight-1") == [set()]


def test_appends_under_a_key_and_to_several_streams_are_packed_under_it_too(world: World) -> None:
    world.train()
    world.train("Plane")
    store = world.store()
    store.append("Flight-1", [delay()], idempotency_key="k")
    store.append_all(
        [
            StreamAppend(stream=name, events=[delay()], expected=NO_STREAM)
            for name in ("Flight-2", "Plane-1", "Flight-3")
        ]
    )
    assert [world.pages(name) for name in ("Flight-1", "Flight-2", "Flight-3", "Plane-1")] == [[{ID}]] * 4
    assert len(world.asked()) == 2
    assert store.append("Flight-1", [delay()], idempotency_key="k").replayed


def test_an_event_that_is_dated_anew_is_packed_under_it_as_well(world: World) -> None:
    world.train()
    store = world.store()
    token = store.append("Flight-1", [delay()]).token
    world.now -= 3600 * 10**9
    store.append("Flight-1", [delay()], expected=token)
    (item,) = (each for each in world.tables.items("streams") if each["p"]["S"] == "Flight-1")
    assert [frame.dictionary for frame in read_page(item).frames] == [ID, ID]


# -------------------------------------------------------------------------------------------------------------- readers


@pytest.fixture
def written(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Three pages of a stream, one event each, and none the less for who has never met their dictionary."""
    monkeypatch.setattr(writes, "is_full", lambda *_, **__: True)
    world.train()
    store = world.store()
    for minutes in range(3):
        store.append("Flight-1", [delay(minutes)])
    world.ops.clear()
    forget(monkeypatch)
    return world


READS: dict[str, Callable[[Streams], list[str]]] = {
    "forward": lambda store: types(store, "Flight-1"),
    "backward": lambda store: [each.type for each in store.read("Flight-1", direction="backward")],
    "from the middle": lambda store: [each.type for each in store.read("Flight-1", start=1)] + ["Delayed"],
    "by the page": lambda store: [each.type for each in store.page("Flight-1").events],
    "loaded": lambda store: [each.type for each in _loaded(store)] * 3,
}


def _loaded(store: Streams) -> tuple[Recorded, ...]:
    state = store.load("Flight-1")
    assert state is not None
    return state.events


@pytest.mark.parametrize("read", READS)
def test_a_reader_asks_for_a_dictionary_once_however_it_reads(written: World, read: str) -> None:
    for _ in range(2):
        assert READS[read](written.store()) == ["Delayed"] * 3
    assert written.asked() == [KEY["i"]["N"]]


def test_what_stood_in_the_way_of_an_append_can_be_read(written: World) -> None:
    store = written.store()
    came = store.append_on({"Flight-1": None}, [StreamAppend(stream="Flight-1", events=[delay()])])
    assert not isinstance(came, DecidedBefore)
    head = getattr(came["Flight-1"], "head")  # noqa: B009  whichever outcome it is
    assert head.span.read(0).type == "Delayed"


@pytest.mark.parametrize("spoilt", [None, TRAINED[:-1], b"something else altogether"])
def test_a_dictionary_that_is_gone_or_corrupt_is_named_and_hides_its_own_events_alone(
    written: World, spoilt: bytes | None
) -> None:
    store = written.store()
    change = (
        Delete(table="streams", key=KEY)
        if spoilt is None
        else Put(table="streams", item={**KEY, "d": binary(spoilt)})
    )
    store.driver.ask(change)
    store.driver.ask(Delete(table="streams", key=IN_USE))
    plain = replace(store, layout=Pages())
    plain.append("Flight-1", [Event(type="Landed", data=b"x" * 60)])

    with pytest.raises(CorruptData, match=f"Flight-1: page 0, frame 0: dictionary {ID.hex()} is missing"):
        types(store, "Flight-1")
    assert [event.type for event in store.read("Flight-1", start=3)] == ["Landed"]
    assert store.append("Flight-1", [delay()]).version == 5


@pytest.mark.parametrize("spoilt", [None, b"something else altogether"])
def test_the_copy_in_use_is_read_where_a_dictionary_is_gone_or_corrupt(
    written: World, fresh: Callable[[], None], spoilt: bytes | None
) -> None:
    """Writers go on under it, and what they wrote would be hidden from every process that begins."""
    change = Put(table="streams", item={**KEY, "d": binary(spoilt or b"")})
    written.store().driver.ask(Delete(table="streams", key=KEY) if spoilt is None else change)
    fresh()
    assert types(written.store(), "Flight-1") == ["Delayed"] * 3


def test_one_that_comes_into_use_leaves_nothing_without_its_dictionary(
    written: World, fresh: Callable[[], None]
) -> None:
    store = written.store()
    store.driver.ask(Delete(table="streams", key=KEY))
    samples = [b'{"gate":"C%d","cargo":"%d"}' % (each, each) for each in range(200)]
    other = finished(b'{"gate":"C","cargo":""}' * 20, samples, 2_000)
    assert other is not None
    store.driver.run(dictionaries.put_in_use("streams", "Flight", other))
    fresh()
    assert types(written.store(), "Flight-1") == ["Delayed"] * 3


def test_the_feed_has_events_whose_dictionary_the_indexer_has_not_met(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    feed = MemoryFeed()
    store = memory_streams(feed.tables)
    store.driver.run(dictionaries.put_in_use(store.table, "Flight", learn(TRAINED)))
    for minutes in range(3):
        store.append("Flight-1", [delay(minutes)] * 2)
        store.append("Flight-2", [delay(minutes)])
    forget(monkeypatch)
    feed.index()
    found = [(item.stream, item.index) for page in feed.reader.read(30_000) for item in page.items]
    assert sorted(found) == [("Flight-1", k) for k in range(6)] + [("Flight-2", k) for k in range(3)]
    assert [each for each in found if each[0] == "Flight-1"] == [("Flight-1", k) for k in range(6)]


def test_an_image_tells_its_events_to_who_has_met_their_dictionary(written: World) -> None:
    source = pages_source("streams")
    image = written.tables.execute(Get(table="streams", key=page_key("Flight-1", 1)))
    item = getattr(image, "item")  # noqa: B009  a reply to Get
    assert not hasattr(source.appended(item), "types")
    learn(TRAINED)
    assert source.appended(item) == source.stored(item) == source.told(item)
    assert getattr(source.appended(item), "types") == ("Delayed",)  # noqa: B009  a span by now


def test_a_dictionary_tells_the_feed_nothing_and_is_of_the_table_of_pages(written: World) -> None:
    source = pages_source("streams")
    items = [each for each in written.tables.items("streams") if each["p"] == KEY["p"]]
    assert len(items) == 2
    for item in items:
        assert (source.appended(item), source.end(item), source.told(item), source.stored(item)) == (
            None,
        ) * 4
        assert kind_of(item) == "streams"
    streams = written.store().driver.run(_scan())
    assert [each for each in streams if each["p"] == KEY["p"]] == []


def _scan() -> Steps[tuple[Item, ...]]:
    reply = yield scan(pages_source("streams"))
    return reply.items


def test_an_index_is_rebuilt_from_an_export_that_has_the_dictionary(written: World, tmp_path: Path) -> None:
    """Wherever in the export that is; and the store is not asked."""
    driver = written.store().driver
    mender = Mender(driver=driver, index_table="index")
    driver.run(register("index", {"pages": 1}, mender.ids()))
    place = export(tmp_path / "export", written.tables.items("streams"))
    rebuilder, source = Rebuilder(mender=mender), pages_source("streams")
    written.ops.clear()
    exported = export_at(place, lambda _: pytest.fail("nobody asked for S3"))
    with Spool(tmp_path) as spool:
        rebuilder.learn(source, exported.items())
        done = rebuilder.from_export(source, exported.items(), spool)
    assert (done.streams, done.events, done.troubles) == (1, 3, [])
    assert {op.table for op in written.ops if hasattr(op, "table")} == {"index"}


def test_an_archive_gets_the_dictionaries_of_the_pages_that_it_gets(
    written: World, fresh: Callable[[], None]
) -> None:
    store, archive = written.store(), written.store("archive")
    replace(store, archive=archive).archive_and_prune("Flight-1", 2)
    fresh()
    assert types(archive, "Flight-1") == ["Delayed"] * 2
    store.driver.ask(Delete(table="streams", key=KEY))
    fresh()
    assert types(archive, "Flight-1") == ["Delayed"] * 2
    assert written.pages("Flight-1", "archive") == [{ID}] * 2


def test_a_page_whose_dictionary_is_missing_is_not_archived(written: World) -> None:
    store = written.store()
    for key in (KEY, IN_USE):
        store.driver.ask(Delete(table="streams", key=key))
    with pytest.raises(CorruptData, match=ID.hex()):
        replace(store, archive=written.store("archive")).archive_and_prune("Flight-1", 2)
    assert list(written.tables.items("archive")) == []


def test_a_dictionary_is_stored_before_it_is_in_use_and_once(world: World) -> None:
    driver = world.store().driver
    for _ in range(2):
        driver.run(dictionaries.put_in_use("streams", "Flight", learn(TRAINED)))
    puts = [op.item["i"]["N"] for op in world.ops if isinstance(op, Put)]
    assert puts == [KEY["i"]["N"], "0"] * 2
    assert len(list(world.tables.items("streams"))) == 2


def test_what_is_under_the_number_of_another_dictionary_is_none_and_is_not_learnt() -> None:
    altered = TRAINED + bytes(8)
    with pytest.raises(CorruptData, match=f"dictionary {ID.hex()} is not what it was"):
        dictionaries.read_dictionary({**KEY, "d": binary(altered)})
    assert not is_known(id_of(altered))
