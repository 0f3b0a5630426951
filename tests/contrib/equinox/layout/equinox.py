"""Equinox's DynamoStore, as far as it meets what we store: how it appends, calves, and reads a whole stream.

After its source (`DynamoStore.fs`, `Sync` and `Query`): a calf is put at the Tip's base if none is there, in one
transaction with the Tip's update, which is conditioned on the number of events; a read without snapshots takes every
item of the stream in order. It knows nothing of `l`, `z` and `k`.
"""

from __future__ import annotations

from dataclasses import dataclass

from epochal.index.checkpoints import TIP, calf_key, tip_key
from epochal.plan.conditions import Absent, equals
from epochal.plan.ops import Done, Execute, Get, Put, Query, Set, Transact, Update
from epochal.plan.values import mapping, number, read_list, read_number, sequence, text

MAX_BYTES = 32 * 1024


@dataclass(frozen=True)
class Equinox:
    """One application on a table of streams."""

    execute: Execute
    table: str
    max_events: int

    def append(self, stream: str, kind: str, etag: str) -> bool:
        """Append an event to a stream that is there, calving at `max_events`; False is a conflict."""
        tip = self.execute(Get(table=self.table, key=tip_key(stream))).item
        assert tip is not None
        held, types = read_list(tip, "e"), read_list(tip, "c")
        version = read_number(tip, "n") or 0
        event = mapping({"t": text("2026-01-01T00:00:00.0000000+00:00")})
        calves = len(held) + 1 > self.max_events and bool(held)
        kept, names = ([], []) if calves else (held, types)
        update = Update(
            table=self.table,
            key=tip_key(stream),
            sets=(
                Set("a", number(1)),
                Set("etag", text(etag)),
                Set("n", number(version + 1)),
                Set("e", sequence((*kept, event))),
                Set("c", sequence((*names, text(kind)))),
            ),
            condition=equals("n", number(version)),
        )
        if not calves:
            return isinstance(self.execute(update), Done)
        base = version - len(held)
        calf = {**calf_key(stream, base), "n": number(version), "e": sequence(held), "c": sequence(types)}
        put = Put(table=self.table, item=calf, condition=Absent("i"))
        return isinstance(self.execute(Transact(writes=(put, update))), Done)

    def read(self, stream: str) -> list[tuple[int, str]]:
        """Every event with its index, item by item, as a read without snapshots finds them."""
        found = self.execute(Query(table=self.table, partition=("p", text(stream))))
        events = []
        for item in sorted(found.items, key=lambda item: int(item["i"]["N"])):
            types = read_list(item, "c")
            base = (read_number(item, "n") or 0) - len(types)
            assert int(item["i"]["N"]) in (base, TIP)
            events += [(base + at, kind["S"]) for at, kind in enumerate(types)]
        return events
