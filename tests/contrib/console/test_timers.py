"""The console's page of timers: what is due and has not fired, and what comes next."""

from __future__ import annotations

import re

import pytest
from flask.testing import FlaskClient

from epochal.contrib.console.page import Services
from epochal.contrib.console.server import application
from epochal.deployment import Deployment
from epochal.model.events import Event
from epochal.scheduling import after, later
from epochal.testing.stores import MemoryBucket, memory_settings
from tests.contrib.timers.world import World


@pytest.fixture
def world() -> World:
    return World()


def page(world: World, path: str = "/timers", table: str = "timers") -> str:
    world.asked.clear()
    deployment = Deployment(
        settings=memory_settings(**({"timers_table": table} if table else {})),
        driver=world.engine.driver,
        bucket=MemoryBucket(),
    )
    browser: FlaskClient = application(
        deployment, "epochal-test", Services(now=lambda: world.time)
    ).test_client()
    answer = browser.get(path, base_url="http://127.0.0.1:1")
    assert answer.status_code == 200, answer.text
    return answer.text


def test_what_is_due_is_shown_with_how_late_it_is_and_its_stream_and_what_comes_next(world: World) -> None:
    for stream, seconds in (("Loan-1", 5), ("Loan-2", 3_600), ("Loan-3", 1_000_000)):
        world.set(stream, "reminder", seconds)
    world.tagged.append([later("release", [Event(type="Came")], at=after(seconds=9), tags=("seat:1",))])
    world.arm()
    world.time += 1_000 * 10**9
    shown = page(world)
    due, _, coming = shown.partition("<h2>Next</h2>")
    assert "2 due and not fired, the oldest since 17 min" in due
    assert re.findall(r"/streams/30000/(Loan-\d)", due) == ["Loan-1"]
    assert re.findall(r"/streams/30000/(Loan-\d)", coming) == ["Loan-2", "Loan-3"]
    assert "seat:1" in due
    assert "17 min" in due
    assert "43 min" in coming
    assert "12 days" in coming
    assert "took 32 requests" in shown


def test_no_more_is_shown_than_is_asked_for(world: World) -> None:
    for number in range(5):
        world.set(f"Loan-{number}", "reminder", 1)
    world.arm()
    world.time += 10 * 10**9
    shown = page(world, "/timers?items=3")
    assert "More than 3 due" in shown
    assert len(re.findall(r"/streams/30000/Loan-\d", shown)) == 3


def test_where_nothing_is_due_it_says_so(world: World) -> None:
    assert "No due timer is waiting to fire." in page(world)
    assert "No other timer is set." in page(world)


def test_a_store_without_timers_says_so_and_asks_for_nothing(world: World) -> None:
    assert "has no timers" in page(world, table="")
    assert world.asked == []
