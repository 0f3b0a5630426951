"""The pages say what a user came for as soon as they open: what came last, what is late, what waits, what there is."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import Any

import pytest
from flask.testing import FlaskClient

from epochal import Event, reaction
from epochal.contrib.console.page import KEPT, Services
from epochal.contrib.console.server import application
from epochal.deployment import Deployment
from epochal.errors import Refused
from epochal.feed.events import FeedEvent
from epochal.feed.stream_records import Record
from epochal.hosting.services import reactions_of
from epochal.plan.ops import Op, Reply, Scan
from epochal.plan.values import number
from epochal.reactions.definition import Delivery
from epochal.read_models.documents import Documents
from epochal.testing.feeds import MemoryStore

NOON = 1_357_041_600


class At:
    """Seconds since 1970, as `time.time_ns` tells them."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self) -> int:
        return int(self.seconds * 10**9)


@pytest.fixture
def clock(feed: MemoryStore) -> At:
    clock = At(NOON)
    vars(feed).update(tips=replace(feed.tips, now=clock), streams=replace(feed.streams, now=clock))
    indexer = replace(feed._indexer, now=clock)  # noqa: SLF001  it goes by the machine's clock
    feed._indexer = indexer  # noqa: SLF001
    return clock


def _page(client: FlaskClient, path: str) -> str:
    answer = client.get(path, base_url="http://127.0.0.1")
    assert answer.status_code == 200, answer.text
    return html.unescape(answer.text)


def _client(opened: Deployment, **services: Any) -> FlaskClient:
    return application(opened, "epochal-test", Services(prefix="epochal-test", **services)).test_client()


def _row(page: str, name: str) -> list[str]:
    """The cells of the row that begins with a name."""
    for row in re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL):
        cells = [re.sub(r"<[^>]*>", "", each).strip() for each in re.findall(r"<td.*?</td>", row, re.DOTALL)]
        if cells[:1] == [name]:
            return cells
    raise AssertionError(f"no row begins with {name}")


def test_the_first_page_has_the_latest_events_of_all_partitions_with_their_times(
    feed: MemoryStore, opened: Deployment, clock: At
) -> None:
    for second in range(40):
        clock.seconds = NOON + second
        store = feed.tips if second % 2 else feed.streams
        store.append(f"Cart-{second}", [Event(type="Noted")])
        feed.index()
    page = _page(_client(opened), "/")
    assert re.findall(r"<time>([^<]+)</time></td><td><a[^>]*>(Cart-\d+)</a>", page) == [
        (f"2013-01-01 12:00:{second:02}", f"Cart-{second}") for second in range(39, 24, -1)
    ]
    assert "<td>pages</td>" in page
    assert "<td>tips</td>" in page


def test_the_first_page_has_the_latest_events_of_one_run_of_the_indexer_newest_first(
    feed: MemoryStore, opened: Deployment, clock: At
) -> None:
    for second in range(40):
        clock.seconds = NOON + second
        store = feed.tips if second % 2 else feed.streams
        store.append(f"Cart-{second}", [Event(type="Noted")])
    feed.index()
    page = _page(_client(opened), "/")
    assert re.findall(r"<time>([^<]+)</time></td><td><a[^>]*>(Cart-\d+)</a>", page) == [
        ("2013-01-01 12:00:39", f"Cart-{second}") for second in range(39, 24, -1)
    ]


def test_the_first_page_says_how_late_the_feed_is(feed: MemoryStore, opened: Deployment, clock: At) -> None:
    feed.streams.append("Cart-1", [Event(type="Noted")])
    clock.seconds += 300
    feed.index()
    page = _page(_client(opened), "/")
    assert _row(page, "pages")[:3] == ["pages", "30000", "5 min"]
    assert "The newest events reached the feed 5 min after their append" in page
    feed.streams.append("Cart-1", [Event(type="Noted")])
    feed.index()
    assert _row(_page(_client(opened), "/"), "pages")[:3] == ["pages", "30000", "0 s"]


def test_the_first_page_has_each_group_with_what_it_is_behind_and_has_parked(
    feed: MemoryStore, opened: Deployment, clock: At
) -> None:
    @reaction(name="board", categories=["Cart"], attempts=1)
    def board(_: Delivery) -> None:
        raise ValueError("no gate")

    feed.streams.append("Cart-1", [Event(type="Noted")])
    feed.react(board)
    client = _client(opened, deployed=lambda: ["board", "never-ran"], now=clock)
    page = _page(client, "/")
    assert _row(page, "board") == ["board", "0", "", "1"]
    assert "board has parked 1 stream" in page
    feed.streams.append("Cart-2", [Event(type="Noted")])
    feed.index()
    clock.seconds += 600
    assert _row(_page(client, "/"), "board") == ["board", "1", "10 min", "1"]


