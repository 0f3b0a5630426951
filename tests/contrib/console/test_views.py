"""Old streams, what is stored, projections, read models and the health of the index: shown as they are, when asked."""

from __future__ import annotations

import html
import random
import re
from dataclasses import replace

import pytest
from flask.testing import FlaskClient

from epochal import Event, Unfold, reaction
from epochal.contrib.console import streams
from epochal.contrib.console.page import Services
from epochal.contrib.console.server import application
from epochal.deployment import Deployment
from epochal.errors import Refused
from epochal.feed.events import FeedEvent
from epochal.feed.stream_records import Record
from epochal.plan.ops import Op, Reply, Scan
from epochal.plan.values import number
from epochal.reactions.definition import Delivery
from epochal.read_models.documents import Documents
from epochal.testing.feeds import MemoryStore


def _page(client: FlaskClient, path: str, status: int = 200) -> str:
    answer = client.get(path, base_url="http://127.0.0.1")
    assert answer.status_code == status, answer.text
    return html.unescape(answer.text)


# ------------------------------------------------------------------------------------------------------------- search


@pytest.fixture
def small_pages(opened: Deployment) -> tuple[Deployment, list[Scan]]:
    """The deployment, of which a scan reads two items at a time, and the scans that were asked for."""
    scans: list[Scan] = []

    def execute(op: Op) -> Reply:
        if isinstance(op, Scan):
            scans.append(op)
            op = replace(op, limit=2)
        return opened.driver.execute(op)

    return replace(opened, driver=replace(opened.driver, execute=execute)), scans


