"""Retention: streams of a category keep what their rule says, the feed has had the rest, and so has the archive."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from epochal import Event, Unfold
from epochal.care import auditor as auditing
from epochal.care import retention
from epochal.care.auditor import Audit, Auditor
from epochal.care.mender import Mender
from epochal.care.retention import Rule, keep, rule_of, rules_of
from epochal.care.retention_preview import Prunable, prunable
from epochal.errors import InvalidInput
from epochal.index.checkpoints import BEGINNING
from epochal.layout.changes import Removal
from epochal.layout.tables import INDEX, READ_MODELS, store_tables
from epochal.pages import writes
from epochal.pages.items import ARCHIVE
from epochal.store.streams import Streams
from epochal.testing.feeds import MemoryStore
from epochal.testing.memory import MemoryTables

DAY = 24 * 3_600 * 10**9


class World:
    """A deployment whose clock is set, and its auditor."""

    def __init__(self, *rules: str) -> None:
        tables = MemoryTables({each.kind: each for each in (*store_tables(), READ_MODELS, ARCHIVE)})
        self.feed = MemoryStore(tables=tables)
        self.now = 10**18
        self.streams = replace(self.feed.streams, now=lambda: self.now)
        self.rules = rules_of(rules)
        self.opened = 0

    def append(self, stream: str, *types: str) -> None:
        for kind in types:
            self.streams.append(stream, [Event(type=kind)])

    def auditor(self, **options: Any) -> Auditor:
        def opened() -> Streams:
            self.opened += 1
            return self.streams

        driver = self.streams.driver
        mender = Mender(driver=driver, index_table=INDEX.kind, now=lambda: self.now)
        chosen: dict[str, Any] = {"rules": self.rules, "streams": opened, "settle": 0, **options}
        return Auditor(mender=mender, sources=self.feed._deployment.sources, **chosen)  # noqa: SLF001

    def audit(self, seconds: float = inf) -> Audit:
        self.feed.index()
        return self.auditor().audit(seconds)

    def left(self, stream: str) -> list[int]:
        page = self.streams.page(stream)
        return [event.index for event in page.events]

    def removals(self) -> list[Removal]:
        self.feed.index()
        pages = (
            self.feed.feed.page(each.partition, start=BEGINNING, removals=True)
            for each in self.feed.feed.partitions()
        )
        return [item.removal for page in pages for item in page.items if item.removal is not None]


@pytest.fixture(params=[1, 3, 100], ids=lambda most: f"{most} appends a page")
def pages(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    most = request.param
    monkeypatch.setattr(writes, "is_full", lambda left, *_, **__: left.appends >= most)


@pytest.mark.usefixtures("pages")
def test_the_last_so_many_events_of_each_stream_stay_and_the_feed_says_what_went() -> None:
    world = World(keep("Visit", count=3))
    world.append("Visit-1", *"abcdefgh")
    world.append("Visit-2", *"ab")
    world.append("Order-1", *"abcdefgh")
    found = world.audit()
    assert (found.pruned, found.troubles) == (1, [])
    assert world.left("Visit-1") == [5, 6, 7]
    assert world.left("Visit-2") == [0, 1]
    assert world.left("Order-1") == list(range(8))
    told = world.removals()
    assert {each.stream for each in told} == {"Visit-1"}
    assert (told[0].first, told[-1].end, told[-1].kind) == (0, 5, "pruned")
    assert world.audit().pruned == 0, "what is done is not done again"


@pytest.mark.usefixtures("pages")
def test_events_go_with_their_age_and_the_state_stays() -> None:
    world = World(keep("Log", days=30))
    world.append("Log-1", *"abc")
    world.now += 20 * DAY
    world.append("Log-1", *"de")
    world.streams.append("Log-2", [Event(type="a")], unfolds=[Unfold(type="Sum", data=b"1")])
    world.now += 11 * DAY
    assert world.audit().pruned == 1
    assert (world.left("Log-1"), world.left("Log-2")) == ([3, 4], [0])
    world.now += 20 * DAY
    assert world.audit().pruned == 2
    assert (world.left("Log-1"), world.left("Log-2")) == ([], [])
    head = world.streams.head("Log-2")
    assert head is not None
    assert (head.version, [each.type for each in head.read_unfolds()]) == (1, ["Sum"])
    assert {each.kind for each in world.removals() if each.stream == "Log-2"} == {"pruned"}
    world.append("Log-1", "f")
    assert world.left("Log-1") == [5]


def test_with_both_an_event_goes_by_either() -> None:
    world = World(keep("Trace", count=3, days=30))
    world.append("Trace-1", *"abcde")
    world.append("Trace-2", *"ab")
    world.now += 31 * DAY
    world.append("Trace-2", "c")
    world.audit()
    assert (world.left("Trace-1"), world.left("Trace-2")) == ([], [2])


def test_without_a_rule_nothing_is_pruned_and_no_store_is_opened() -> None:
    world = World()
    world.append("Visit-1", *"abc")
    assert world.audit().pruned == 0
    other = World(keep("Visit", count=5))
    other.append("Visit-1", *"abc")
    other.audit()
    assert (world.opened, other.opened) == (0, 0)


def test_what_the_index_lacks_is_not_pruned(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(keep("Visit", count=1))
    world.append("Visit-1", *"ab")
    world.feed.index()
    world.append("Visit-1", *"cd")
    monkeypatch.setattr(Auditor, "_mend", lambda *_: None)  # an index that cannot be mended
    assert world.auditor().audit(inf).pruned == 1
    assert world.left("Visit-1") == [2, 3]
    monkeypatch.undo()
    world.audit()
    assert world.left("Visit-1") == [3]


def test_what_an_archive_has_not_is_not_pruned() -> None:
    world = World(keep("Visit", count=1))
    archive = replace(world.streams, table=ARCHIVE.kind)
    world.append("Visit-1", *"abc")
    plain, world.streams = world.streams, replace(world.streams, archive=archive)
    assert world.audit().pruned == 1
    assert [event.index for event in archive.page("Visit-1").events][:2] == [0, 1]
    assert [event.index for event in plain.page("Visit-1", start=2).events] == [2]
    assert world.left("Visit-1") == [0, 1, 2], "reads go on into the archive"
    archive.delete("Visit-1")
    world.append("Visit-1", "d")
    found = world.audit()
    assert found.pruned == 0
    assert "Visit-1 is not pruned" in found.troubles[0]


def test_a_run_prunes_so_many_streams_and_the_next_pass_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "STREAMS", 2)
    world = World(keep("Visit", count=1))
    for number in range(5):
        world.append(f"Visit-{number}", *"ab")
    assert [world.audit().pruned for _ in range(4)] == [2, 2, 1, 0]


def test_a_run_ends_after_so_many_items_and_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(keep("Visit", count=1))
    for number in range(5):
        world.append(f"Visit-{number}", *"ab")
    monkeypatch.setattr(auditing, "MOST_ITEMS", 1)
    assert world.audit().pruned == 1
    ticks = iter(range(1_000))
    world.streams = replace(
        world.streams, driver=replace(world.streams.driver, clock=lambda: float(next(ticks)))
    )
    monkeypatch.undo()
    assert world.audit(seconds=4.0).pruned < 4


def test_deleted_streams_and_layouts_that_are_not_pruned_are_left_alone() -> None:
    world = World(keep("Visit", count=1), keep("order", count=1))
    world.append("Visit-1", *"abc")
    world.streams.delete("Visit-1")
    world.feed.tips.append("Visit-2", [Event(type=each) for each in "abc"])
    assert world.audit().pruned == 0


@pytest.mark.parametrize(
    ("given", "text", "rule"),
    [
        ({"count": 100}, "Visit:100", Rule(category="Visit", count=100, days=None)),
        ({"days": 30}, "Visit:30d", Rule(category="Visit", count=None, days=30)),
        ({"count": 100, "days": 30}, "Visit:100:30d", Rule(category="Visit", count=100, days=30)),
    ],
)
def test_a_rule_is_written_and_read(given: dict[str, Any], text: str, rule: Rule) -> None:
    assert keep("Visit", **given) == text
    assert rule_of(text) == rule


@pytest.mark.parametrize(
    "text",
    ["Visit", "Visit:", "Visit:0", "Visit:0d", "Visit:x", ":5", "$tag-a:5", "Visit:36501d", "Vi sit:5"],
)
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="keep"):
        rule_of(text)


def test_neither_is_one_without_a_limit_nor_a_second_for_a_category() -> None:
    with pytest.raises(InvalidInput):
        keep("Visit")
    with pytest.raises(InvalidInput, match="category"):
        keep("Visit:3", days=5)
    with pytest.raises(InvalidInput):
        keep("Visit", count=0)
    with pytest.raises(InvalidInput, match="one rule"):
        rules_of(["Visit:1", "Visit:30d"])


@pytest.mark.usefixtures("pages")
def test_what_would_be_pruned_is_counted_as_an_audit_prunes_it_and_nothing_is_written() -> None:
    world = World(keep("Visit", count=3), keep("Log", days=30), keep("None", count=1))
    world.append("Visit-1", *"abcdefgh")
    world.append("Visit-2", *"abcd")
    world.append("Visit-3", *"ab")
    world.append("Log-1", *"abc")
    world.append("Order-1", *"abcdefgh")
    world.feed.index()
    world.append("Visit-2", *"efgh")  # the index has not got these: only four of them could go
    world.now += 31 * DAY

    def counted() -> list[Prunable]:
        auditor = world.auditor()
        return prunable(auditor.mender, auditor.sources, world.rules)

    before = {spec.kind: list(world.feed.tables.items(spec.kind)) for spec in store_tables()}
    visits, logs, none = counted()
    assert (visits.category, visits.streams, visits.events) == ("Visit", 2, 5 + 4)
    assert (logs.streams, none) == (1, Prunable(category="None"))
    assert {spec.kind: list(world.feed.tables.items(spec.kind)) for spec in store_tables()} == before
    assert world.opened == 0
    world.feed.index()
    visits, logs, _ = counted()
    assert visits.events == 5 + 5
    gone = [8 - len(world.left("Visit-1")), 8 - len(world.left("Visit-2")), 3 - len(world.left("Log-1"))]
    assert gone == [0, 0, 0]
    world.audit()
    gone = [8 - len(world.left("Visit-1")), 8 - len(world.left("Visit-2")), 3 - len(world.left("Log-1"))]
    assert (gone[0] + gone[1], gone[2]) == (visits.events, logs.events)
    assert [each.events for each in counted()] == [0, 0, 0]
