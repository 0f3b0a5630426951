"""Requests that wait for their turn in a server with threads: their time is bounded, and they give their place up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from epochal.store import queueing
from epochal.store.queueing import QueuePlace
from epochal.store.tag_turns import keys_of
from tests.support.api import Answer, Api, Clock

pytestmark = pytest.mark.usefixtures("no_queue_stays")

SOON = 20.0
SECONDS = 0.5
"""Time of a request that is given up."""

ENROLLED = {"events": [{"type": "Enrolled", "data": {}, "tags": ["course:1"]}]}


class RealClock(Clock):
    """Real time: it passes while a request waits for its turn, too."""

    def __call__(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@pytest.fixture
def api() -> Api:
    return Api(clock=RealClock())


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def waiting() -> int:
    return sum(len(queue.waiting) for queue in [*queueing._QUEUES.values()])  # noqa: SLF001  it shows nowhere else


def begin(threads: ThreadPoolExecutor, api: Api, *request: Any, seconds: float) -> Future[Answer]:
    """Begin a request; return when it waits for its turn."""
    before, call = waiting(), threads.submit(api.call, "POST", *request, seconds=seconds)
    while waiting() == before and not call.done():
        time.sleep(0.001)
    return call


REQUESTS = {
    "to a stream": ("/streams/Cart-1/events", {"events": [{"type": "Opened", "data": {}}]}),
    "under a tag": ("/events", ENROLLED),
    "under a tag of Sekiban's tables": ("/dcb/events", ENROLLED),
}


def place_in(api: Api, name: str) -> QueuePlace:
    streams, tagged = api.streams, api.tagged
    keys = {
        "to a stream": [(streams.table, "Cart-1")],
        "under a tag": keys_of(streams.tagged.site.table, ["course:1"]),
        "under a tag of Sekiban's tables": keys_of(tagged.site.tags, ["course:1"]),
    }
    return QueuePlace(streams.driver, *keys[name])


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_whose_time_is_over_while_it_waits_is_refused_and_gives_its_place_up(
    api: Api, threads: ThreadPoolExecutor, name: str
) -> None:
    with place_in(api, name):
        began = time.monotonic()
        hurried = begin(threads, api, *REQUESTS[name], seconds=SECONDS)
        patient = begin(threads, api, *REQUESTS[name], seconds=60.0)
        answer = hurried.result(SOON)

        assert time.monotonic() - began < SOON
        assert (answer.status, answer.problem) == (503, "unavailable")
        assert "may have been applied" not in answer.json["detail"]
        assert waiting() == 1, "the other request still waits"
        assert not patient.done()

    assert patient.result(SOON).status == 201