def test_the_first_page_says_what_was_set_aside(feed: MemoryStore, opened: Deployment) -> None:
    feed.streams.append("Cart-1", [Event(type="Noted")])
    (image,) = feed.tables.changes("streams")
    feed.index()
    assert "the indexer has set no records aside" in _page(_client(opened), "/")
    opened.indexer.index([Record(table="streams", sequence_number="1", image={**image, "n": number(99)})])
    assert "1 record was set aside by the indexer of pages" in _page(_client(opened), "/")


def test_the_first_page_has_the_sizes_of_tables_and_asks_for_them_once_a_minute(opened: Deployment) -> None:
    clock, asked = At(NOON), list[int]()

    def sizes() -> dict[str, int]:
        asked.append(1)
        return {opened.settings.index_table: 3 * 2**20, "another": 10}

    client = _client(opened, sizes=sizes, now=clock)
    for _ in range(3):
        page = _page(client, "/")
        assert _row(page, "index") == ["index", opened.settings.index_table, "3.0 MB"]
    assert len(asked) == 1
    clock.seconds += KEPT / 10**9
    _page(client, "/")
    assert len(asked) == 2


def _counted(opened: Deployment) -> tuple[Deployment, list[Scan]]:
    scans: list[Scan] = []

    def execute(op: Op) -> Reply:
        if isinstance(op, Scan):
            scans.append(op)
        return opened.driver.execute(op)

    return replace(opened, driver=replace(opened.driver, execute=execute)), scans


def test_reactions_opens_with_those_that_are_deployed_and_scans_nothing(
    feed: MemoryStore, opened: Deployment
) -> None:
    @reaction(name="board", categories=["Cart"])
    def board(_: Delivery) -> None: ...

    feed.streams.append("Cart-1", [Event(type="Noted")])
    feed.react(board)
    deployment, scans = _counted(opened)
    assert _row(_page(_client(deployment, deployed=lambda: ["board"]), "/reactions"), "board")[0] == "board"
    assert "No reactions are known here" in _page(_client(deployment), "/reactions")
    assert scans == []


def test_who_may_not_list_queues_or_tables_sees_the_rest(opened: Deployment) -> None:
    def denied() -> Any:
        raise Refused("ListQueues", "not authorized")

    page = _page(_client(opened, deployed=denied, sizes=denied), "/")
    assert "no queue is named epochal-test-reaction-" in page


def test_reactions_are_known_by_their_queues() -> None:
    class Queues:
        def list_queues(self, **asked: Any) -> dict[str, Any]:
            assert asked == {"QueueNamePrefix": "epochal-dev-reaction-", "MaxResults": 1000}
            names = ("board.fifo", "board-failed.fifo", "once-failed.fifo", "once-failed-failed.fifo")
            return {"QueueUrls": [f"https://sqs/1/epochal-dev-reaction-{name}" for name in names]}

    assert reactions_of(Queues(), "epochal-dev") == ["board", "once-failed"]


# ------------------------------------------------------------------------------------------------------- what there is


def test_projections_opens_with_names_and_a_read_model_with_its_documents(
    feed: MemoryStore, opened: Deployment
) -> None:
    model = feed.read_models.open("totals", 1)

    def fold(documents: Documents, event: FeedEvent) -> None:
        documents.put(event.stream, {"events": event.index + 1})

    @reaction(name="totals-1", categories=["Cart"])
    def update(delivery: Delivery) -> None:
        model.apply(delivery, fold)

    feed.streams.append("Cart-1", [Event(type="Noted")] * 2)
    feed.react(update)
    opened.states.save("seats", "v1", [b"{}"], events_processed=12, last_sortable_id="0" * 30)
    settings = replace(opened.settings, read_models_table=feed.read_models.table)
    client = _client(replace(opened, settings=settings))
    page = _page(client, "/projections")
    assert 'href="?projection=seats"' in page
    assert 'href="?model=totals"' in page
    assert 'href="?model=totals&document=Cart-1"' in _page(client, "/projections?model=totals")
    assert '"events": 2' in _page(client, "/projections?model=totals&document=Cart-1")
    assert "This document does not exist" in _page(client, "/projections?model=totals&document=Cart-2")


