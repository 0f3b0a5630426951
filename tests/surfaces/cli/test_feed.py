"""feed, tail and stats."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from epochal import NO_STREAM, Event
from epochal.cli.inputs import NotThere
from epochal.cli.main import epochal
from epochal.contrib.event_store_adapter import AggregateEvent, aggregate_id
from epochal.errors import EpochalError, EventsPruned
from epochal.layout.registry import partition_of
from epochal.plan.ops import Put
from epochal.testing.feeds import MemoryStore
from tests.support.terminal import Terminal


@pytest.fixture
def filled(terminal: Terminal) -> Terminal:
    """Two carts and a user, indexed as two entries."""
    terminal.lines(
        "append", "Cart-1", "--events", '[{"type": "Opened"}, {"type": "Added", "data": {"n": 1}}]'
    )
    terminal.lines("append", "User-1", "Joined")
    terminal.index()
    terminal.lines("append", "Cart-2", "Opened")
    terminal.index()
    return terminal


def test_partitions_are_listed_with_their_tails(filled: Terminal) -> None:
    assert filled.documents("feed") == [{"partitions": [{"partition": 0, "tail": "0@2"}]}]
    assert filled.lines("feed") == ["0  0@2"]


def test_a_page_of_the_feed_is_one_document_with_where_to_go_on(filled: Terminal) -> None:
    (page,) = filled.documents("feed", "0")
    assert [(each["stream"], each["index"], each["type"]) for each in page["items"]] == [
        ("Cart-1", 0, "Opened"),
        ("Cart-1", 1, "Added"),
        ("User-1", 0, "Joined"),
        ("Cart-2", 0, "Opened"),
    ]
    assert (page["partition"], page["next"], page["atTail"]) == (0, "0@2", True)


def test_what_is_gone_is_shown_where_it_went(filled: Terminal) -> None:
    filled.lines("prune", "Cart-1", "1", "--yes")
    filled.index()
    assert filled.lines("feed", "0", "--from", "0@2") == [
        "Cart-1       1  $pruned  (events 0 to 0 are gone)",
        "next 0@3, at the tail",
    ]
    assert filled.lines("tail", "--from", "0@2", "--for", "0") == [
        "Cart-1       1  $pruned  (events 0 to 0 are gone)"
    ]


@pytest.mark.parametrize("options", [(), ("--data",)], ids=["places", "events"])
def test_the_newest_that_were_indexed_together_are_printed_newest_first(options: tuple[str, ...]) -> None:
    terminal = Terminal(named="tips", layouts=("tips",), partitions=4)
    names = [f"Cart-{number:03}" for number in range(60)]
    for name in names:
        terminal.streams.append(name, [Event(type="Opened")])
    terminal.index()
    (page,) = terminal.documents("newest", "--limit", "10", *options)
    assert [item["stream"] for item in page["items"][:10]] == names[:-11:-1]


def test_a_page_begins_at_a_checkpoint_and_ends_with_the_entry_that_reaches_its_limit(
    filled: Terminal,
) -> None:
    (page,) = filled.documents("feed", "0", "--limit", "1")
    assert (len(page["items"]), page["next"], page["atTail"]) == (3, "0@1", False)
    assert filled.lines("feed", "0", "--from", "0@1") == ["Cart-2       0  Opened", "next 0@2, at the tail"]


@pytest.mark.slow
def test_an_event_that_cannot_be_read_is_shown_with_its_fault_and_the_page_goes_on(filled: Terminal) -> None:
    tip = next(item for item in filled.tables.items("tips") if item["p"]["S"] == "Cart-1")
    opened, added = tip["e"]["L"]
    broken = {"M": {**opened["M"], "d": {"B": b"x"}, "D": {"N": "3"}}}
    filled.tables.execute(Put(table="tips", item={**tip, "e": {"L": [broken, added]}}))

    (page,) = filled.documents("feed", "0", "--data")
    assert [each.get("fault", {}).get("detail") for each in page["items"]] == [
        "Cart-1 (index 0): unknown body encoding 3",
        None,
        None,
        None,
    ]
    assert (
        "Cart-1       0  Opened  (cannot be read: Cart-1 (index 0): unknown body encoding 3)"
        in filled.lines("feed", "0", "--data")
    )
    assert len(filled.documents("tail", "--from", "0", "--for", "0.2", "--data")) == 4


def test_categories_filter_and_data_is_read_when_asked_for(filled: Terminal) -> None:
    (page,) = filled.documents("feed", "0", "--category", "Cart", "--data")
    assert [(each["stream"], each.get("data")) for each in page["items"]] == [
        ("Cart-1", None),
        ("Cart-1", {"n": 1}),
        ("Cart-2", None),
    ]
    assert all("timestamp" in each for each in page["items"])


def test_the_feed_is_printed_and_followed_from_a_moment(filled: Terminal) -> None:
    assert filled.lines("feed", "0", "--from", "2000-01-01T00:00Z") == filled.lines("feed", "0")
    assert filled.lines("feed", "0", "--from", "9999-01-01T00:00Z") == ["next 0@2, at the tail"]
    assert filled.documents("tail", "--from", "9999-01-01T00:00Z", "--for", "0") == []
    assert len(filled.documents("tail", "--from", "2000-01-01T00:00Z", "--for", "0")) == 4


def test_the_newest_items_come_first_and_go_on_before_a_position(filled: Terminal) -> None:
    everything = filled.lines("feed", "0")[:-1]
    first = filled.lines("newest", "--limit", "1")
    assert first[-1].startswith("next ")
    rest = filled.lines("newest", "--before", first[-1].removeprefix("next "))
    assert [*first[:-1], *rest] == [*everything[::-1], "at the beginning"]
    (page,) = filled.documents("newest", "--category", "Cart", "--data")
    assert [(each["stream"], each.get("data")) for each in page["items"]] == [
        ("Cart-2", None),
        ("Cart-1", {"n": 1}),
        ("Cart-1", None),
    ]
    assert page["atBeginning"]


def test_a_writer_waits_until_its_events_are_in_the_feed(filled: Terminal) -> None:
    wait = ("wait", "Cart-2", "--source", "tips")
    (position,) = filled.lines(*wait, "1")
    assert (position, filled.documents(*wait, "1")) == ("0:0@2", [{"position": "0:0@2"}])
    filled.lines("append", "Cart-2", "Added")
    late = filled.run(*wait, "2", "--for", "0")
    assert (late.exit_code, late.stdout) == (1, "not yet\n")
    filled.index()
    assert filled.lines(*wait, "2") == ["0:0@3"]


def test_following_the_feed_from_a_checkpoint_prints_a_line_an_event(filled: Terminal) -> None:
    shown = filled.documents(
        "tail", "--from", "0@0", "--for", "0", "--category", "User", "--category", "Cart"
    )
    assert [(each["stream"], each["index"]) for each in shown] == [
        ("Cart-1", 0),
        ("Cart-1", 1),
        ("User-1", 0),
        ("Cart-2", 0),
    ]


def test_following_the_feed_without_a_checkpoint_begins_at_its_end(
    filled: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def arrive(_: float) -> None:
        filled.lines("append", "Cart-3", "Opened", "7")
        filled.index()
        monkeypatch.setattr("time.sleep", lambda _: None)

    monkeypatch.setattr("time.sleep", arrive)
    (first, *_rest) = filled.documents("tail", "--for", "0.2", "--data")
    assert (first["stream"], first["data"]) == ("Cart-3", 7)


def test_a_feed_that_is_still_empty_is_followed_from_its_beginning(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def arrive(_: float) -> None:
        terminal.lines("append", "Cart-3", "Opened")
        terminal.index()
        monkeypatch.setattr("time.sleep", lambda _: None)

    monkeypatch.setattr("time.sleep", arrive)
    assert [each["stream"] for each in terminal.documents("tail", "--for", "0.2")] == ["Cart-3"]


def test_every_partition_is_followed_unless_some_are_chosen() -> None:
    terminal = Terminal(named="tips", layouts=("tips",), partitions=3)
    for number in range(12):
        terminal.lines("append", f"Cart-{number}", "Opened")
    terminal.index()
    everything = {each["stream"] for each in terminal.documents("tail", "--from", "0", "--for", "0")}
    assert everything == {f"Cart-{number}" for number in range(12)}
    chosen = {
        each["stream"] for each in terminal.documents("tail", "--from", "0", "--for", "0", "--partition", "1")
    }
    assert chosen == {name for name in everything if partition_of(name, 3) == 1} != set()


def test_a_feed_that_is_followed_in_order_holds_events_back_and_shows_them_whole() -> None:
    terminal = Terminal(named="tips", layouts=("tips",), partitions=3)
    for number in range(6):
        terminal.lines("append", f"Cart-{number}", "Opened")
    terminal.index()
    found = terminal.documents("tail", "--from", "0", "--within", "0", "--for", "0")
    assert sorted(each["stream"] for each in found) == [f"Cart-{number}" for number in range(6)]
    assert all(each["type"] == "Opened" and "timestamp" in each for each in found)
    chosen = terminal.documents("tail", "--from", "0", "--within", "0", "--for", "0", "--partition", "1")
    assert {partition_of(each["stream"], 3) for each in chosen} == {1}
    assert terminal.documents("tail", "--from", "0", "--within", "3600", "--for", "0") == []
    refused = terminal.run("tail", "Cart-1", "--within", "5")
    assert "apply to the feed, not to a STREAM" in refused.stderr


def test_following_a_stream_begins_at_its_end_or_at_an_index(
    filled: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [each["index"] for each in filled.documents("tail", "Cart-1", "--from", "0", "--for", "0")] == [
        0,
        1,
    ]

    def arrive(_: float) -> None:
        filled.lines("append", "Cart-1", "Closed")
        monkeypatch.setattr("time.sleep", lambda _: None)

    monkeypatch.setattr("time.sleep", arrive)
    (first, *_rest) = filled.documents("tail", "Cart-1", "--for", "0.2")
    assert (first["index"], first["type"]) == (2, "Closed")


@pytest.mark.parametrize("start", [(), ("--from", "0")], ids=["from its end", "from its beginning"])
def test_a_prune_that_overtakes_whoever_follows_a_stream_is_told_with_what_is_gone(
    filled: Terminal, monkeypatch: pytest.MonkeyPatch, start: tuple[str, ...]
) -> None:
    def arrive(_: float) -> None:
        filled.lines("append", "Cart-1", "Closed")
        filled.streams.prune("Cart-1", 3)
        filled.lines("append", "Cart-1", "Reopened")
        monkeypatch.setattr("time.sleep", lambda _: None)

    monkeypatch.setattr("time.sleep", arrive)
    overtaken = filled.run("tail", "Cart-1", *start, "--for", "5")

    assert "Reopened" not in overtaken.stdout
    assert isinstance(overtaken.exception, EventsPruned)
    assert (overtaken.exception.needed, overtaken.exception.low_water) == (2, 3)


def test_a_pruned_stream_is_followed_from_what_is_left(filled: Terminal) -> None:
    filled.streams.prune("Cart-1", 1)
    assert [each["index"] for each in filled.documents("tail", "Cart-1", "--from", "0", "--for", "0")] == [1]


@pytest.mark.parametrize(
    "command", [("feed", "1"), ("tail", "--partition", "0", "--partition", "1", "--for", "0")]
)
def test_a_partition_that_is_not_there_is_told_with_those_that_are(
    filled: Terminal, command: tuple[str, ...]
) -> None:
    error = filled.run(*command).exception
    assert str(error) == "the feed has no partition 1; it has 0"
    assert isinstance(error, NotThere)


def test_stats_show_partitions_epochs_checkpoints_and_table_sizes(filled: Terminal) -> None:
    (found,) = filled.documents("stats")
    assert found == {
        "partitions": {"0": {"epochs": 1, "tail": "0@2"}},
        "indexer": {"tips": "the index has all events of 3 streams"},
        "groups": {},
        "allGroups": True,
        "tables": {"tips": {"items": 3, "bytes": 4_096}},
    }
    assert filled.lines("stats") == [
        "partitions 0 epochs 1",
        "partitions 0 tail   0@2",
        "indexer tips        the index has all events of 3 streams",
        "tables tips items   3",
        "tables tips bytes   4,096",
    ]


def test_counting_walks_the_index(filled: Terminal) -> None:
    (found,) = filled.documents("stats", "--count")
    assert (found["events"], found["streams"]) == (4, 3)
    assert found["categories"] == {
        "Cart": {"streams": 2, "events": 3},
        "User": {"streams": 1, "events": 1},
    }
    assert found["types"] == {"Opened": 2, "Added": 1, "Joined": 1}


def test_categories_that_are_counted_are_those_that_are_asked_for(terminal: Terminal) -> None:
    feed = MemoryStore(options={"aggregate_types": ("user-account",)})
    feed.tips.append("course-1", [Event(type="Opened")])
    created = AggregateEvent(type="Created", data=b"{}")
    feed.aggregates.append(aggregate_id("user-account", "7"), [created], snapshot=b"{}", expected=NO_STREAM)
    feed.dcb.append([Event(type="Subscribed", data=b"{}", tags=("course:1", "plain"))])
    feed.index()

    store = replace(terminal.store, feed=feed.feed)
    shown = CliRunner().invoke(epochal, ["stats", "--count", "--json"], obj=lambda: store)
    assert json.loads(shown.stdout)["categories"] == {
        "course": {"streams": 2, "events": 2},
        "user-account": {"streams": 1, "events": 1},
        "plain": {"streams": 1, "events": 1},
    }


def test_stats_of_a_stream_show_what_its_tip_holds(filled: Terminal) -> None:
    filled.lines("append", "User-1", "Left", "--unfold", "Profile=1")
    (found,) = filled.documents("stats", "User-1")
    assert (found["version"], found["head"]["events"], found["head"]["unfolds"]) == (2, 2, 1)
    assert "deleted          no" in filled.lines("stats", "User-1")
    assert found["head"]["bytes"] > found["head"]["eventBytes"] + found["head"]["unfoldBytes"] > 0
    error = filled.run("stats", "User-9").exception
    assert isinstance(error, EpochalError)
    assert str(error) == ("User-9: there is no such stream; `epochal streams` lists all streams")
