"""The demo on the embedded AWS: deploys, writes, verifies, fails where the feed is wrong, leaves nothing running."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from epochal.codec import json
from epochal.codec.bodies import Encoded, decode, encode
from epochal.contrib.local import remembered_deployment
from epochal.contrib.local.deploy import LocalDeployment
from epochal.contrib.local.processes import Server
from epochal.contrib.local.programs import Places
from epochal.plugins import layouts
from examples.flights import demo
from examples.flights.dataset import days
from examples.flights.display import Display
from examples.flights.in_process import in_process, make_tables
from examples.flights.options import Options
from examples.flights.reacting import Reactions
from examples.flights.reactions.boards import LANDED
from examples.flights.steps import Sending, send, verify
from examples.flights.stores import Store, Written
from examples.flights.through_library import LibraryStore

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.deploy


class Screen(Display):
    """A display whose text can be looked at."""

    def __init__(self) -> None:
        super().__init__(Console(file=io.StringIO(), width=120))

    @property
    def text(self) -> str:
        file: Any = self.console.file
        shown: str = file.getvalue()
        return shown


@pytest.fixture(scope="module")
def own(places: Places, ministack_server: Server) -> Iterator[LocalDeployment]:
    """A deployment with nothing in its feed but what these tests send: the shared one, if they are the first."""
    screen = Screen()
    if remembered_deployment.remembered(ministack_server) is None:
        yield demo.deployed(places, ministack_server, days(1), screen)
        return
    with demo.embedded_aws(places, screen) as server:
        yield demo.deployed(places, server, days(1), screen)


@pytest.fixture(scope="module", params=[demo.over_http, LibraryStore.of], ids=["http", "library"])
def store(own: LocalDeployment, request: pytest.FixtureRequest) -> Store:
    found: Store = request.param(own)
    return found


APPENDS = 120
"""So many of the year's first flights are sent."""


@pytest.fixture(scope="module")
def sending(own: LocalDeployment) -> Sending:
    """The first appends of the year, over HTTP."""
    store = demo.over_http(own)
    batches = islice(demo.grouping(Options())(days(1)), APPENDS)
    return send(store, batches, sent=lambda _: None, arrived=lambda _: None)


def test_every_event_sent_comes_out_of_the_deployed_feed_once_and_in_order(
    store: Store, sending: Sending
) -> None:
    verdict = verify(store, sending.ledger, seen=lambda _: None)
    assert (verdict.seen, verdict.first) == (sending.ledger.events, ())
    assert verdict.tails.keys() == {each.base for each in layouts()}
    screen = Screen()
    assert demo.concluded(sending, verdict, None, screen) == 0
    assert f"The feed holds all {sending.ledger.events:,} events" in screen.text


def test_appends_over_http_report_what_they_cost_and_none_conflicts(sending: Sending) -> None:
    assert sending.tally.appends == APPENDS
    assert 2.0 <= sending.tally.units / sending.tally.appends < 2.5  # one unit is the record of the key's
    assert sending.tally.conflicts == 0


def test_the_store_over_http_tells_where_an_aircraft_stands(own: LocalDeployment, sending: Sending) -> None:
    over_http, library = demo.over_http(own), LibraryStore.of(own)
    stream = next(name for name in sending.ledger.streams if name.startswith("Aircraft-"))
    one, other = over_http.load(stream), library.load(stream)
    assert one is not None
    assert other is not None
    assert one.state == other.state is not None
    assert over_http.load("Aircraft-none") is None


def test_an_entry_taken_out_of_the_index_fails_the_demo(
    own: LocalDeployment, store: Store, sending: Sending
) -> None:
    reactions = Reactions(own)
    while any(reactions.behind().values()):  # else they would miss it, too
        time.sleep(0.2)
    original, lost = _take_a_span_out(own)
    try:
        verdict = verify(store, sending.ledger, seen=lambda _: None)
        assert verdict.differences >= len(lost["c"])
        assert {(each.stream, each.index) for each in verdict.first} >= {(lost["p"], lost["i"])}
        screen = Screen()
        assert demo.concluded(sending, verdict, None, screen) == 1
        assert "The feed differs from what was sent" in screen.text
        assert f"{lost['p']} #{lost['i']}: is missing" in screen.text
    finally:
        own.endpoint.client("dynamodb").put_item(TableName=own.settings.index_table, Item=original)


