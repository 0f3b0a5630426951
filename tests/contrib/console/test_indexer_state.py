"""The first page and the reactions say whether the indexer works, and never that all is well while it fails."""

from __future__ import annotations

import html
import time
from collections.abc import Mapping

import pytest
from flask.testing import FlaskClient

from epochal import Event, reaction
from epochal.contrib.console.page import KEPT, Services
from epochal.contrib.console.server import application
from epochal.deployment import Deployment
from epochal.hosting.indexer_state import IndexerState
from epochal.index.indexer_failures import record_failures
from epochal.index.wire_batch import Ids
from epochal.reactions.definition import Delivery
from epochal.testing.feeds import MemoryStore

PAGES = ("/", "/reactions")
WORKS = IndexerState(works="the index has all events of 1 stream")
NOON = 1_357_041_600 * 10**9


@reaction(name="board", categories=["Cart"])
def board(_: Delivery) -> None: ...


class Console:
    """A console, whose look at the indexer finds `states`; `now` is its time."""

    def __init__(self, deployment: Deployment, states: Mapping[str, IndexerState] | None) -> None:
        self.states, self.looks, self.now = states, 0, NOON

        def look() -> Mapping[str, IndexerState]:
            self.looks += 1
            return self.states or {}

        services = Services(
            deployed=lambda: ["board"], indexer=None if states is None else look, now=lambda: self.now
        )
        self.client: FlaskClient = application(deployment, "epochal-test", services).test_client()

    def page(self, path: str) -> str:
        answer = self.client.get(path, base_url="http://127.0.0.1")
        assert answer.status_code == 200, answer.text
        return html.unescape(answer.text)


@pytest.fixture
def handled(feed: MemoryStore, opened: Deployment) -> Deployment:
    feed.streams.append("Cart-1", [Event(type="Noted")])
    feed.react(board)
    return opened


@pytest.mark.parametrize("path", PAGES)
def test_that_the_indexer_works_is_said_where_it_is_known(handled: Deployment, path: str) -> None:
    page = Console(handled, {"pages": WORKS, "tips": WORKS}).page(path)
    # One sentence for all layouts of which the same is to say.
    assert "tips, pages: the index has all events of 1 stream" in page.replace("pages, tips", "tips, pages")
    assert 'class="fault">pages' not in page


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(
    ("state", "text"),
    [
        (IndexerState(failure="epochal-dev-indexer fails on the changes of streams: FAILED"), "fails on the"),
        (IndexerState(missing="the index lacks 2 events of 1 stream"), "the index lacks 2 events"),
        (IndexerState(unknown="Lambda cannot be asked"), "it is unknown whether the indexer works: Lambda"),
    ],
)
def test_what_is_wrong_with_the_indexer_or_not_known_stands_out(
    handled: Deployment, path: str, state: IndexerState, text: str
) -> None:
    page = Console(handled, {"pages": state}).page(path)
    assert text in page
    assert 'class="fault">pages: ' in page


@pytest.mark.parametrize("path", PAGES)
def test_a_console_that_cannot_look_says_so(handled: Deployment, path: str) -> None:
    assert "it is unknown whether the indexer works: this console cannot check it" in Console(
        handled, None
    ).page(path)


@pytest.mark.parametrize("path", PAGES)
def test_a_failure_on_record_is_shown_at_once(handled: Deployment, path: str) -> None:
    console = Console(handled, {"pages": WORKS})
    assert "the indexer fails" not in console.page(path)
    ids = Ids.drawn(time.time_ns(), bytes)
    table = handled.settings.index_table
    handled.driver.run(record_failures(table, {"pages": "MissingTable: streams"}, ids))
    page = console.page(path)
    assert 'class="fault">pages: the indexer has failed since' in page
    assert "the index has all events" not in page


def test_the_indexer_is_looked_at_once_a_minute_and_the_page_says_when(handled: Deployment) -> None:
    console = Console(handled, {"pages": WORKS})
    for _ in range(3):
        for path in PAGES:
            assert "last checked at 12:00" in console.page(path)
    assert console.looks == 1
    console.now += KEPT
    assert "last checked at 12:01" in console.page("/")
    assert console.looks == 2
