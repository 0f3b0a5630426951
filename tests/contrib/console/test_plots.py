"""Plots say what was counted: their heights, their labels, and from when on they are complete."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from flask.testing import FlaskClient

from epochal import Event, reaction
from epochal.contrib.console.page import LOOKS, Lags, Services, over_time, plot
from epochal.contrib.console.server import application
from epochal.deployment import Deployment
from epochal.hosting.services import Metric
from epochal.reactions.definition import Delivery
from epochal.testing.feeds import MemoryStore

NOON = 1_700_000_000 // 86_400 * 86_400 + 43_200


def test_a_bar_is_as_high_as_its_value_and_says_it() -> None:
    drawn = plot("Events", [("12:00", 10), ("12:01", 5), ("12:02", 0)])
    assert [(bar.y, bar.label) for bar in drawn.bars] == [(0, "12:00"), (60, "12:01"), (120, "12:02")]
    assert [bar.x for bar in drawn.bars] == [0, 240, 480]
    assert (drawn.top, drawn.total) == (10, 15)


def test_nothing_is_drawn_of_nothing() -> None:
    assert plot("Events", []).bars == ()
    assert over_time("Events", {}, 60, 60).bars == ()


def test_periods_without_a_value_are_there_and_old_ones_are_left_out() -> None:
    drawn = over_time("Events", {NOON - 600.0: 9, NOON + 0.0: 1, NOON + 130.0: 2}, 60, 5)
    assert [(bar.label, bar.value) for bar in drawn.bars] == [
        ("11:58", 0),
        ("11:59", 0),
        ("12:00", 1),
        ("12:01", 0),
        ("12:02", 2),
    ]


def test_looks_at_a_group_are_kept_and_the_oldest_are_forgotten() -> None:
    lags = Lags()
    for number in range(LOOKS + 5):
        seen = lags.add("a", number, number)
    assert (len(seen), seen[0]) == (LOOKS, (5, 5))
    assert lags.add("b", 1.0, 7) == [(1.0, 7)]


@pytest.fixture
def clocked(feed: MemoryStore) -> list[float]:
    """The time that the index goes by, in seconds."""
    seconds = [float(NOON)]
    indexer = replace(feed._indexer, now=lambda: int(seconds[0] * 1e9))  # noqa: SLF001  it goes by the machine's clock
    feed._indexer = indexer  # noqa: SLF001
    return seconds


def _came(feed: MemoryStore, clocked: list[float], minutes: Sequence[int]) -> None:
    for minute in minutes:
        clocked[0] = NOON + 60.0 * minute
        feed.streams.append("Cart-1", [Event(type="Noted"), Event(type="Noted")])
        feed.index()


def _page(client: FlaskClient, path: str) -> str:
    answer = client.get(path, base_url="http://127.0.0.1")
    assert answer.status_code == 200, answer.text
    return answer.text


def test_events_a_minute_are_those_that_the_index_noted(
    feed: MemoryStore, clocked: list[float], browser: FlaskClient
) -> None:
    _came(feed, clocked, [0, 0, 2])
    page = _page(browser, "/activity")
    assert re.findall(r"<title>(.*?)</title></rect>|<title>(\d\d:\d\d: \d+)", page) == [
        ("12:00: 4", ""),
        ("12:02: 2", ""),
    ]
    assert "complete from" not in page


def test_a_plot_of_fewer_entries_than_there_are_says_from_when_on_it_is_complete(
    feed: MemoryStore, clocked: list[float], browser: FlaskClient
) -> None:
    _came(feed, clocked, [0, 1, 2, 3])
    page = _page(browser, "/activity?items=2")
    assert "complete from 12:02 on" in page
    assert re.findall(r"<title>([\d:]+ \d)", page) == ["12:02: 2", "12:03: 2"]


def test_cloudwatch_is_asked_on_demand_alone_after_its_price_is_told(opened: Deployment) -> None:
    asked: list[Sequence[Metric]] = []

    def measure(metrics: Sequence[Metric], start: float, end: float, period: int) -> list[dict[float, float]]:
        asked.append(metrics)
        assert (end - start, period) == (3 * 3600, 300)
        return [{end - 600: 5.0} if each.name.startswith("ConsumedWrite") else {} for each in metrics]

    services = Services(measure=measure, now=lambda: NOON * 10**9)
    client = application(opened, "epochal-test", services).test_client()
    page = _page(client, "/activity")
    assert asked == []
    assert "A request for 15 metrics costs $0.00015" in page
    assert "data-live" in page
    page = _page(client, "/activity?metrics=yes")
    assert "data-live" not in page  # or it would be asked, and paid, every two seconds
    (metrics,) = asked
    assert len(metrics) == 15
    assert "Write units, per five minutes" in page
    assert "11:50: 25" in page
    assert "Read units, by" not in page
    assert "and 1 request to CloudWatch" in page


def test_where_cloudwatch_has_nothing_or_is_not_there_the_page_says_so(opened: Deployment) -> None:
    silent = Services(measure=lambda metrics, *_: [{} for _ in metrics])
    client = application(opened, "epochal-test", silent).test_client()
    assert "The embedded AWS keeps none" in _page(client, "/activity?metrics=yes")
    client = application(opened, "epochal-test").test_client()
    assert "no access to CloudWatch" in _page(client, "/activity?metrics=yes")


def test_a_group_behind_shows_how_old_its_oldest_entry_is_and_a_plot_from_the_second_look_on(
    feed: MemoryStore, opened: Deployment, clocked: list[float]
) -> None:
    @reaction(name="slow", categories=["Cart"])
    def slow(_: Delivery) -> None: ...

    _came(feed, clocked, [0])
    feed.react(slow)
    _came(feed, clocked, [1, 2])
    client = application(opened, "t", Services(now=lambda: (NOON + 180) * 10**9)).test_client()
    page = _page(client, "/reactions?group=slow")
    assert "2 min" in page
    assert "<svg" not in page
    assert "Events that slow was behind" in _page(client, "/reactions?group=slow")


def test_the_events_that_a_group_reads_are_counted_and_no_others(
    feed: MemoryStore, opened: Deployment
) -> None:
    @reaction(name="slow", categories=["Cart"])
    def slow(_: Delivery) -> None: ...

    feed.streams.append("Cart-1", [Event(type="Opened")])
    feed.react(slow)
    feed.streams.append("Cart-1", [Event(type="Added"), Event(type="Added")])
    feed.streams.append("User-1", [Event(type="Renamed")])
    feed.index()
    client = application(opened, "t", Services()).test_client()
    page = _page(client, "/reactions?group=slow")
    assert "Events behind" in page
    (row,) = [row for row in page.split("<tr>") if "<td>slow" in row and '">30000<' in row]
    assert re.findall(r'<td class="n">([^<]*)</td>', row)[3] == "2"
