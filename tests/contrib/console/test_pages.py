"""The console's pages show what there is, read no more than they say, and let nobody's bodies run in them."""

from __future__ import annotations

import html
import re
from base64 import urlsafe_b64encode
from html.parser import HTMLParser
from typing import Any

import pytest
from flask.testing import FlaskClient

from epochal import Event, Query, QueryItem, Unfold, reaction
from epochal.contrib.console.page import body
from epochal.feed.conversations import DEEPEST
from epochal.reactions.definition import Delivery
from epochal.testing.feeds import MemoryStore
from tests.support.failed_runs import DUE, LAST, block

DEEP = urlsafe_b64encode(b"[" * 20_000).decode()
EVIL = "<script>alert(1)</script>"


def _page(browser: FlaskClient, path: str, status: int = 200) -> str:
    answer = browser.get(path, base_url="http://127.0.0.1:1")
    assert answer.status_code == status, answer.text
    return answer.text


def _cost(page: str) -> tuple[int, float]:
    found = re.search(r"took (\d+) requests? and ([\d.]+) read units?", page)
    assert found
    return int(found[1]), float(found[2])


def _links(page: str) -> list[str]:
    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            if tag == "a":
                found.extend(value for name, value in attrs if name == "href" and value and value[0] == "/")

    found: list[str] = []
    Links().feed(page)
    return found


@pytest.mark.parametrize("path", ["/", "/streams", "/tagged", "/feed", "/trace", "/reactions", "/timers"])
def test_every_page_is_whole_where_there_is_nothing_yet(browser: FlaskClient, path: str) -> None:
    assert "epochal-test" in _page(browser, path)


def _filled(feed: MemoryStore) -> None:
    for number in range(60):
        event = Event(type="Noted", data=b'{"number":%d}' % number, correlation_id="c-1")
        feed.streams.append("Cart-1", [event], unfolds=[Unfold(type="Total", data=b'{"sum":7}')])
    feed.tips.append("Tip-1", [Event(type="Opened")])
    feed.tagged.append([Event(type="Enrolled", data=b"{}", tags=["course:c1", "student:s1"])])
    feed.index()


@pytest.mark.slow
def test_from_the_overview_every_link_leads_to_a_page_and_so_do_the_links_of_those(
    feed: MemoryStore, browser: FlaskClient
) -> None:
    _filled(feed)
    waiting, seen = ["/"], set[str]()
    while waiting and len(seen) < 60:
        path = waiting.pop(0)
        if path not in seen and not path.startswith("/static"):
            seen.add(path)
            waiting += _links(_page(browser, path))
    assert any(path.startswith("/streams/") and "Cart-1" in path for path in seen)
    assert any("Tip-1" in path for path in seen)
    assert any("course:c1" in path for path in seen)


def test_a_history_comes_in_windows_and_reads_no_more_than_one(
    feed: MemoryStore, browser: FlaskClient
) -> None:
    _filled(feed)
    (place,) = {path.partition("?")[0] for path in _links(_page(browser, "/streams")) if "Cart-1" in path}
    last = _page(browser, place)
    assert "10 to 59" in last
    assert "&#34;number&#34;: 59" in last
    assert 'href="?from=0"' in last
    assert "later →" not in last
    assert "unfold Total, of version 60" in last
    first = _page(browser, f"{place}?from=0")
    assert "0 to 49" in first
    assert 'href="?from=50"' in first
    assert _cost(first)[1] < 20


def test_a_search_finds_streams_by_how_they_begin_and_offers_those_of_exactly_that_name(
    feed: MemoryStore, browser: FlaskClient
) -> None:
    _filled(feed)
    page = _page(browser, "/streams?search=Ca")
    assert "Cart-1" in page
    assert "Tip-1" not in page
    old = _links(_page(browser, "/streams?search=Cart-1"))
    assert any(path.startswith("/streams/3") and path.endswith("/Cart-1") for path in old)


def test_a_query_shows_what_matches_and_the_position_that_a_decision_is_held_to(
    feed: MemoryStore, browser: FlaskClient
) -> None:
    _filled(feed)
    page = _page(browser, "/tagged?tags=course:c1,+student:s1")
    assert "Enrolled" in page
    assert "1 event, newest first" in page
    query = Query(items=(QueryItem(tags=frozenset({"course:c1", "student:s1"})),))
    assert str(feed.tagged.read(query).position) in page.replace("&#39;", "'").replace("&#34;", '"')
    assert "Nothing matches" in _page(browser, "/tagged?tags=course:c2")


