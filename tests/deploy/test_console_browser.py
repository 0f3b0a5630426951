"""The console in a real browser, on a deployment with real flights in it: what is deployed is what the pages show."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from epochal.contrib.console.server import Guard, server
from epochal.contrib.local.deploy import LocalDeployment
from examples.flights.dataset import days, zones
from examples.flights.happenings import by_day, in_order
from tests.browser.conftest import Look, look

__all__ = ["look"]

pytestmark = pytest.mark.proof

KEY = "the-key"
PARTITION = 30_000
STREAMS = 20
SECONDS = 120.0


@pytest.fixture(scope="module")
def flown(deployment: LocalDeployment) -> tuple[LocalDeployment, list[str]]:
    """The deployment once the first aircraft of 2013 are in its feed, and their streams."""
    store = deployment.open()
    appended = set[str]()
    for batch in islice(by_day(in_order(days(1), zones())), STREAMS):
        # Other tests of the deployment have these aircraft, too.
        stream = batch.stream.replace("Aircraft-", "Watched-")
        store.streams.append(stream, batch.events)
        appended.add(stream)
    waiting, ends = set(appended), time.monotonic() + SECONDS
    while waiting and time.monotonic() < ends:
        pages = store.feed.read(PARTITION)
        waiting -= {item.stream for page in pages for item in page.items}
    assert not waiting
    return deployment, sorted(appended)


@pytest.fixture(scope="module")
def seen(flown: tuple[LocalDeployment, list[str]], look: Look) -> Iterator[dict[str, Any]]:
    deployment, streams = flown
    serving = server(deployment.open(), "epochal-dev-store", guard=Guard(key=KEY))
    thread = threading.Thread(target=serving.serve_forever)
    thread.start()
    pages = {
        "overview": "/",
        "streams": "/streams",
        "stream": f"/streams/{PARTITION}/{streams[0]}",
        "feed": f"/feed?partition={PARTITION}",
    }
    try:
        base = f"http://127.0.0.1:{serving.server_port}"
        yield look({"base": base, "key": KEY, "enter": "/", "pages": pages, "flows": {}, "pictures": None})
    finally:
        serving.shutdown()
        thread.join()
        serving.server_close()


def test_every_page_opens_without_a_complaint_and_axe_finds_nothing(seen: dict[str, Any]) -> None:
    for name, page in seen["pages"].items():
        assert (name, page["status"], page["complaints"]) == (name, 200, [])
        assert (name, page["axe"]) == (name, {"light": [], "dark": []})


def test_a_streams_page_shows_the_flights_of_its_aircraft(
    seen: dict[str, Any], flown: tuple[LocalDeployment, list[str]]
) -> None:
    _, streams = flown
    assert streams[0] in seen["pages"]["stream"]["text"]
    assert "FlightScheduled" in seen["pages"]["stream"]["text"]
    assert "Flight" in seen["pages"]["feed"]["text"]
