"""No view reads more than it says, nor more because there is more: its bound holds in a store five times as large."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Lock

import pytest
from flask.testing import FlaskClient

from epochal import NO_STREAM, Event, reaction
from epochal.contrib.console.server import application
from epochal.contrib.event_store_adapter import AggregateEvent, aggregate_id
from epochal.deployment import Deployment
from epochal.plan.ops import Op, Reply
from epochal.plan.values import Units
from epochal.reactions.definition import Delivery
from epochal.testing.feeds import MemoryStore
from tests.support.filling import fill

STREAM = "/streams/30000/Long-1"

BOUNDS = {
    "/": (16, 25),
    "/activity": (16, 60),
    "/streams": (12, 60),
    "/streams?search=Long-1": (12, 60),
    STREAM: (4, 6),
    f"{STREAM}?from=0": (4, 7),
    f"{STREAM}?from=1000": (5, 6),
    f"{STREAM}?from=1000&stored=yes": (7, 9),
    "/tagged?tags=course:c1": (2, 5),
    "/feed?partition=30000": (106, 110),
    "/feed?partition=30000&from=0@0": (40, 45),
    "/feed?partition=30000&type=Noted": (106, 110),
    "/feed?partition=30000&text=noted": (210, 220),
    "/trace?id=Long-1@0": (110, 150),
    "/trace?id=Long-1@0&items=500": (410, 460),
    "/reactions?group=slow": (25, 40),
    "/search?search=Long": (0, 0),
    "/search?search=Long&layout=pages": (8, 1024),
    "/projections": (2, 50),
    "/projections?projection=seats": (1, 1),
    "/health": (9, 15),
    "/health?check=pages": (15, 80),
}
"""Requests and read units of each view, at most, however much there is."""


@dataclass
class Spy:
    """Counts what reaches the tables."""

    requests: int = 0
    units: Units = field(default_factory=Units)
    adding: Lock = field(default_factory=Lock)

    def over(self, execute: Callable[[Op], Reply]) -> Callable[[Op], Reply]:
        """An interpreter that is counted."""

        def counted(op: Op) -> Reply:
            reply = execute(op)
            with self.adding:  # a view asks several partitions side by side
                self.requests += 1
                self.units += reply.units
            return reply

        return counted


@pytest.fixture(
    scope="module",
    params=[5_000, pytest.param(100_000, marks=pytest.mark.proof)],
    ids=lambda each: f"{each:,} events",
)
def filled(request: pytest.FixtureRequest) -> MemoryStore:
    @reaction(name="slow", categories=["Short"])
    def slow(_: Delivery) -> None: ...

    feed = MemoryStore()
    feed.streams.append("Short-0", [Event(type="Noted")])
    feed.react(slow)
    fill(feed, request.param)
    return feed


@pytest.fixture
def spy() -> Spy:
    return Spy()


@pytest.fixture
def client(filled: MemoryStore, opened: Deployment, spy: Spy) -> FlaskClient:
    driver = filled.feed.driver
    deployment = replace(opened, driver=replace(driver, execute=spy.over(driver.execute)))
    return application(deployment, "epochal-test").test_client()


@pytest.mark.slow
@pytest.mark.parametrize("path", BOUNDS)
def test_a_view_takes_what_it_says_and_no_more_than_its_bound(
    client: FlaskClient, spy: Spy, path: str
) -> None:
    answer = client.get(path, base_url="http://127.0.0.1")
    assert answer.status_code == 200, answer.text
    told = re.search(r"took (\d+) requests? and ([\d.]+) read unit", answer.text)
    assert told
    assert (int(told[1]), float(told[2])) == (spy.requests, spy.units.read)
    assert spy.units.write == 0
    requests, units = BOUNDS[path]
    assert spy.requests <= requests
    assert spy.units.read <= units


@pytest.mark.slow
def test_a_stream_of_any_layout_is_shown_by_its_last_window(feed: MemoryStore, opened: Deployment) -> None:
    """Ten times as many events, and the same bound."""
    aggregate, expected = aggregate_id("account", "1"), None
    client = application(opened, "epochal-test").test_client()
    for count in (120, 1_200):
        for _ in range(count // 60):
            feed.tips.append("Long-1", [Event(type="Noted", data=b"{}")] * 60)
            appended = feed.aggregates.append(
                aggregate,
                [AggregateEvent(type="Noted", data=b"{}")] * 60,
                snapshot=b"{}",
                expected=expected or NO_STREAM,
            )
            expected = appended.lock
            for store in (feed.tagged, feed.dcb):
                for _ in range(3):
                    store.append([Event(type="Noted", data=b"{}", tags=["course:long"])] * 20)
        for path in ("0/Long-1", "10000/account-1", "20000/course:long", "30000/$tag-course:long"):
            page = client.get(f"/streams/{path}", base_url="http://127.0.0.1").text
            assert len(re.findall(r'<article class="event"', page)) == 50
            told = re.search(r"took (\d+) requests?", page)
            assert told
            assert int(told[1]) <= 12


@pytest.mark.slow
def test_a_long_stream_is_scrolled_from_its_end_to_its_beginning_by_windows(client: FlaskClient) -> None:
    path, windows = STREAM, 0
    for _ in range(5):
        page = client.get(path, base_url="http://127.0.0.1").text
        indices = [int(each) for each in re.findall(r'<article class="event" id="e(\d+)"', page)]
        assert len(indices) == 50
        assert indices == [*range(indices[0], indices[0] + 50)]
        earlier = re.search(r'rel="prev" href="(\?from=\d+)"', page)
        assert earlier
        path, windows = STREAM + earlier[1], windows + 1
    assert windows == 5