def test_tagged_events_are_shown_from_whichever_tables_they_are_in(
    feed: MemoryStore, browser: FlaskClient
) -> None:
    feed.tagged.append([Event(type="Enrolled", data=b"{}", tags=["course:c1"])])
    feed.dcb.append([Event(type="Expelled", data=b"{}", tags=["course:c1"])])
    feed.index()
    assert "Expelled" not in _page(browser, "/tagged?tags=course:c1")
    sekiban = _page(browser, "/tagged?tags=course:c1&store=dcb")
    assert "Expelled" in sekiban
    assert "Enrolled" not in sekiban
    (place,) = {path for path in _links(_page(browser, "/")) if path.startswith("/streams/30000/$tag-")}
    history = _page(browser, place)
    assert "Enrolled" in history
    assert any(path.startswith("/tagged?tags=course") for path in _links(history))
    assert "store: must be one of dcb, pages" in _page(browser, "/tagged?tags=a&store=x", 400)


def test_the_feed_is_shown_from_its_end_and_from_any_checkpoint(
    feed: MemoryStore, browser: FlaskClient
) -> None:
    _filled(feed)
    partition = next(each.partition for each in feed.feed.partitions() if each.partition >= 30_000)
    latest = _page(browser, f"/feed?partition={partition}")
    assert latest.index(">59<") < latest.index(">58<")
    begun = _page(browser, f"/feed?partition={partition}&from=0@0&category=Cart")
    assert begun.index(">0<") < begun.index(">1<")
    assert "Next page" in begun
    assert "Nothing here" in _page(browser, f"/feed?partition={partition}&category=Nobody")


def test_a_conversation_is_shown_as_a_tree_of_causes(feed: MemoryStore, browser: FlaskClient) -> None:
    feed.streams.append("Order-1", [Event(type="Placed", correlation_id="c-9")])

    @reaction(name="shipping", categories=["Order"])
    def ship(delivery: Delivery) -> None:
        for _ in delivery.each():
            feed.streams.append("Parcel-1", [Event(type="Packed")])

    feed.react(ship)
    feed.index()
    for wanted in ("c-9", "Order-1@0"):
        page = _page(browser, f"/trace?id={wanted}")
        assert re.search(
            r"Order-1@0</a> <b>Placed</b>.*<ul class=\"tree\"><li><a [^>]*>Parcel-1@0", page, re.DOTALL
        )
    assert "No event of this conversation" in _page(browser, "/trace?id=c-0")


def test_a_group_is_shown_with_its_lag_and_what_it_has_parked(
    feed: MemoryStore, browser: FlaskClient
) -> None:
    feed.streams.append("Cart-1", [Event(type="Bad")])

    @reaction(name="failing", categories=["Cart"], attempts=1)
    def fail(_: Delivery) -> None:
        raise ValueError(EVIL)

    feed.react(fail)
    for path in ("/reactions?group=failing", "/reactions?find=yes"):
        page = _page(browser, path)
        assert "failing" in page
        assert "ValueError: &lt;script&gt;" in page
        assert "test_pages.py&#34;, line" in page
        assert "parked discard failing STREAM" in page
        assert "act=discard&amp;group=failing" in page
    assert "No group of this name has run here" in _page(browser, "/reactions?group=other")


def test_a_group_that_is_blocked_is_shown_until_when_and_why(feed: MemoryStore, browser: FlaskClient) -> None:
    feed.streams.append("Cart-1", [Event(type="Good")])

    @reaction(name="slow", categories=["Cart"])
    def pass_(_: Delivery) -> None:
        pass

    feed.react(pass_)
    feed.streams.append("Cart-1", [Event(type="Bad")])
    feed.index()
    block(feed.driver, feed.settings.index_table, EVIL, "slow", feed.feed.partitions()[-1].partition)
    page = html.unescape(_page(browser, "/reactions?group=slow"))
    assert f"blocked by {EVIL} at 0 since {LAST}" in page
    assert f"the next run is expected at {DUE}" in page
    assert EVIL not in _page(browser, "/reactions?group=slow")


