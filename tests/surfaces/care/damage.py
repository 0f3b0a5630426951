"""An index of all layouts that can be damaged, and what judges and mends it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from epochal.care.mender import Mender
from epochal.care.verify import Verifier
from epochal.index.chain_check import Finding
from epochal.index.checkpoints import SERIES, calf_key, epoch_stream, marks_name, tip_key
from epochal.index.epochs import EpochLimits
from epochal.index.marks import FLOOR, Leaf, decode_leaf, hash_of, hash_place
from epochal.index.tip import read_tip
from epochal.plan.ops import Delete, Get, Put
from epochal.plan.values import Item, Key, binary, number
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from tests.layouts.stores import ALICE, BOB, Layouts

SMALL = EpochLimits(entries=2)
"""Epochs that close often."""


@dataclass
class Damaged:
    """Stores of all layouts, their index, and the tools under test. Nobody sleeps; `naps` counts who would have."""

    layouts: Layouts = field(default_factory=lambda: Layouts(limits=SMALL))
    table: str = "index"
    naps: list[float] = field(default_factory=list)

    @property
    def tables(self) -> MemoryTables:
        return self.layouts.tables

    @property
    def driver(self) -> Driver:
        return Driver(execute=self.layouts.execute, meter=Meter(), sleep=self.naps.append)

    @property
    def mender(self) -> Mender:
        return Mender(driver=self.driver, index_table=self.table, limits=self.layouts.limits)

    def verifier(self, **options: Any) -> Verifier:
        return Verifier(mender=self.mender, sources=self.layouts.sources, **options)

    def findings(self, **options: Any) -> list[Finding]:
        return list(self.verifier(**options).findings())

    def said(self, **options: Any) -> list[str]:
        """Findings in a few words."""
        return [told(each) for each in self.findings(**options)]

    # --------------------------------------------------------------------------------------------------- the damage

    def fill(self, rounds: int = 8) -> None:
        """Events of every layout, indexed round by round, so that there are many epochs."""
        for turn in range(rounds):
            self.layouts.append(f"Cart-{turn % 3}", f"a{turn}", f"b{turn}")
            self.layouts.persist(ALICE if turn % 2 else BOB, f"p{turn}")
            self.layouts.tag(f"t{turn}", "room:1", f"guest:{turn}")
            self.layouts.index()

    def item(self, key: Key) -> Item | None:
        return self.tables.execute(Get(table=self.table, key=key)).item  # type: ignore[union-attr]

    def delete(self, key: Key) -> None:
        self.tables.execute(Delete(table=self.table, key=key))

    def delete_epoch(self, partition: int, epoch: int) -> None:
        name = epoch_stream(partition, epoch)
        keys = [
            {"p": item["p"], "i": item["i"]}
            for item in self.tables.items(self.table)
            if item["p"]["S"] == name
        ]
        assert keys
        for key in keys:
            self.delete(key)

    def delete_index(self) -> None:
        for item in list(self.tables.items(self.table)):
            self.delete({"p": item["p"], "i": item["i"]})

    def delete_mark(self, partition: int, stream: str) -> None:
        leaf = self._leaf(partition, stream)
        marks = leaf.marks()
        del marks[hash_of(stream)]
        self._replace(partition, leaf.with_marks(marks))

    def set_mark(self, partition: int, stream: str, following: int) -> None:
        leaf = self._leaf(partition, stream)
        self._replace(partition, leaf.with_marks({**leaf.marks(), hash_of(stream): following}))

    def delete_marks(self, partition: int, stream: str) -> None:
        """The leaf that has a stream's mark, with those of all its neighbours."""
        self.delete(calf_key(marks_name(partition), FLOOR + self._leaf(partition, stream).start))

    def _leaf(self, partition: int, stream: str) -> Leaf:
        name = marks_name(partition)
        leaves = [decode_leaf(item) for item in self.tables.items(self.table) if item["p"]["S"] == name]
        return next(leaf for leaf in leaves if leaf.start <= hash_place(hash_of(stream)) < leaf.end)

    def _replace(self, partition: int, leaf: Leaf) -> None:
        key = calf_key(marks_name(partition), FLOOR + leaf.start)
        item = self.item(key)
        assert item is not None
        changed = {"h": binary(leaf.hashes), "n": binary(leaf.nexts), "w": number(leaf.width)}
        self.tables.execute(Put(table=self.table, item={**item, **changed}))

    def delete_series(self) -> None:
        self.delete(tip_key(SERIES))

    def delete_entry(self, partition: int, epoch: int, offset: int) -> None:
        """As if the entry had never been written: what follows moves up."""
        key = tip_key(epoch_stream(partition, epoch))
        item = self.item(key)
        assert item is not None
        span = read_tip(item).span
        events = [event for at, event in enumerate(item["e"]["L"]) if at != offset]
        types = [kind for at, kind in enumerate(item["c"]["L"]) if at != offset]
        changed = {**item, "n": number(span.next - 1), "e": {"L": events}, "c": {"L": types}}
        self.tables.execute(Put(table=self.table, item=changed))

    def change_entry(self, partition: int, epoch: int, offset: int, body: bytes) -> None:
        """Put something else in an entry's place."""
        key = tip_key(epoch_stream(partition, epoch))
        item = self.item(key)
        assert item is not None
        events = list(item["e"]["L"])
        fields = {name: value for name, value in events[offset]["M"].items() if name != "D"}
        events[offset] = {"M": {**fields, "d": {"B": body}}}
        self.tables.execute(Put(table=self.table, item={**item, "e": {"L": events}}))

    def change_type(self, partition: int, epoch: int, offset: int, kind: str) -> None:
        """Call an entry something else."""
        key = tip_key(epoch_stream(partition, epoch))
        item = self.item(key)
        assert item is not None
        types = list(item["c"]["L"])
        types[offset] = {"S": kind}
        self.tables.execute(Put(table=self.table, item={**item, "c": {"L": types}}))

    def spoil(self, partition: int, epoch: int) -> None:
        """The counters of an epoch's Tip no longer fit its entries."""
        key = tip_key(epoch_stream(partition, epoch))
        item = self.item(key)
        assert item is not None
        self.tables.execute(Put(table=self.table, item={**item, "c": {"L": []}}))

    def last_epoch(self, partition: int) -> int:
        """The newest epoch of a partition that has any entry."""
        return next(
            at
            for at in range(100)
            if self.item(tip_key(epoch_stream(partition, at))) is not None
            and self.item(tip_key(epoch_stream(partition, at + 1))) is None
        )

    def reopen(self, partition: int, epoch: int) -> None:
        """An epoch loses its `Closed`."""
        item = self.item(tip_key(epoch_stream(partition, epoch)))
        assert item is not None
        self.delete_entry(partition, epoch, len(item["c"]["L"]) - 1)


def told(finding: Finding) -> str:
    """A finding in a few words."""
    span = "" if finding.index is None else f" {finding.index}-{finding.end}"
    at = "" if finding.at is None else f" at {finding.at}"
    stream = "" if finding.stream is None else f" {finding.stream}"
    return f"{finding.kind}: {finding.source}{stream}{span}{at}"
