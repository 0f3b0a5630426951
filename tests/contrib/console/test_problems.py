"""The first page begins with what is wrong, the gravest first, each with what to do about it."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from epochal import Event, reaction
from epochal.contrib.console.page import Services
from epochal.contrib.console.server import application
from epochal.deployment import Deployment
from epochal.hosting.failure_records import FailureRecords
from epochal.hosting.indexer_state import IndexerState
from epochal.index.group_state import Unit
from epochal.reactions.definition import Delivery
from epochal.reactions.group_member import Member, stand_in
from epochal.testing.feeds import MemoryStore
from tests.contrib.console.test_overview import NOON, At, clock
from tests.docs.test_links import ROOT

__all__ = ["clock"]


def client_of(opened: Deployment, **services: Any) -> FlaskClient:
    return application(opened, "epochal-test", Services(prefix="epochal-test", **services)).test_client()


def page_of(client: FlaskClient, path: str = "/") -> str:
    answer = client.get(path, base_url="http://127.0.0.1")
    assert answer.status_code == 200, answer.text
    return html.unescape(answer.text)


def problems(page: str) -> list[str]:
    """The problems on the first page, as text."""
    found = re.findall(r'<li class="problem">(.*?)</li>', page, re.DOTALL)
    texts = (" ".join(re.sub(r"</?(a|li|small|code|div)\b[^>]*>", "", one).split()) for one in found)
    return [*texts]


@reaction(name="board", categories=["Cart"], attempts=1)
def board(_: Delivery) -> None:
    """Parks every stream."""
    raise ValueError("no gate")


def test_nothing_is_wrong_where_nothing_waits(feed: MemoryStore, opened: Deployment, clock: At) -> None:
    feed.streams.append("Cart-1", [Event(type="Noted")])
    feed.index()
    works = {"pages": IndexerState()}
    page = page_of(client_of(opened, now=clock, indexer=lambda: works))
    assert problems(page) == []
    assert "No known problems" in page


def test_problems_come_first_the_gravest_before_the_others_each_with_a_remedy(
    feed: MemoryStore, opened: Deployment, clock: At
) -> None:
    feed.streams.append("Cart-1", [Event(type="Noted")])
    feed.react(board)
    fails = {"pages": IndexerState(failure="the function fails at import")}
    page = page_of(client_of(opened, now=clock, deployed=lambda: ["board"], indexer=lambda: fails))
    first, second = problems(page)
    assert first.startswith("The indexer of pages adds no events: the function fails at import")
    assert "epochal index status" in first
    assert "feed-lags" in first
    assert second.startswith("board has parked 1 stream.")
    assert "epochal parked list board" in second
    assert "reaction-<name>-parked" in second
    assert page.index('class="problem"') < page.index("<h2")


def test_a_paused_group_is_named_with_what_resumes_it(
    feed: MemoryStore, opened: Deployment, clock: At
) -> None:
    @reaction(name="quiet", categories=["Cart"])
    def quiet(_: Delivery) -> None: ...

    feed.streams.append("Cart-1", [Event(type="Noted")])
    feed.react(quiet)
    feed.groups.pause("quiet")
    (problem,) = problems(page_of(client_of(opened, now=clock, deployed=lambda: ["quiet"])))
    assert problem.startswith("quiet has been paused since ")
    assert "epochal groups resume quiet" in problem


def test_a_reaction_that_cannot_be_loaded_names_its_entry_of_the_runbook(
    feed: MemoryStore, opened: Deployment, clock: At
) -> None:
    feed.streams.append("Cart-1", [Event(type="Noted")])
    feed.index()
    member = Member(reaction=stand_in("new"), reader=feed.feed)
    records = FailureRecords(member=member, keeps_words=False, on_unrecorded=pytest.fail)
    records.record_failed_load(Unit(30_000), ModuleNotFoundError("No module named 'gates'"), 2.0)
    (problem,) = problems(page_of(client_of(opened, now=clock, deployed=lambda: ["new"])))
    assert problem.startswith("new makes no progress: blocked since ")
    assert "No module named 'gates'" in problem
    assert problem.endswith("runbook: reaction-<name>-fails")


def test_every_entry_of_the_runbook_that_a_page_names_is_there(opened: Deployment) -> None:
    from epochal.contrib.console.problems import RUNBOOK  # noqa: PLC0415  it is what is shown

    text = (ROOT / "docs" / "runbook.md").read_text("utf-8")
    assert {f"### `{entry}`" for entry in RUNBOOK} <= set(text.splitlines())


@pytest.mark.parametrize("paths", [["/", "/reactions?group=slow"]])
def test_every_count_of_what_a_group_is_behind_is_of_events(
    feed: MemoryStore, opened: Deployment, clock: At, paths: Sequence[str]
) -> None:
    @reaction(name="slow", categories=["Cart"])
    def slow(_: Delivery) -> None: ...

    feed.streams.append("Cart-1", [Event(type="Opened")])
    feed.react(slow)
    client = client_of(opened, now=clock, deployed=lambda: ["slow"])
    for path in paths:
        page_of(client, path)
    clock.seconds += 120
    feed.streams.append("Cart-1", [Event(type="Added"), Event(type="Added")])
    feed.streams.append("User-1", [Event(type="Renamed")])
    feed.index()
    for path in paths:
        page = page_of(client, path)
        assert "ntries behind" not in page
        assert "Events behind" in page
        assert [row for row in page.split("<tr>")[2:] if "slow" in row and '<td class="n">2</td>' in row]
    assert "Events that slow was behind" in page


def test_the_events_are_counted_once_a_minute_and_not_where_nothing_is_new(
    feed: MemoryStore, opened: Deployment, clock: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    @reaction(name="slow", categories=["Cart"])
    def slow(_: Delivery) -> None: ...

    counted: list[str] = []
    standing = type(opened.groups).standing
    monkeypatch.setattr(
        type(opened.groups),
        "standing",
        lambda self, group, *rest: (counted.append(group), standing(self, group, *rest))[1],
    )
    feed.streams.append("Cart-1", [Event(type="Opened")])
    feed.react(slow)
    client = client_of(opened, now=clock, deployed=lambda: ["slow"])
    page_of(client, "/reactions")
    assert counted == []
    feed.streams.append("Cart-1", [Event(type="Added")])
    feed.index()
    for _ in range(3):
        page_of(client, "/reactions")
    assert counted == ["slow"]
    clock.seconds += 61
    page_of(client, "/reactions")
    assert counted == ["slow", "slow"]


@pytest.mark.parametrize("years", [1, 12])
def test_an_imported_event_does_not_make_the_feed_look_late(
    feed: MemoryStore, opened: Deployment, clock: At, years: int
) -> None:
    old = f"{2013 - years}-01-01T12:00:00Z"
    feed.tips.append("Cart-1", [Event(type="Noted", timestamp=old)])
    feed.index()
    page = page_of(client_of(opened, now=clock))
    assert "reached the feed" not in page
    assert "days" not in page
    assert "has its own time" in page
    feed.streams.append("Cart-1", [Event(type="Noted", timestamp=old)])
    feed.index()
    page = page_of(client_of(opened, now=clock))
    assert "reached the feed 0 s after their append" in page
    assert problems(page) == []


@pytest.mark.parametrize("hours", [1, 23])
def test_how_late_an_imported_event_of_the_last_day_came_is_counted_from_its_append(
    feed: MemoryStore, opened: Deployment, clock: At, hours: int
) -> None:
    happened = datetime.fromtimestamp(NOON, UTC) - timedelta(hours=hours)
    feed.streams.append("Cart-1", [Event(type="Noted", timestamp=happened), Event(type="Noted")])
    feed.streams.append("Cart-2", [Event(type="Noted"), Event(type="Noted", timestamp=happened)])
    feed.index()
    assert problems(page_of(client_of(opened, now=clock))) == []
    feed.streams.append("Cart-3", [Event(type="Noted", timestamp=happened)])
    clock.seconds = NOON + 600
    feed.index()
    (problem,) = problems(page_of(client_of(opened, now=clock)))
    assert problem.startswith("The newest events reached the feed 10 min after their append.")


def test_a_feed_that_is_late_by_minutes_is_a_problem(
    feed: MemoryStore, opened: Deployment, clock: At
) -> None:
    feed.streams.append("Cart-1", [Event(type="Noted")])
    clock.seconds = NOON + 600
    feed.index()
    (problem,) = problems(page_of(client_of(opened, now=clock)))
    assert problem.startswith("The newest events reached the feed 10 min after their append.")


def test_what_a_group_does_not_read_makes_it_neither_late_nor_old(
    feed: MemoryStore, opened: Deployment, clock: At
) -> None:
    @reaction(name="slow", categories=["Cart"])
    def slow(_: Delivery) -> None: ...

    feed.streams.append("Cart-1", [Event(type="Opened")])
    feed.react(slow)
    feed.streams.append("User-1", [Event(type="Renamed")])
    feed.index()
    clock.seconds += 600
    client = client_of(opened, now=clock, deployed=lambda: ["slow"])
    page = page_of(client)
    assert problems(page) == []
    assert "10 min" not in page
    assert "10 min" not in page_of(client, "/reactions?group=slow")