def test_what_events_hold_is_shown_and_never_run(feed: MemoryStore, browser: FlaskClient) -> None:
    feed.streams.append("Cart-1", [Event(type=EVIL, data=f'{{"x":"{EVIL}"}}'.encode(), meta=EVIL.encode())])
    feed.tagged.append([Event(type=EVIL, data=EVIL.encode(), tags=[f"a:{EVIL}"])])
    feed.index()
    for path in {"/", "/feed", *_links(_page(browser, "/")), *_links(_page(browser, "/streams"))}:
        page = _page(browser, path)
        assert EVIL not in page
    answer = browser.get("/", base_url="http://localhost")
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'self'")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/feed?partition=x", "partition: must be a whole number"),
        ("/feed?partition=77", "partition: must be one of"),
        ("/feed?from=x", "from: must be a checkpoint"),
        ("/streams/77/Cart-1", "partition: must be a partition of this deployment"),
        ("/streams/30000/Cart-1?from=-1", "from: must be a whole number"),
        ("/trace?id=x&items=99999999", "items: must be a whole number of at most 10,000"),
    ],
)
def test_an_address_that_makes_no_sense_is_told_by_name(
    feed: MemoryStore, browser: FlaskClient, path: str, told: str
) -> None:
    _filled(feed)
    assert told in _page(browser, path, 400)


def test_an_address_that_is_no_page_is_unknown(browser: FlaskClient) -> None:
    assert browser.get("/nothing", base_url="http://127.0.0.1").status_code == 404


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (
            b'{"price":1.10,"legs":[{"a":1}]}',
            '{\n  "price": 1.10,\n  "legs": [\n    {\n      "a": 1\n    }\n  ]\n}',
        ),
        (b"\xff", "\\xff"),
        ("plain", "plain"),
        (b"x" * 5000, "x" * 4000 + "… (5,000 characters)"),
    ],
)
def test_a_body_is_shown_as_people_read_it(data: Any, shown: str) -> None:
    assert body(data) == shown


@pytest.mark.parametrize("depth", [49, 60, 450, 900, 5_000])
def test_a_body_is_shown_however_deep_it_is(depth: int) -> None:
    shown = body(b"[" * depth + b"]" * depth)
    assert shown.startswith("[\n" if depth < 500 else "[")
    assert "".join(shown.split()).startswith("[" * min(depth, 50))


def test_events_that_cause_one_another_are_shown_below_the_earliest(
    feed: MemoryStore, browser: FlaskClient
) -> None:
    def of(stream: str, *causes: str | None) -> None:
        feed.streams.append(
            stream, [Event(type="Noted", causation_id=each, correlation_id="c") for each in causes]
        )

    of("A-1", "A-1@1", "A-1@0")
    of("B-1", None, "B-1@0")
    of("C-1", "C-1@0")
    feed.index()
    page = _page(browser, "/trace?id=c&items=500")
    shown = re.findall(r"[ABC]-1@\d", page)
    assert sorted(shown) == ["A-1@0", "A-1@1", "B-1@0", "B-1@1", "C-1@0"]
    assert len(re.findall('<ul class="tree">', page)) == 3


def test_a_long_chain_of_causes_nests_no_deeper_than_a_page_can(
    feed: MemoryStore, browser: FlaskClient
) -> None:
    links = [
        Event(type="Noted", causation_id=f"A-1@{k - 1}" if k else None, correlation_id="c")
        for k in range(400)
    ]
    feed.streams.append("A-1", links)
    feed.index()
    page = _page(browser, "/trace?id=c&items=500")
    assert re.findall(r"A-1@(\d+)", page) == [str(k) for k in range(400)]
    assert len(re.findall('<ul class="tree">', page)) == DEEPEST


@pytest.mark.parametrize(
    "path", [f"/streams/30000/A-1?from={'9' * 5_000}", f"/search?layout=pages&after={DEEP}"]
)
def test_no_address_is_beyond_what_a_page_can_say(browser: FlaskClient, path: str) -> None:
    assert "must be" in _page(browser, path, 400)


@pytest.mark.slow
def test_the_feed_goes_back_page_by_page_to_its_first_event(feed: MemoryStore, browser: FlaskClient) -> None:
    for number in range(120):
        feed.streams.append("Shelf-1", [Event(type="Even" if number % 2 == 0 else "Odd")])
        feed.index()
    for asked, expected in (("", [*range(120)]), ("&type=Even", [*range(0, 120, 2)])):
        found, path = list[int](), f"/feed?category=Shelf{asked}"
        while True:
            page = _page(browser, path)
            found += map(int, re.findall(r'<td class="n">(\d+)</td>', page))
            older = re.search(r'href="([^"]*before=[^"]*)"', page)
            if older is None:
                break
            path = "/feed" + html.unescape(older[1])
        assert found == expected[::-1]