def test_deployed_reactions_park_the_aircraft_they_fail_on_and_end_with_what_the_flights_say(
    own: LocalDeployment, sending: Sending
) -> None:
    broken, _ = demo.example(days(1))
    batches = list(islice(demo.grouping(Options())(days(1)), APPENDS))
    landing = next(
        each
        for each in demo.grouping(Options())(days(1))
        if each.stream == broken and each.events[-1].type == LANDED
    )
    over_http = demo.over_http(own)
    at = over_http.load(broken)
    batches += [landing]
    assert isinstance(over_http.append(landing, None, None if at is None else at.token), Written)
    sending.ledger.add(landing.stream, landing.events)
    reacted = Reactions(own).run(batches, [lambda _: None] * 2)
    assert reacted.wrong == ()
    assert [each.stream for each in reacted.parked] == [broken]
    assert reacted.parked[0].cause.startswith("BrokenScale")
    verdict = verify(LibraryStore.of(own), sending.ledger, seen=lambda _: None)
    screen = Screen()
    assert demo.concluded(sending, verdict, reacted, screen) == 0
    assert f"hold all {reacted.documents:,} documents" in screen.text
    assert demo.concluded(sending, verdict, replace(reacted, wrong=("ATL",)), Screen()) == 1


@pytest.mark.proof
def test_a_long_run_needs_two_tables_and_indexes_itself(own: LocalDeployment) -> None:
    make_tables(own.endpoint)
    with in_process(own.endpoint) as store:
        batches = islice(demo.grouping(Options(via="library"))(days(2)), 700, 800)
        sending = send(store, batches, sent=lambda _: None, arrived=lambda _: None)
        verdict = verify(store, sending.ledger, seen=lambda _: None)
    assert sending.tally.appends == 100
    assert (verdict.seen, verdict.first) == (sending.ledger.events, ())
    assert sending.ledger.events > 200


STARTED = re.compile(r"http://127\.0\.0\.1:\d+(?=, IAM enforced)")


@pytest.mark.parametrize("when", ["IAM enforced", pytest.param("… writing", marks=pytest.mark.proof)])
def test_a_demo_stopped_from_the_keyboard_leaves_nothing_running(when: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "examples.flights"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "DAYS": "1", "VIA": "http"},
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as process:
        shown = _until(process, when)
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped" in rest
    (url,) = STARTED.findall(shown)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url, timeout=2)


@pytest.mark.parametrize(("name", "value"), [("DAYS", "400"), ("VIA", "fax")])
def test_a_senseless_choice_is_refused_before_anything_starts(name: str, value: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "examples.flights"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert f"{name} must be" in ran.stdout


def _until(process: subprocess.Popen[str], words: str) -> str:
    """What a program has printed once it says `words`."""
    assert process.stdout is not None
    shown = ""
    for line in process.stdout:
        shown += line
        if words in line:
            return shown
    raise AssertionError(f"it ended without saying {words!r}:\n{shown}")


def _take_a_span_out(own: LocalDeployment) -> tuple[dict[str, Any], dict[str, Any]]:
    """Rewrite the newest entry of epoch 0 without its first span; the item as it was, and the span."""
    client = own.endpoint.client("dynamodb")
    key = {"p": {"S": "$AppendsEpoch-30000_0"}, "i": {"N": "2147483647"}}
    item: dict[str, Any] = client.get_item(TableName=own.settings.index_table, Key=key, ConsistentRead=True)[
        "Item"
    ]
    event = item["e"]["L"][-1]["M"]
    body = decode(Encoded(int(event.get("D", {}).get("N", "0")), event["d"]["B"]))
    assert isinstance(body, bytes)
    entry = json.loads(body)
    lost: dict[str, Any] = (entry["add"] or entry["app"]).pop(0)
    packed = encode(json.dumps(entry))
    changed = {**event, "d": {"B": packed.data}, "D": {"N": str(packed.encoding)}}
    client.put_item(
        TableName=own.settings.index_table, Item={**item, "e": {"L": [*item["e"]["L"][:-1], {"M": changed}]}}
    )
    return item, lost
