"""Where the processes of a run work: tables, an address, and a directory for what each must not forget."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from epochal.contrib.equinox.streams import Tips
from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.items import site_of
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.contrib.sekiban.items import tag_site_of
from epochal.contrib.sekiban.store import DcbEvents
from epochal.dynamo.stores import Place
from epochal.feed.reader import FeedReader
from epochal.pages.layout import Pages
from epochal.settings import Settings
from epochal.store.streams import Streams

STREAMS = tuple(f"Flight-{number}" for number in range(4))
PAGED = frozenset(STREAMS[1::2])
"""Streams that are stored as pages; the others are in Tips."""

AGGREGATES = tuple(AggregateId(type="user", value=str(number)) for number in range(4))
TAGS = tuple(f"course:{number}" for number in range(4))


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What a process is told when it is started.

    Attributes:
        url: of the DynamoDB, or of the network before it.
        streams_url: of the tables' streams.
        operations: how many each writer performs.
    """

    url: str
    streams_url: str
    region: str
    directory: str
    operations: int
    tips: str
    pages: str
    index: str
    journal: str
    snapshot: str
    events: str
    tags: str

    @classmethod
    def parse(cls, text: str) -> Site:
        return cls(**json.loads(text))

    def text(self) -> str:
        return json.dumps(asdict(self))

    @property
    def place(self) -> Place:
        return Place(endpoint=self.url, region=self.region)

    @property
    def settings(self) -> Settings:
        return Settings.of(
            tips_table=self.tips,
            streams_table=self.pages,
            index_table=self.index,
            journal_table=self.journal,
            snapshot_table=self.snapshot,
            events_table=self.events,
            tags_table=self.tags,
        )

    def open_streams(self) -> dict[str, Streams]:
        """The store of each stream."""
        tips = Streams(driver=self.place.driver(), table=self.tips, layout=Tips())
        pages = Streams(driver=self.place.driver(), table=self.pages, layout=Pages())
        return {name: pages if name in PAGED else tips for name in STREAMS}

    def open_aggregates(self) -> AggregateStore:
        return AggregateStore(driver=self.place.driver(), site=site_of(self.settings))

    def open_tagged(self) -> DcbEvents:
        return DcbEvents(driver=self.place.driver(), site=tag_site_of(self.settings))

    def open_feed(self) -> FeedReader:
        return FeedReader(driver=self.place.driver(), table=self.index)

    def log(self, name: str) -> Log:
        return Log(Path(self.directory) / name)


@dataclass(frozen=True, slots=True)
class Log:
    """Lines of JSON that outlive their writer: each is one write to the file, so a kill leaves whole lines, or none."""

    path: Path

    def add(self, *entry: Any) -> None:
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, json.dumps(entry).encode() + b"\n")
        finally:
            os.close(file)

    def __iter__(self) -> Iterator[list[Any]]:
        if self.path.exists():
            yield from map(json.loads, self.path.read_text().splitlines())
