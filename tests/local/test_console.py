"""The console is served on this machine alone, at a free port; its pages come soon from a store that is full."""

from __future__ import annotations

import html
import re
import sys
import threading
import time
from itertools import islice
from pathlib import Path
from urllib.request import urlopen

import pytest
from flask import Flask
from werkzeug.serving import BaseWSGIServer

from epochal import Event
from epochal.contrib.console.server import application, server
from epochal.contrib.local.endpoint import Endpoint
from epochal.deployment import Deployment
from epochal.dynamo.interpreter import interpreter
from epochal.hosting.services import reactions_of
from epochal.layout.registry import declared
from epochal.layout.tables import store_tables
from epochal.store.driver import SIDE_BY_SIDE, Driver, Meter
from epochal.testing.feeds import MemoryStore
from epochal.testing.stores import MemoryBucket, memory_settings
from tests.support.filling import fill
from tests.support.tables import Tables
from tests.support.terminal import Terminal

EVENTS = 100_000
SECONDS = 0.3


def test_a_browser_on_this_machine_gets_the_pages_and_their_style() -> None:
    feed = MemoryStore()
    deployment = Deployment(settings=memory_settings(), driver=feed.feed.driver, bucket=MemoryBucket())
    serving = server(deployment, "epochal-test")
    assert serving.server_address[0] == "127.0.0.1"
    thread = threading.Thread(target=serving.serve_forever)
    thread.start()
    try:
        for path, told in (
            ("/", b"epochal-test"),
            ("/static/console.css", b"--ink"),
            ("/static/live.js", b"data-live"),
        ):
            with urlopen(f"http://127.0.0.1:{serving.server_port}{path}", timeout=120) as answer:
                assert told in answer.read()
    finally:
        serving.shutdown()
        thread.join()
        serving.server_close()


def test_the_command_prints_an_address_that_opens_the_console_and_replays_reactions_that_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[Flask] = []
    monkeypatch.setattr(BaseWSGIServer, "serve_forever", lambda self: served.append(self.app))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    (tmp_path / "boards.py").write_text(
        "from epochal import reaction\n@reaction(name='board', attempts=1)\ndef board(_):\n    raise ValueError\n"
    )
    terminal = Terminal()
    terminal.streams.append("Cart-1", [Event(type="Noted")])
    terminal.index()
    terminal.run("react", "boards:board", "--until-done")
    result = terminal.run("console", "--reaction", "boards:board")
    assert result.exit_code == 0, result.output
    found = re.search(r"http://(\w+):([\w-]{20,})@(127\.0\.0\.1:\d+)/ ", result.output)
    assert found
    client, base, key = served[0].test_client(), f"http://{found[3]}", (found[1], found[2])
    assert client.get("/", base_url=base).status_code == 401
    page = client.get("/reactions?group=board", base_url=base, auth=key).text
    (link,) = re.findall(r'href="(/parked\?act=replay[^"]*)"', page)
    assert "This machine handles event 0" in client.get(html.unescape(link), base_url=base, auth=key).text


def test_reactions_that_are_deployed_are_found_by_their_queues(embedded: Endpoint) -> None:
    sqs = embedded.client("sqs")
    for name in ("board", "board-failed", "delays"):
        sqs.create_queue(QueueName=f"epochal-queues-reaction-{name}.fifo", Attributes={"FifoQueue": "true"})
    assert reactions_of(sqs, "epochal-queues") == ["board", "delays"]
    assert reactions_of(sqs, "epochal-others") == []


@pytest.mark.proof
def test_pages_of_a_hundred_thousand_events_take_the_console_little_work(embedded_tables: Tables) -> None:
    """Processor's time of this process: what the embedded AWS takes, and other programs, is not the console's."""
    feed = MemoryStore()
    fill(feed, EVENTS)
    deployment = _copied(feed, embedded_tables)
    client = application(deployment, "epochal-test").test_client()
    told = {}
    for path in (
        "/",
        "/streams/30000/Long-1",
        "/streams/30000/Long-1?from=50000",
        "/tagged?tags=course:c1",
    ):
        taken = []
        for _ in range(5):
            begun = time.process_time()
            answer = client.get(path, base_url="http://127.0.0.1")
            taken.append(time.process_time() - begun)
            assert answer.status_code == 200, answer.text
        found = re.search(r"took (\d+) request", answer.text)
        told[path] = (round(min(taken), 3), found and int(found[1]))
    assert max(seconds for seconds, _ in told.values()) <= SECONDS, told


def _copied(feed: MemoryStore, tables: Tables) -> Deployment:
    """What is in memory, on tables of the embedded AWS."""
    named = {spec.kind: tables.create(spec) for spec in store_tables()}
    for kind, name in named.items():
        items = iter(feed.tables.items(kind))
        while puts := [{"PutRequest": {"Item": item}} for item in islice(items, 25)]:
            assert not tables.client.batch_write_item(RequestItems={name: puts})["UnprocessedItems"]
    settings = memory_settings(
        **{each.name: named[each.table] for each in declared().values() if each.table in named}
    )
    driver = Driver(execute=interpreter(tables.client), meter=Meter(), at_once=SIDE_BY_SIDE)
    return Deployment(settings=settings, driver=driver, bucket=MemoryBucket())