def test_old_streams_are_found_by_their_beginnings_some_of_the_table_at_each_press(
    feed: MemoryStore, small_pages: tuple[Deployment, list[Scan]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "REQUESTS", 3)
    deployment, scans = small_pages
    for number_ in range(10):
        feed.streams.append(f"Cart-{number_}", [Event(type="Noted")])
        feed.streams.append(f"Order-{number_}", [Event(type="Noted")])
    client = application(deployment, "epochal-test").test_client()
    path, found, presses = "/search?search=Cart&layout=pages", set[str](), 0
    while path:
        page = _page(client, path)
        presses += 1
        assert len(scans) <= 3 * presses
        names = re.findall(r'href="/streams/30000/([^"]+)"', page)
        assert all(name.startswith("Cart-") for name in names)
        found.update(names)
        onward = re.search(r'rel="next" href="(\?[^"]+)"', page)
        path = f"/search{onward[1]}" if onward else ""
    assert found == {f"Cart-{number_}" for number_ in range(10)}
    assert presses == 4
    assert "end of the table" in page


def test_what_a_search_will_cost_is_told_before_anything_is_read(
    feed: MemoryStore, small_pages: tuple[Deployment, list[Scan]]
) -> None:
    deployment, scans = small_pages
    sizes = Services(sizes=lambda: {"streams": 80_000_000, "tips": 0})
    page = _page(application(deployment, "t", sizes).test_client(), "/search?search=Cart")
    assert "at most 8 MB for each click, 1,024 read units" in page
    assert "Read pages (all of it: 9,766 read units)" in page
    assert ", and the sizes of tables." in page
    assert scans == []
    assert "took 0 requests" in page


def test_who_may_not_ask_for_the_sizes_of_tables_searches_without(opened: Deployment) -> None:
    def denied() -> dict[str, int]:
        raise Refused("DescribeTable", "not authorized")

    client = application(opened, "t", Services(sizes=denied)).test_client()
    assert "Read pages</button>" in _page(client, "/search?search=Cart")


@pytest.mark.parametrize("after", ["x", "e30x", "WzFd", "eyJwIjogMX0=", "eyJwIjogeyJTIjogMX19"])
def test_a_place_that_no_search_came_to_is_told_by_name(browser: FlaskClient, after: str) -> None:
    page = _page(browser, f"/search?search=a&layout=pages&after={after}", 400)
    assert "after: must be the position that an earlier search reached" in page


def test_a_layout_that_the_deployment_lacks_is_told_by_name(browser: FlaskClient) -> None:
    assert "layout: must be one of" in _page(browser, "/search?layout=nothing", 400)
    assert "check: must be one of" in _page(browser, "/health?check=nothing", 400)


# ---------------------------------------------------------------------------------------------------------- as stored


def test_pages_are_shown_as_they_are_stored_with_what_each_append_cost(
    feed: MemoryStore, browser: FlaskClient
) -> None:
    for size in (10, 3000, 10):
        data = random.Random(size).randbytes(size)
        feed.streams.append("Cart-1", [Event(type="Noted", data=data)])
    page = _page(browser, "/streams/30000/Cart-1")
    assert "As stored" not in page
    (link,) = re.findall(r'href="(\?[^"]*stored=yes)"', page)
    page = _page(browser, f"/streams/30000/Cart-1{link}")
    rows = re.findall(r'stored=yes">(\d)</a>(?:</td><td class="n">([^<]*)){3}', page)
    assert rows == [("0", "1"), ("1", "4"), ("2", "1")]
    feed.streams.append("Cart-2", [Event(type="Noted")], unfolds=[Unfold(type="Total", data=b"{}")])
    assert "≥ 1" in _page(browser, "/streams/30000/Cart-2?stored=yes")


def test_a_layout_that_does_not_tell_of_its_items_offers_none(
    feed: MemoryStore, browser: FlaskClient
) -> None:
    feed.tips.append("Tip-1", [Event(type="Noted")])
    assert "stored=yes" not in _page(browser, "/streams/0/Tip-1")
    assert "stored: is not available for the layout tips" in _page(
        browser, "/streams/0/Tip-1?stored=yes", 400
    )


# --------------------------------------------------------------------------------------- projections and read models


def test_a_projection_is_shown_by_version(
    feed: MemoryStore, opened: Deployment, browser: FlaskClient
) -> None:
    opened.states.save("seats", "v1", [b"{}"], events_processed=12, last_sortable_id="0" * 30)
    page = _page(browser, "/projections?projection=seats")
    assert re.search(r"<td>v1</td><td class=\"n\">12</td>", page)
    assert "No projection of this name has a state" in _page(browser, "/projections?projection=other")


def test_a_read_model_is_shown_with_its_place_in_a_stream(feed: MemoryStore, opened: Deployment) -> None:
    def fold(documents: Documents, event: FeedEvent) -> None:
        documents.put("last", event.index)

    model = feed.read_models.open("totals", 1)

    @reaction(name="totals-1", categories=["Cart"])
    def update(delivery: Delivery) -> None:
        model.apply(delivery, fold)

    feed.streams.append("Cart-1", [Event(type="Noted")] * 2)
    feed.react(update)
    feed.streams.append("Cart-1", [Event(type="Noted")] * 3)
    settings = replace(opened.settings, read_models_table=feed.read_models.table)
    client = application(replace(opened, settings=settings), "t").test_client()
    page = _page(client, "/projections?model=totals&stream=Cart-1")
    assert "totals, generation 1" in page
    assert "Every event of Cart-1 below 2 has been folded into it" in page
    assert "has 5 events of it, 3 more than that" in page
    assert "No event of Cart-2 has been folded" in _page(client, "/projections?model=totals&stream=Cart-2")


def test_a_deployment_without_states_of_projections_says_so(opened: Deployment) -> None:
    tables = {kind: name for kind, name in opened.settings.tables.items() if kind != "projection-states"}
    client = application(replace(opened, settings=replace(opened.settings, tables=tables)), "t").test_client()
    assert "no table of projection states" in _page(client, "/projections?projection=seats")


def test_a_deployment_without_read_models_says_so(browser: FlaskClient) -> None:
    assert "no table of read models" in _page(browser, "/projections?model=totals")


# ------------------------------------------------------------------------------------------------------------- health


def test_an_index_that_has_all_is_well_and_one_that_is_late_is_told(
    feed: MemoryStore, browser: FlaskClient
) -> None:
    feed.streams.append("Cart-1", [Event(type="Noted")])
    feed.index()
    page = _page(browser, "/health?check=pages")
    assert "1 head (the whole table) was checked. The index has all of their events" in page
    feed.streams.append("Cart-1", [Event(type="Noted")] * 2)
    page = _page(browser, "/health?check=pages")
    assert "The index lacks events of 1" in page
    assert "Cart-1</a> from 1 to 2" in page


def test_what_was_set_aside_waits_on_the_page_with_its_cause(
    feed: MemoryStore, opened: Deployment, browser: FlaskClient
) -> None:
    feed.streams.append("Cart-1", [Event(type="Noted")])
    (image,) = feed.tables.changes("streams")
    broken = {**image, "n": number(99)}
    opened.indexer.index([Record(table="streams", sequence_number="1", image=broken)])
    page = _page(browser, "/health")
    assert "Records of pages that were set aside" in page
    assert "CorruptData" in page


def test_partitions_that_are_not_on_record_are_told(opened: Deployment) -> None:
    settings = opened.settings.having(pages_partitions=3)
    page = _page(application(replace(opened, settings=settings), "t").test_client(), "/health")
    assert "1 on record, 3 deployed" in page


def test_the_feed_shows_where_events_went(feed: MemoryStore, browser: FlaskClient) -> None:
    feed.streams.append("Cart-1", [Event(type="Noted"), Event(type="Noted")])
    feed.streams.delete("Cart-1")
    feed.index()
    shown = browser.get("/feed").text
    assert "$deleted" in shown
    assert "events 0 to 1 are gone" in shown
