"""A fourth layout, a list in a dictionary: one item a stream, with the types of all its events.

It is in one file and one entry of the registry, and the rest of the house takes it through the port alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from epochal import plugins
from epochal.errors import CorruptData
from epochal.feed.events import FeedEvent
from epochal.feed.history import History
from epochal.feed.hydration import Hydrate
from epochal.layout import registry
from epochal.layout.changes import Span
from epochal.layout.healing import Gap, Healed, soundly
from epochal.layout.port import Permission, Port
from epochal.layout.source import End, Source
from epochal.plan.conditions import Absent, equals
from epochal.plan.ops import Get, Put, Refusal, Steps
from epochal.plan.tables import KeyAttribute, TableSpec
from epochal.plan.values import Item, number, read_list, read_number, sequence, text
from epochal.plugins import BASE_DISTANCE, Layout, Plugin
from epochal.settings import Options, Settings, variable
from epochal.store.driver import Driver, Meter
from epochal.store.encoding import BodyCodec
from epochal.testing.memory import MemoryTables
from tests.support.api import Api
from tests.support.layout_contract import LayoutContract, World, Writer
from tests.support.terminal import Terminal

LISTS = TableSpec(
    kind="lists",
    partition=KeyAttribute(name="list", type="S"),
    sort=KeyAttribute(name="part", type="N"),
    stream=True,
)
HEAD = 0


# ------------------------------------------------------------------------------------------------------------ the room


def key(stream: str) -> Item:
    return {"list": text(stream), "part": number(HEAD)}


def load(table: str, stream: str) -> Steps[Item | None]:
    reply = yield Get(table=table, key=key(stream))
    return reply.item


def append(table: str, stream: str, types: tuple[str, ...]) -> Steps[None]:
    """Put the longer list in place of the one that was read, unless somebody else has."""
    while True:
        found = yield from load(table, stream)
        kinds = [] if found is None else [each["S"] for each in read_list(found, "e")]
        if kinds[len(kinds) - len(types) :] == list(types):
            return  # an append whose answer was lost: types are unlike each other here
        item = {**key(stream), "e": sequence(map(text, (*kinds, *types))), "a": number(len(types))}
        condition = Absent("list") if found is None else equals("e", found["e"])
        if not isinstance((yield Put(table=table, item=item, condition=condition)), Refusal):
            return


def whole(item: Item) -> Span:
    return Span(item["list"]["S"], 0, tuple(each["S"] for each in item["e"]["L"]))


def appended(item: Item) -> Span | None:
    span, latest = whole(item), read_number(item, "a")
    if latest is None or not 0 < latest <= span.next:
        raise CorruptData(f"{span.stream}: a list whose e and a do not fit each other")
    return span.since(span.next - latest)


def is_head(item: Item) -> bool:
    return item["part"] == number(HEAD)


def lists_source(table: str, partitions: int = 1) -> Source:
    def heal(gap: Gap) -> Steps[Healed]:
        found, healed = (yield from load(table, gap.stream)), Healed()
        if found is not None:
            healed.add(Span(gap.stream, gap.index, whole(found).types[gap.index : gap.end]))
        return healed

    return Source(
        name="toy",
        table=table,
        partitions=partitions,
        setting=variable("lists_partitions"),
        appended=lambda item: appended(item) if is_head(item) else None,
        heal=soundly(heal, "toy"),
        end=lambda item: End(whole(item).stream, whole(item).next) if is_head(item) else None,
        change_up_to=lambda item: whole(item) if is_head(item) else None,
        where=equals("part", number(HEAD)),
        moved=None,
        stored=lambda item: whole(item) if is_head(item) else None,
    )


def access(_: Options) -> dict[str, tuple[Permission, ...]]:
    reading = Permission(table=LISTS, actions=("GetItem",))
    auditing = Permission(table=LISTS, actions=("GetItem", "Scan"))
    writing = Permission(table=LISTS, actions=("GetItem", "PutItem"))
    readers = ("feed", "indexer", "reaction")
    return {**dict.fromkeys(readers, (reading,)), "append": (writing,), "auditor": (auditing,)}


PORT = Port(
    tables=(LISTS,),
    kind_of=lambda item: LISTS.kind if item.keys() >= set(LISTS.keys) else None,
    access=access,
    heads=LISTS,
    source=lambda settings: lists_source(settings.table("lists"), settings.partitions("lists_partitions")),
)


@dataclass(frozen=True, slots=True)
class ListHistory(History):
    table: str
    driver: Driver
    name = "toy"

    def on(self, driver: Driver) -> ListHistory:
        return ListHistory(self.table, driver)

    def events(self, *, fetch: bool = True) -> Hydrate:  # noqa: ARG002  nothing of a list is in the bucket
        def hydrate(stream: str, first: int, end: int) -> Iterator[FeedEvent]:
            found = self.driver.run(load(self.table, stream))
            assert found is not None
            for index in range(first, end):
                yield FeedEvent(stream=stream, index=index, type=whole(found).types[index])

        return hydrate

    def end_of(self, stream: str, since: int) -> int:
        found = self.driver.run(load(self.table, stream))
        return since if found is None else max(since, whole(found).next)


def open_history(settings: Settings, driver: Driver, _: BodyCodec) -> ListHistory:
    return ListHistory(settings.table("lists"), driver)


# ----------------------------------------------------------------------------------------------------------- the entry

TOY = Layout(
    name="toy",
    base=9 * BASE_DISTANCE,
    table="lists_table",
    partitions="lists_partitions",
    of=Plugin(port=lambda: PORT, open_history=open_history),
)


class Registered:
    """The registry has the toy, too, and settings know its table."""

    @pytest.fixture(autouse=True)
    def registered(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(plugins, "LAYOUTS", (*plugins.LAYOUTS, TOY))


class TestToy(Registered, LayoutContract):
    writer = Writer(
        settings=Settings.of(lists_table="lists"),
        streams=("List-1", "List-2"),
        foreign=({"list": text("List-1"), "part": number(1), "e": sequence([text("a")])},),
        malformed={**key("List-3"), "e": sequence([text("a")]), "a": number(3)},
        append=lambda driver, stream, types: driver.run(append("lists", stream, types)),
    )

    def test_its_partitions_follow_those_of_the_others(self, world: World) -> None:
        assert registry.partitions_of(world.settings) == (90_000,)
        assert registry.source_of(90_000) == "toy" != registry.source_of(89_999)


class TestCorrupt(Registered):
    """A list that has lost its elements, which the layout's own code meets with a `KeyError`."""

    @pytest.mark.parametrize("reader", ["appended", "end", "change_up_to", "stored"])
    def test_an_item_that_lacks_what_its_layout_has_is_corrupt_whoever_reads_it(self, reader: str) -> None:
        with pytest.raises(CorruptData, match="not of the toy layout"):
            getattr(lists_source("lists"), reader)(key("List-1"))

    def test_it_is_corrupt_where_a_gap_is_healed_from_it(self) -> None:
        tables = MemoryTables({LISTS.kind: LISTS})
        tables.execute(Put(table=LISTS.kind, item=key("List-1")))
        gap = Gap(stream="List-1", index=0, end=1)
        with pytest.raises(CorruptData, match="List-1: an item does not have the layout toy"):
            Driver(execute=tables.execute, meter=Meter()).run(lists_source(LISTS.kind).heal(gap))