def test_a_read_model_with_keys_is_asked_by_prefix_and_by_key_page_by_page(
    feed: MemoryStore, opened: Deployment
) -> None:
    def fold(documents: Documents, event: FeedEvent) -> None:
        documents.put(event.stream, {"of": "ann" if event.stream == "Cart-2" else "<b>", "n": event.index})

    models = feed.read_models
    for generation in (1, 2):
        model = models.open("carts", generation, keys={"by_owner": lambda cart: (cart["of"], cart["n"])})
        react = reaction(name=f"carts-{generation}", categories=["Cart"])
        for name in ("Cart-1", "Cart-2", "Cart-3"):
            feed.streams.append(name, [Event(type="Noted")])
        feed.react(react(lambda delivery, model=model: model.apply(delivery, fold)))
    models.swap("carts", 2)
    client = _client(replace(opened, settings=replace(opened.settings, read_models_table=models.table)))
    assert 'href="?model=carts&generation=1"' in _page(client, "/projections")
    page = _page(client, "/projections?model=carts&prefix=Cart-2")
    assert "document=Cart-2" in page
    assert "document=Cart-1" not in page
    page = _page(client, "/projections?model=carts&by=by_owner&values=ann,1&generation=1")
    assert "<small>not live</small>" in page
    assert "None." in page
    assert "document=Cart-2" in _page(client, "/projections?model=carts&by=by_owner&values=ann,+1")
    page = _page(client, "/projections?model=carts&by=by_owner&values=<b>&items=1&backward=yes")
    assert "document=Cart-3" in page
    (onward,) = re.findall(r'rel="next" href="([^"]*)"', page)
    assert "document=Cart-1" in _page(client, f"/projections{onward}&items=1")
    for asked, told in (
        ("by=other&values=x", "is no key of carts"),
        ("after=!", "after: is no continuation"),
    ):
        answer = client.get(f"/projections?model=carts&{asked}", base_url="http://127.0.0.1")
        assert (answer.status_code, told in answer.text) == (400, True)


@pytest.mark.slow
def test_the_feed_is_filtered_by_type_and_by_text(feed: MemoryStore, opened: Deployment) -> None:
    for index in range(300):
        kind = "Paid" if index % 100 == 0 else "Noted"
        feed.streams.append(f"Cart-{index}", [Event(type=kind, data=b'{"Number": %d}' % index)])
    feed.index()
    client = _client(opened)

    def streams(path: str) -> list[str]:
        return re.findall(r"<tr><td><a[^>]*>(Cart-\d+)</a>", _page(client, path))

    assert streams("/feed?type=Paid") == ["Cart-200", "Cart-100", "Cart-0"]
    assert streams("/feed?partition=30000&text=number%22: 299") == ["Cart-299"]
    assert streams("/feed?partition=30000&type=Paid&text=200") == ["Cart-200"]
    assert streams("/feed?partition=30000&from=0@0&type=Paid")[0] == "Cart-0"
    assert streams("/feed?type=Nothing") == []


def test_the_conversation_of_an_event_that_came_long_ago_is_found_from_it(
    feed: MemoryStore, opened: Deployment
) -> None:
    feed.streams.append("Order-1", [Event(type="Placed", correlation_id="c-9")])
    paid = Event(type="Paid", correlation_id="c-9", causation_id="Order-1@0")
    feed.streams.append("Payment-1", [paid, Event(type="Other")])
    for index in range(150):
        feed.streams.append(f"Cart-{index}", [Event(type="Noted")])
    feed.index()
    client = _client(opened)
    (link,) = re.findall(r'href="(/trace\?id=c-9[^"]*)"', _page(client, "/streams/30000/Payment-1"))
    page = _page(client, link)
    assert re.findall(r">([^<]+@\d+)</a>", page) == ["Order-1@0", "Payment-1@0"]
    assert "No event of this conversation" in _page(client, "/trace?id=c-9")


@pytest.mark.slow
def test_health_compares_heads_however_many_other_items_come_first(
    feed: MemoryStore, opened: Deployment
) -> None:
    """Each append with a key leaves a record beside its stream."""
    for index in range(600):
        feed.streams.append("Cart-1", [Event(type="Noted")], idempotency_key=f"k-{index}")
    feed.index()
    page = _page(_client(opened), "/health?check=pages")
    assert re.search(r"[1-9]\d* heads \(the whole table\) were checked. The index has all", page)
    assert "0 heads (the whole table) were checked. The table has no streams" in _page(
        _client(opened), "/health?check=tips"
    )
