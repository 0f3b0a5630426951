"""Tagged events in memory, with clocks and requests in the test's hands."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from epochal.contrib.sekiban.items import EVENTS, TAGS, Keys, TagSite
from epochal.contrib.sekiban.store import DcbEvents
from epochal.model.events import Event
from epochal.model.tags import Query, QueryItem
from epochal.plan.ops import Op, Reply
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables

NOW = 1_800_000_000 * 10**9


@dataclass
class World:
    """Two tables; `before` and `after` are called around each request."""

    keys: Keys = field(default_factory=Keys)
    type_heads: bool = False
    tables: MemoryTables = field(default_factory=lambda: MemoryTables({"events": EVENTS, "tags": TAGS}))
    meter: Meter = field(default_factory=Meter)
    before: Callable[[Op], None] = lambda _: None
    after: Callable[[Op], None] = lambda _: None
    _ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def execute(self, op: Op) -> Reply:
        self.before(op)
        reply = self.tables.execute(op)
        self.after(op)
        return reply

    def store(self, now: int = NOW) -> DcbEvents:
        """A writer whose clock stands at `now`, in nanoseconds."""
        driver = Driver(execute=self.execute, meter=self.meter, sleep=lambda _: None)
        site = TagSite(events="events", tags="tags", keys=self.keys, type_heads=self.type_heads)
        return DcbEvents(driver=driver, site=site, now=lambda: now, fresh=self._fresh)

    def _fresh(self, size: int) -> bytes:
        return next(self._ids).to_bytes(size, "big")


def event(kind: str, *tags: str, id_: str | None = None, data: str = "{}") -> Event:
    return Event(type=kind, data=data.encode(), tags=tags, id=id_)


def query(*items: tuple[str, str]) -> Query:
    """Items as (types, tags), each separated by spaces."""
    return Query(
        items=tuple(
            QueryItem(types=frozenset(types.split()), tags=frozenset(tags.split())) for types, tags in items
        )
    )
