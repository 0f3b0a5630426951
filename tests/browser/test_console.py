"""The console in a real browser: each page opens without a complaint, whoever looks at it and however.

One browser visits every page once, and the tests judge what it met. With `PICTURES` set it takes those of the guide.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from epochal.contrib.console.page import Services
from epochal.contrib.console.server import Guard, server
from tests.browser.conftest import Look
from tests.browser.world import Airport

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide"

KEY = "the-key"

PARKED = "/parked?act=discard&group=departures-board&partition=30000&stream=Aircraft-N206AA&index=0"

PAGES = {
    "overview": "/",
    "activity": "/activity",
    "streams": "/streams?search=Aircraft-N20",
    "stream": "/streams/30000/Aircraft-N204UA",
    "search": "/search?search=Aircraft-N204&layout=pages",
    "stored": "/streams/30000/Aircraft-N204UA?stored=yes",
    "tagged": "/tagged?tags=flight:UA1",
    "feed": "/feed?partition=30000&category=Aircraft",
    "trace": "/trace?id=Aircraft-N204UA@0",
    "reactions": "/reactions?group=departures-board",
    "timers": "/timers",
    "projections": "/projections?projection=seats",
    "read models": "/projections?model=routes&by=by_airport&values=IAH",
    "health": "/health?check=pages",
    "parked": PARKED,
    "error": "/feed?partition=77",
}

PICTURES = {
    name: str(GUIDE / f"console-{file}.png")
    for name, file in (
        ("overview", "overview"),
        ("activity", "activity"),
        ("stored", "stored"),
        ("reactions", "reactions"),
        ("feed, dark", "feed"),
    )
}
"""Of the guide: taken where the environment has `PICTURES`."""

FLOWS: dict[str, dict[str, Any]] = {
    "keys": {
        "path": "/streams",
        "script": True,
        "steps": [
            {"press": "/"},
            {"type": "Aircraft-N204"},
            {"press": "Enter"},
            {"wait": "input[value='Aircraft-N204']"},
        ],
    },
    **{
        f"given up, {how} JavaScript": {
            "path": "/reactions?group=departures-board",
            "script": script,
            "steps": [
                {"click": f"a[aria-label='give up {stream}']"},
                {"click": "button.do"},
            ],
        }
        for how, script, stream in (("with", True, "Aircraft-N203AA"), ("without", False, "Aircraft-N204AA"))
    },
    "live": {"path": "/activity", "script": True, "steps": [{"press": "l"}]},
    "live, found": {"path": "/reactions?find=yes", "script": True, "steps": [{"press": "l"}]},
    "live, searched": {"path": "/search?layout=pages", "script": True, "steps": [{"press": "l"}]},
    "replayed": {
        "path": "/reactions?group=departures-board",
        "script": False,
        "steps": [{"click": "a[aria-label='replay Aircraft-N205AA']"}, {"click": "button.do"}],
    },
}


class AnotherProgram:
    """Serves a page on another port of 127.0.0.1, and keeps the headers that a browser sends it."""

    def __init__(self) -> None:
        self.headers: list[dict[str, str]] = []
        kept = self.headers

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                kept.append({name.lower(): value for name, value in self.headers.items()})
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(b"<!doctype html><title>another</title><main>another</main>")

            def log_message(self, *_: object) -> None:
                """Into no log."""

        self._serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._serving.serve_forever)
        self._thread.start()
        self.address = f"http://127.0.0.1:{self._serving.server_port}"

    def close(self) -> None:
        self._serving.shutdown()
        self._thread.join()
        self._serving.server_close()


@pytest.fixture(scope="module")
def airport() -> Airport:
    airport = Airport()
    airport.fly()
    return airport


@pytest.fixture(scope="module")
def seen(airport: Airport, look: Look) -> Iterator[dict[str, Any]]:
    airport.gates.add("Aircraft-N205AA")
    services = Services(reactions={airport.board.name: airport.board}, now=airport.clock)
    serving = server(airport.deployment, "epochal-demo", services=services, guard=Guard(key=KEY))
    thread = threading.Thread(target=serving.serve_forever)
    thread.start()
    pictures = PICTURES if os.environ.get("PICTURES") else {}
    another = AnotherProgram()
    try:
        base = f"http://127.0.0.1:{serving.server_port}"
        flows = {**FLOWS, "another port": {"at": another.address, "path": "/", "script": True, "steps": []}}
        asked = {"base": base, "key": KEY, "enter": "/", "pages": PAGES, "flows": flows, "pictures": pictures}
        yield {**look(asked), "another": another.headers}
    finally:
        another.close()
        serving.shutdown()
        thread.join()
        serving.server_close()


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest, seen: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = seen["pages"][request.param]
    return found


def test_a_page_opens_without_a_complaint_and_asks_nobody_else(
    page: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    complaints = page["complaints"]
    if page["status"] != 200:  # which is what a browser complains of
        complaints = [each for each in complaints if "400 (BAD REQUEST)" not in each]
    assert complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(page: dict[str, Any], scheme: str) -> None:
    assert page["axe"][scheme] == []


def test_tab_reaches_whatever_can_be_pressed_and_shows_where_it_is(page: dict[str, Any]) -> None:
    assert page["reach"] == {"missed": [], "unseen": ""}


def test_a_page_says_the_same_without_javascript(page: dict[str, Any]) -> None:
    assert page["unscripted"] == page["text"]
    assert len(page["text"]) > 40


def test_a_page_is_no_wider_than_a_telephone(page: dict[str, Any]) -> None:
    assert page["overflow"] <= 0


def test_the_address_with_the_key_opens_the_console_and_no_other_port_gets_the_key(
    seen: dict[str, Any],
) -> None:
    assert seen["entered"] == "/"
    assert seen["flows"]["another port"]["text"] == "another"
    assert seen["another"]
    for headers in seen["another"]:
        assert not {"cookie", "authorization"} & headers.keys()
        assert KEY not in str(headers)


def test_a_slash_leads_to_the_search_and_enter_starts_it(seen: dict[str, Any]) -> None:
    flow = seen["flows"]["keys"]
    assert flow["url"] == "/streams?search=Aircraft-N204"
    assert "Aircraft-N204UA" in flow["text"]


@pytest.mark.parametrize(
    ("flow", "told"),
    [
        ("given up, with JavaScript", "Aircraft-N203AA continues"),
        ("given up, without JavaScript", "Aircraft-N204AA continues"),
        ("replayed", "Aircraft-N205AA continues"),
    ],
)
def test_what_is_parked_goes_on_after_two_presses(
    airport: Airport, seen: dict[str, Any], flow: str, told: str
) -> None:
    found = seen["flows"][flow]
    assert (found["url"], found["complaints"]) == ("/parked", [])
    assert told in found["text"]
    parked = {each.stream for each in airport.feed.parking(airport.board).streams(30_000)}
    assert parked == {"Aircraft-N206AA"}


def test_a_page_is_read_again_by_itself_where_that_costs_little_and_nowhere_else(
    seen: dict[str, Any],
) -> None:
    live = {name: flow["live"] for name, flow in seen["flows"].items() if name.startswith("live")}
    assert live == {"live": True, "live, found": False, "live, searched": False}
