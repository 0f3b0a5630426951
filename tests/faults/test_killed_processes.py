"""G1 to G7 with real processes: killed with SIGKILL in the middle and started again, over a network that cuts, delays
and repeats, on AWS's own DynamoDB.

Nothing that was acknowledged is lost, nothing is there twice, heads say what is there, and the feed is complete and in
order. `EPOCHAL_FAULTS_OPERATIONS=5000` makes it as long as you like.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from epochal.contrib.equinox.port import TIPS
from epochal.contrib.event_store_adapter.items import JOURNAL, SNAPSHOT
from epochal.contrib.sekiban.items import EVENTS, TAGS, Keys, read_head
from epochal.contrib.sekiban.items import is_head as is_tag_head
from epochal.layout.registry import partitions_of
from epochal.layout.tables import INDEX
from epochal.model.tags import Query, QueryItem
from epochal.pages.items import STREAMS as PAGES
from epochal.plan.ops import Scan
from epochal.plan.values import Item
from tests.faults.proxy import FATES, Proxy
from tests.faults.site import AGGREGATES, Site
from tests.faults.site import TAGS as COURSES
from tests.faults.writer import KINDS, facts
from tests.support.tables import Tables

pytestmark = [pytest.mark.ddbl, pytest.mark.timeout(3600)]

ROOT = Path(__file__).resolve().parents[2]
OPERATIONS = int(os.environ.get("EPOCHAL_FAULTS_OPERATIONS", "150"))
FEW = 20
"""Of each writer; `make test` performs few."""

WRITERS = ("ann", "bob", "cid")
BETWEEN = (80, 200)
"""Requests between two kills."""

RATE = 0.08
"""Of requests that the network does something to."""


@dataclass
class Run:
    """Processes, and who kills them."""

    site: Site
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    kills: Counter[str] = field(default_factory=Counter)

    def start(self, name: str) -> None:
        what = ["tests.faults.writer", self.site.text(), name]
        if name in ("indexer", "reader"):
            what = ["tests.faults.following", name, self.site.text()]
        path = os.pathsep.join([str(ROOT), str(ROOT / "layers/epochal/python")])
        self.processes[name] = subprocess.Popen(
            [sys.executable, "-m", *what], cwd=ROOT, env={**os.environ, "PYTHONPATH": path}
        )

    def kill(self, name: str) -> None:
        self.processes[name].send_signal(signal.SIGKILL)
        self.processes[name].wait()

    def go_on_killing(self, proxy: Proxy, luck: random.Random) -> None:
        """Until every writer has performed its operations, kill someone whenever so many requests have been made."""
        due = BETWEEN[0]
        while writing := [name for name in WRITERS if self.running(name)]:
            time.sleep(0.02)
            if proxy.requests < due:
                continue
            due = proxy.requests + luck.randint(*BETWEEN)
            name = luck.choice([*writing, "indexer", "reader"])
            if self.running(name):
                self.kill(name)
                self.kills[name] += 1
                self.start(name)

    def running(self, name: str) -> bool:
        """Whether it has not come to its end, which only writers may, and only well."""
        status = self.processes[name].poll()
        assert status is None or (status == 0 and name in WRITERS), f"{name} ended with {status}"
        return status is None

    def close(self) -> None:
        for name, process in self.processes.items():
            if process.poll() is None:
                self.kill(name)


@dataclass
class Truth:
    """What is in the tables in the end: the facts of each stream, by index, as read past the network."""

    site: Site

    def __post_init__(self) -> None:
        streams, aggregates, tagged = (
            self.site.open_streams(),
            self.site.open_aggregates(),
            self.site.open_tagged(),
        )
        self.streams = {
            name: [str(event.data, "utf-8") for event in store.read(name)] for name, store in streams.items()
        }
        self.aggregates = {
            str(each): [str(event.data, "utf-8") for event in aggregates.events_after(each)]
            for each in AGGREGATES
        }
        self.tags = {tag: [event.id for event in tagged.read(asks(tag)).events] for tag in COURSES}
        self.tagged = {
            event.id: event.content.decode() for tag in COURSES for event in tagged.read(asks(tag)).events
        }
        self.versions = {name: store.load(name).version for name, store in streams.items()}
        self.locks = {str(each): aggregates.lock(each).seq_nr for each in AGGREGATES}

    def feed(self) -> dict[str, int]:
        """How many events each stream of the feed has."""
        found = {**self.streams, **self.aggregates, **self.tags}
        return {stream: len(events) for stream, events in found.items() if events}


def asks(tag: str) -> Query:
    return Query(items=(QueryItem(types=frozenset(), tags=frozenset((tag,))),))


def site_on(tables: Tables, url: str, directory: Path, operations: int) -> Site:
    return Site(
        url=url,
        streams_url=tables.endpoint.url,
        region=tables.endpoint.region,
        directory=str(directory),
        operations=operations,
        tips=tables.create(TIPS),
        pages=tables.create(PAGES),
        index=tables.create(INDEX),
        journal=tables.create(JOURNAL),
        snapshot=tables.create(SNAPSHOT),
        events=tables.create(EVENTS),
        tags=tables.create(TAGS),
    )


@pytest.fixture
def proxy(ddbl_tables: Tables) -> Iterator[Proxy]:
    port = urlsplit(ddbl_tables.endpoint.url).port
    assert port is not None
    proxy = Proxy(port, rate=RATE, seed=1)
    yield proxy
    proxy.close()


@pytest.mark.parametrize("operations", [FEW, pytest.param(OPERATIONS, marks=pytest.mark.proof)])
def test_whoever_is_killed_nothing_is_lost_nothing_doubled_and_the_feed_is_whole(
    ddbl_tables: Tables, proxy: Proxy, tmp_path: Path, operations: int
) -> None:
    site = site_on(ddbl_tables, proxy.url, tmp_path, operations)
    run = Run(site)
    try:
        for name in (*WRITERS, "indexer", "reader"):
            run.start(name)
        run.go_on_killing(proxy, random.Random(1))
        proxy.rate = 0
        truth = Truth(replace(site, url=site.streams_url))
        wait_for_reader(run, truth)
    finally:
        run.close()

    assert run.kills, "nobody was killed"
    if operations > FEW:
        assert min(proxy.met[fate] for fate in FATES) > 10, proxy.met
        assert min(run.kills[name] for name in ("indexer", "reader")) > 0
        assert sum(run.kills[name] for name in WRITERS) > 3
    print(f"{proxy.requests:,} requests: {dict(proxy.met)}; killed: {dict(run.kills)}")  # noqa: T201
    check_events(site, truth)
    check_answers(site, truth)
    check_heads(site, truth)
    check_feed(replace(site, url=site.streams_url), truth)
    check_reader(site, truth)


def wait_for_reader(run: Run, truth: Truth) -> None:
    """The indexer comes to the end of the tables' streams, and the reader to that of the feed."""
    until = time.monotonic() + 120
    while len(set(read(run.site))) < sum(truth.feed().values()):
        assert time.monotonic() < until, "the feed does not come to its end"
        assert run.running("indexer")
        assert run.running("reader")
        time.sleep(0.2)


