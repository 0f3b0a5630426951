"""Aggregates in memory, with an interpreter that can lose responses on demand."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from epochal.contrib.event_store_adapter.ids import AggregateId, AggregateTypes, aggregate_id
from epochal.contrib.event_store_adapter.items import JOURNAL, SNAPSHOT, JournalSite, KeyResolver
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.event_store_adapter.retention import Retention
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.plan.failures import Lost
from epochal.plan.ops import Op, Reply, Transact
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables

ALICE = aggregate_id("user-account", "01H42K4ABWQ5V2XQEP3A48VE0Z")


@dataclass
class World:
    """Two tables, and what happens to requests: `after` runs once a request was applied, before its answer."""

    tables: MemoryTables = field(
        default_factory=lambda: MemoryTables({"journal": JOURNAL, "snapshot": SNAPSHOT})
    )
    meter: Meter = field(default_factory=Meter)
    after: Callable[[Op], None] = lambda _: None

    def execute(self, op: Op) -> Reply:
        reply = self.tables.execute(op)
        self.after(op)
        return reply

    def store(self, retention: Retention | None = None) -> AggregateStore:
        driver = Driver(execute=self.execute, meter=self.meter, sleep=lambda _: None)
        return AggregateStore(driver=driver, site=site(), retention=retention)

    def lose_next_append(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        """The next transaction is applied, then `meanwhile` happens, and its answer never comes."""

        def after(op: Op) -> None:
            if isinstance(op, Transact):
                self.after = lambda _: None
                meanwhile()
                raise Lost("the answer was dropped")

        self.after = after


def site() -> JournalSite:
    return JournalSite(
        journal="journal", snapshot="snapshot", keys=KeyResolver(), types=AggregateTypes(["user-account"])
    )


def event(number: int, kind: str = "Renamed") -> AggregateEvent:
    return AggregateEvent(type=kind, data=json.dumps({"number": number}).encode())


def numbers(store: AggregateStore, aggregate: AggregateId = ALICE) -> list[int]:
    """What the events of an aggregate carry, in order."""
    return [json.loads(each.data)["number"] for each in store.events_after(aggregate)]
