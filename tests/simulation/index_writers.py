"""Writers of each layout in a simulated world: what they append, and what the streams of their tables carry then.

tips       streams, which may be pruned
pages      streams, too, whose pages are full after one append or several
journal    aggregates; some appends are another library's, whose heads tell nothing
dcb        tags; an event may have several, and moves the head of each
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.contrib.equinox.port import tips_source
from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.event_store_adapter.outcomes import AggregateAppended
from epochal.contrib.event_store_adapter.port import journal_source
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.contrib.sekiban.port import dcb_source
from epochal.contrib.sekiban.store import DcbEvents
from epochal.layout.changes import Change
from epochal.layout.source import Source
from epochal.model.events import Event
from epochal.model.expected_version import ANY
from epochal.model.outcomes import Appended
from epochal.model.tokens import Token
from epochal.pages import writes
from epochal.pages.port import pages_source
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_streams
from tests.layouts.stores import JOURNAL, persist_elsewhere, tag_site

LAYOUTS = ("tips", "pages", "journal", "dcb")

Types = dict[str, list[str]]
"""Types of events by stream."""


class Writer(Protocol):
    """Appends to streams of one layout.

    Attributes:
        types: all that was appended, by stream.
    """

    source: Source
    types: Types

    def append(self, streams: list[str]) -> None:
        """Append to these streams: to the first, and with it to others where the layout can."""

    def prune(self, stream: str, before: int, /) -> bool:
        """Prune a stream, where the layout can."""


def writer_of(layout: str, tables: MemoryTables, rng: random.Random) -> Writer:
    """The writer of a layout."""
    kinds = {"tips": TipsWriter, "pages": PagesWriter, "journal": JournalWriter, "dcb": TagsWriter}
    return kinds[layout](tables, rng)


def changes_of(writer: Writer, tables: MemoryTables, since: int) -> tuple[list[Change], int]:
    """What the stream of the heads' table tells since a change, and where it has got to."""
    images = tables.changes(writer.source.table)
    told = [writer.source.appended(image) for image in images[since:]]
    return [change for change in told if change is not None], len(images)


class TipsWriter:
    """Streams."""

    def __init__(self, tables: MemoryTables, rng: random.Random) -> None:
        self.source, store = self._made(tables)
        self.types: Types = {}
        self._rng = rng
        self._store = replace(store, fresh=rng.randbytes, now=lambda: 10**18)

    def _made(self, tables: MemoryTables) -> tuple[Source, Streams]:
        return tips_source("tips"), memory_tips(tables)

    def append(self, streams: list[str]) -> None:
        """One or two events."""
        types = self.types.setdefault(streams[0], [])
        new = [f"{streams[0]}:{len(types) + k}" for k in range(self._rng.randint(1, 2))]
        outcome = self._store.append(streams[0], [Event(type=kind) for kind in new])
        assert isinstance(outcome, Appended)
        types += new

    def prune(self, stream: str, before: int, /) -> bool:
        """Always; all of it may be deleted, while it stays open."""
        if before == len(self.types[stream]) and self._rng.random() < 1 / 2:
            self._store.delete(stream, expected=ANY, leave_open=True)
        else:
            self._store.prune(stream, before)
        return True


class PagesWriter(TipsWriter):
    """Streams whose pages are small: any rule of when one is full is safe."""

    def __init__(self, tables: MemoryTables, rng: random.Random) -> None:
        super().__init__(tables, rng)
        self._most = rng.randint(1, 4)

    def _made(self, tables: MemoryTables) -> tuple[Source, Streams]:
        return pages_source("streams"), memory_streams(tables)

    def append(self, streams: list[str]) -> None:
        """One or two events."""
        with self._small():
            super().append(streams)

    def prune(self, stream: str, before: int, /) -> bool:
        """Always."""
        with self._small():
            return super().prune(stream, before)

    @contextmanager
    def _small(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(writes, "is_full", self._is_full)
            yield

    def _is_full(self, left: Token, *_: object, **__: object) -> bool:
        return left.appends >= self._most


class JournalWriter:
    """Aggregates, a third of whose appends another library makes."""

    def __init__(self, tables: MemoryTables, rng: random.Random) -> None:
        self.source = journal_source(JOURNAL)
        self.types: Types = {}
        self._rng = rng
        self._tables = tables
        driver = Driver(execute=tables.execute, meter=Meter())
        self._store = AggregateStore(driver=driver, site=JOURNAL, fresh=rng.randbytes, now=lambda: 10**18)

    def append(self, streams: list[str]) -> None:
        """One or two events."""
        kind, _, value = streams[0].partition("-")
        aggregate = AggregateId(type=kind, value=value)
        types = self.types.setdefault(streams[0], [])
        new = [f"{streams[0]}:{len(types) + k}" for k in range(self._rng.randint(1, 2))]
        if self._rng.random() < 1 / 3:
            for each in new:
                persist_elsewhere(self._tables.execute, aggregate, each)
        else:
            events = [AggregateEvent(type=each, data=b"{}") for each in new]
            assert isinstance(self._store.append(aggregate, events, snapshot=b"{}"), AggregateAppended)
        types += new

    def prune(self, _stream: str, _before: int, /) -> bool:
        """Journals are not pruned."""
        return False


class TagsWriter:
    """Tags."""

    def __init__(self, tables: MemoryTables, rng: random.Random) -> None:
        site = tag_site(type_heads=rng.random() < 0.5)
        self.source = dcb_source(site)
        self.types: Types = {}
        self._rng = rng
        driver = Driver(execute=tables.execute, meter=Meter())
        self._store = DcbEvents(driver=driver, site=site, fresh=rng.randbytes, now=lambda: 10**18)

    def append(self, streams: list[str]) -> None:
        """One or two events of all these tags."""
        serial = sum(map(len, self.types.values()))
        new = [f"{streams[0]}:{serial + k}" for k in range(self._rng.randint(1, 2))]
        self._store.append([Event(type=kind, data=b"{}", tags=tuple(streams)) for kind in new])
        for tag in set(streams):
            self.types.setdefault(tag, []).extend(new)

    def prune(self, _stream: str, _before: int, /) -> bool:
        """Tags are not pruned."""
        return False