def read(site: Site) -> list[tuple[str, int]]:
    """What the reader has kept, in that order; what it read again after a kill stands there again."""
    return [(stream, index) for stream, index in site.log("reader")]


def check_events(site: Site, truth: Truth) -> None:
    """Each operation's events are there once, together and in order."""
    wanted = {
        at: [fact for name in WRITERS for n in range(at, site.operations, KINDS) for fact in facts(name, n)]
        for at in range(KINDS)
    }
    assert sorted(fact for events in truth.streams.values() for fact in events) == sorted(
        wanted[0] + wanted[3]
    )
    assert sorted(fact for events in truth.aggregates.values() for fact in events) == sorted(wanted[1])
    assert sorted(truth.tagged.values()) == sorted(wanted[2])
    for tag, ids in truth.tags.items():
        assert len(ids) == len(set(ids)), f"{tag} has an event twice"


def check_answers(site: Site, truth: Truth) -> None:
    """What was acknowledged is where the answer said."""
    for name in WRITERS:
        for layout, number, *answer in site.log(name):
            ours = facts(name, number)
            if layout == "streams":
                stream, first = answer
                assert truth.streams[stream][first : first + len(ours)] == ours
            elif layout == "aggregates":
                aggregate, first = answer
                assert truth.aggregates[aggregate][first - 1 : first - 1 + len(ours)] == ours
            elif layout == "bulk":
                part, stream, first = answer
                assert truth.streams[stream][first] == ours[part]
            elif layout == "tagged":
                assert [truth.tagged[event_id] for event_id in answer[0]] == ours


def check_heads(site: Site, truth: Truth) -> None:
    """Every head counts what there is."""
    assert truth.versions == {name: len(events) for name, events in truth.streams.items()}
    assert truth.locks == {name: len(events) for name, events in truth.aggregates.items()}
    items = scanned(replace(site, url=site.streams_url))
    heads = {Keys().tag_of(item["pk"]["S"]): read_head(item) for item in items if is_tag_head(item)}
    for tag, ids in truth.tags.items():
        assert heads[tag].reached.count == len(ids)
        entries = [item for item in items if item.get("tagString") == {"S": tag}]
        assert [item["eventId"]["S"] for item in entries] == ids
        assert [int(item["tagIndex"]["N"]) for item in entries] == list(range(len(ids)))


def scanned(site: Site) -> list[Item]:
    """All of the table of tags, by key within a tag."""
    execute, items, last = site.place.driver().execute, list[Item](), None
    while True:
        page = execute(Scan(table=site.tags, after=last))
        items += page.items
        last = page.last
        if last is None:
            return items


def check_feed(site: Site, truth: Truth) -> None:
    """Every event of every stream, once, in order."""
    feed, found = site.open_feed(), dict[str, list[int]]()
    for partition in partitions_of(site.settings):
        for page in feed.read(partition):
            for item in page.items:
                found.setdefault(item.stream, []).append(item.index)
    assert found == {stream: list(range(count)) for stream, count in truth.feed().items()}


def check_reader(site: Site, truth: Truth) -> None:
    """A reader that was killed has everything, and met it in order."""
    seen: dict[str, int] = {}
    for stream, index in read(site):
        assert index <= seen.get(stream, 0), f"{stream} went on with {index} after {seen.get(stream, 0) - 1}"
        seen[stream] = max(seen.get(stream, 0), index + 1)
    assert seen == truth.feed()