class TestShown(Registered):
    """By the operations and commands that there are for every layout."""

    def test_the_api_serves_its_events(self) -> None:
        api = Api()
        api.driver.run(append("lists", "List-1", ("a", "b")))
        api.index()
        listed = api.call("GET", "/feed").json["partitions"]
        assert {each["partition"] for each in listed if each["tail"] != "0@0"} == {TOY.base}
        page = api.call("GET", f"/feed/{TOY.base}", query="data=true").json
        assert [(each["stream"], each["index"], each["type"]) for each in page["items"]] == [
            ("List-1", 0, "a"),
            ("List-1", 1, "b"),
        ]

    def test_the_command_line_shows_its_events_and_verifies_its_index(self) -> None:
        terminal = Terminal(layouts=(TOY.name,))
        terminal.streams.driver.run(append("lists", "List-1", ("a", "b")))
        terminal.index()
        assert terminal.lines("feed") == [f"{TOY.base}  0@1"]
        (page,) = terminal.documents("feed", str(TOY.base), "--data")
        assert [(each["stream"], each["type"]) for each in page["items"]] == [
            ("List-1", "a"),
            ("List-1", "b"),
        ]
        assert terminal.lines("index", "verify", "--settle", "0") == ["the index is correct"]
        terminal.streams.driver.run(append("lists", "List-1", ("c",)))
        assert "List-1" in terminal.run("index", "verify", "--settle", "0").output
