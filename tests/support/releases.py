"""Tables as a release of Epochal wrote them, and what it read there: each later release must read the same.

    python -m tests.support.releases 0.1.0      writes tests/frozen/releases/0.1.0.json

Written once, when a release is made, by that release; a file that is there is never written again.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, Final

from epochal import NO_STREAM, Event, FeedEvent, Query, QueryItem, StreamAppend, Unfold, metadata
from epochal.contrib.event_store_adapter import AggregateEvent, aggregate_id
from epochal.contrib.subjects.items import FORGET_LOG, SUBJECT_KEYS
from epochal.contrib.subjects.sealing import Subjects
from epochal.contrib.subjects.testing import MemoryWrapping
from epochal.deployment import Deployment
from epochal.feed.stream_records import Record
from epochal.layout.tables import READ_MODELS, store_tables
from epochal.plan.ops import Put, Scan
from epochal.plan.values import Item
from epochal.reactions.definition import Delivery, Reaction, reaction
from epochal.reactions.group_member import Member
from epochal.reactions.reactor import Reactor
from epochal.read_models.documents import Documents
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import MemoryBucket, memory_settings

KEPT: Final = Path(__file__).resolve().parents[1] / "frozen" / "releases"
SPECS: Final = {spec.kind: spec for spec in (*store_tables(), READ_MODELS, SUBJECT_KEYS, FORGET_LOG)}
SECRET: Final = bytes(range(32))
ANN: Final = aggregate_id("account", "ann")
LARGE: Final = random.Random(1).randbytes(420_000)
"""Goes to the bucket. The file of a release has its key alone."""

EVERY_TAG: Final = Query(items=(QueryItem(tags=frozenset({"course:c1"})),))


class World:
    """A deployment in memory, with keys of subjects and a read model."""

    def __init__(self) -> None:
        """Empty."""
        self.tables = MemoryTables(SPECS)
        self.bucket = MemoryBucket()
        driver = Driver(execute=self.tables.execute, meter=Meter())
        self.on = Deployment(
            settings=memory_settings(read_models_table=READ_MODELS.kind), driver=driver, bucket=self.bucket
        )
        self.subjects = Subjects(
            driver=driver, table=SUBJECT_KEYS.kind, wrapping=MemoryWrapping(SECRET), log=FORGET_LOG.kind
        )
        self.counts = self.on.read_models.open("counts", 1)
        self._indexed: dict[str, int] = {}
        self._indexer = self.on.indexer

    def index(self) -> None:
        """Index what has been appended since the last time."""
        self._indexer.register()
        for table in (each.table for each in self._indexer.sources):
            changes, at = self.tables.changes(table), self._indexed.get(table, 0)
            report = self._indexer.index(
                Record(table=table, sequence_number=f"{number:021d}", image=changes[number])
                for number in range(at, len(changes))
            )
            assert not report.failed
            self._indexed[table] = len(changes)

    def react(self) -> Reactor:
        """Index, and run the reaction over every partition."""
        self.index()
        reactor = Reactor(member=Member(reaction=self._reaction(), reader=self.on.feed))
        for each in self.on.feed.partitions():
            reactor.run(each.partition, seconds=inf)
        return reactor

    def _reaction(self) -> Reaction:
        def count(documents: Documents, event: FeedEvent) -> None:
            documents.put(event.type, documents.get(event.type, 0) + 1)

        @reaction(name="counts", categories=["Order", "Broken"], attempts=1)
        def counting(delivery: Delivery) -> None:
            if delivery.stream.startswith("Broken-"):
                raise ValueError("never works")
            self.counts.apply(delivery, count)

        return counting

    def dump(self) -> dict[str, Any]:
        """All items and objects."""
        return {
            "tables": {name: sorted(map(_plain, self._items(name)), key=json.dumps) for name in SPECS},
            "large": [key for key, content in self.bucket.bodies.objects.items() if content == LARGE],
        }

    def restore(self, dumped: Mapping[str, Any]) -> None:
        """Have what was dumped; it counts as indexed."""
        for name, items in dumped["tables"].items():
            for item in items:
                self.on.driver.ask(Put(table=name, item=_read(item)))
            self._indexed[name] = len(self.tables.changes(name)) if SPECS[name].stream else 0
        self.bucket.bodies.objects.update(dict.fromkeys(dumped["large"], LARGE))

    def _items(self, table: str) -> Sequence[Item]:
        found = self.on.driver.ask(Scan(table=table))
        assert found.last is None, "small enough for a page"
        return found.items


def fill(world: World) -> None:
    """Write something in every format that there is."""
    on = world.on
    order = {"sku": "A-1", "quantity": 2, "currency": "EUR", "country": "Germany", "note": "as agreed"}
    for store in (on.streams, on.tips):
        with metadata(correlation_id="visit-7"):
            store.append("Order-1", [Event.json("Placed", order), Event.json("Paid", {"amount": 12})])
        for number in range(12):
            store.append("Order-1", [Event(type="Noted", data=bytes(range(256)) * 3, meta=b"%d" % number)])
        store.append("Order-1", [Event.json("Shipped", {})], unfolds=[Unfold(type="State", data=b'{"n":15}')])
        store.append("Order-2", [Event.json("Placed", order)], expected=NO_STREAM, idempotency_key="key-1")
        store.append("Order-3", [Event(type="Scanned", data=LARGE)])
        store.append("Order-4", [Event.json("Placed", order)] * 40)
        store.prune("Order-4", 20, unarchived=True)
        store.append("Order-5", [Event.json("Placed", order)])
        store.delete("Order-5")
    on.streams.append_all(
        [
            StreamAppend(stream="Order-6", events=[Event.json("Split", {})]),
            StreamAppend(stream="Order-7", events=[Event.json("Split", {})]),
        ],
        idempotency_key="key-2",
    )
    for number in range(61):
        on.streams.append(
            f"Parcel-{number}", [Event.json("Packed", {"parcel": number * 7919 % 9973, **order})]
        )
    for number, subject in enumerate(("ann", "bob")):
        sealed = world.subjects.seal(subject, b'{"name": "of a person"}')
        on.streams.append(f"Person-{number}", [Event(type="Named", data=sealed)])
    world.subjects.forget("bob")
    lock = on.aggregates.append(
        ANN, [AggregateEvent.json("Opened", {})], snapshot=b'{"n":1}', expected=NO_STREAM
    ).lock
    on.aggregates.append(ANN, [AggregateEvent.json("Credited", {"by": 5})] * 3, expected=lock)
    for tagged in (on.tagged, on.dcb):
        for number in range(3):
            tags = ("course:c1", f"student:s{number}")
            tagged.append([Event.json("Enrolled", {"n": number}, tags=tags)])
    on.states.save("totals", "1", [b"state"], events_processed=3, last_sortable_id="0" * 30)
    on.streams.append("Broken-1", [Event.json("Broke", {})])
    world.react()


def view(world: World) -> dict[str, Any]:
    """All that readers are given."""
    on, told = world.on, dict[str, Any]()
    for name, store in {"streams": on.streams, "tips": on.tips}.items():
        told[name] = {stream: _stream(store, stream) for stream in _streams(world, name)}
    replay = on.aggregates.replay(ANN)
    assert replay is not None
    told["aggregate"] = {
        "snapshot": [replay.snapshot.seq_nr, replay.snapshot.data.decode()],
        "events": [
            [each.seq_nr, each.type, each.data.decode()] for each in on.aggregates.events_after(ANN, 0)
        ],
    }
    for name, tagged in {"tagged": on.tagged, "dcb": on.dcb}.items():
        events = tagged.read(EVERY_TAG).events
        told[name] = [[each.type, each.json(), sorted(each.tags)] for each in events]
    told["states"] = [
        [each.projector, each.events_processed, b"".join(on.states.open(each)).decode()]
        for each in on.states.list("totals")
    ]
    told["people"] = [
        repr(world.subjects.unseal(event.content))
        for number in range(2)
        for event in on.streams.read(f"Person-{number}")
    ]
    told["feed"] = {str(each.partition): feed(world, each.partition) for each in on.feed.partitions()}
    told["counts"] = {kind: world.counts.get(kind) for kind in ("Placed", "Noted", "Shipped", "Split")}
    as_in_a_file: dict[str, Any] = json.loads(json.dumps(told))
    return as_in_a_file


def feed(world: World, partition: int) -> list[Any]:
    """What the feed has of a partition."""
    pages = world.on.feed.read(partition, data=True)
    return [[each.stream, each.index, each.type, each.gone] for page in pages for each in page.items]


def _streams(world: World, kind: str) -> list[str]:
    names = {item["p"]["S"] for item in world._items(kind)}  # noqa: SLF001  the same file
    return sorted(name for name in names if name.partition("-")[0] in {"Order", "Parcel", "Person", "Broken"})


def _stream(store: Any, stream: str) -> dict[str, Any]:
    state = store.load(stream)
    events = [_event(each) for each in store.read(stream)]
    assert [_event(each) for each in store.read(stream, direction="backward")] == events[::-1]
    unfolds = {each.type: each.content.decode() for each in state.unfolds} if state else {}
    return {"version": state.version if state else None, "events": events, "unfolds": unfolds}


def _event(each: Any) -> list[Any]:
    content = each.content
    shown = content.decode("latin-1") if len(content) < 200 else hashlib.sha256(content).hexdigest()
    return [each.index, each.type, shown, (each.meta or b"").decode(), each.correlation_id]


def _plain(value: Any) -> Any:
    return _mapped(value, lambda content: base64.b64encode(content).decode())


def _read(value: Any) -> Any:
    return _mapped(value, base64.b64decode)


def _mapped(value: Any, binary: Callable[[Any], Any]) -> Any:
    """An item, or what is in one, with binary values as another type."""
    if isinstance(value, Mapping):
        if len(value) == 1 and (kind := next(iter(value))) in ("B", "BS"):
            content = value[kind]
            return {kind: binary(content) if kind == "B" else [binary(each) for each in content]}
        return {name: _mapped(each, binary) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_mapped(each, binary) for each in value]
    return value


def main(arguments: Sequence[str]) -> None:
    """Write the tables of a release."""
    (version,) = arguments
    path = KEPT / f"{version}.json"
    assert not path.exists(), f"{path} is there: what a release wrote stays"
    world = World()
    fill(world)
    path.write_text(json.dumps({"read": view(world), **world.dump()}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
