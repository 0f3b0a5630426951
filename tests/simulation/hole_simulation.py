"""One seed of a stream that loses its beginning: to prunes of ours, archived before or not, or to Equinox's pruner,
beside writers and readers that get few items a request. What a reader gets is contiguous, or it was told what is gone.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest

from epochal.contrib.equinox.calving import Fixed
from epochal.contrib.equinox.streams import Tips
from epochal.errors import CorruptData, EventsPruned, InvalidInput
from epochal.index.checkpoints import calf_key, is_tip, tip_key
from epochal.index.tip import read_span, read_tip
from epochal.model.events import Recorded
from epochal.plan.conditions import equals
from epochal.plan.ops import Delete, Execute, Get, Op, Query, Reply, Set, Update
from epochal.plan.values import number, sequence, text
from epochal.store.reading import Direction
from epochal.store.streams import Streams
from tests.simulation.gradual import Gradual, awaiting
from tests.simulation.histories import played
from tests.simulation.stream_items import TIP_ITEMS, StreamItems
from tests.simulation.stream_simulation import OneStream

ARCHIVE = "archive"

TRANSACTIONAL = tuple(Tips(calving=Fixed(max_events=most, mode="transactional")) for most in (1, 2, 3))
"""Where Equinox prunes, calves are put as Equinox puts them: a calf that lags behind its Tip would come back."""


@dataclass(slots=True, kw_only=True)
class Read:
    """What a reader got.

    Attributes:
        acknowledged: the version that had been answered when it began.
        archived: the version that its archive had then; None where it has none.
        gone: what it was told to be gone.
    """

    direction: Direction
    acknowledged: int
    archived: int | None
    events: list[Recorded] = field(default_factory=list)
    gone: tuple[int, int] | None = None


@dataclass(slots=True)
class Holed(OneStream):
    """Processes at work on a stream that is pruned.

    Attributes:
        told: by those who paged from the beginning: the events, and what is gone, in order.
    """

    seen: list[Read] = field(default_factory=list)
    told: list[list[tuple[int, int, bool]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super(Holed, self).__post_init__()
        self.world.shared = self.shared

    @property
    def shared(self) -> bool:
        """Whether Equinox prunes the stream, too."""
        return self.kind is TIP_ITEMS and self.seed % 2 == 0

    @property
    def careful(self) -> bool:
        """Whether only archived events are pruned, and everyone reads with the archive."""
        return self.seed % 4 == 1

    def store(self, luck: random.Random, name: str, execute: Execute) -> Streams:
        layout = luck.choice(TRANSACTIONAL if self.shared else self.kind.layouts)
        paged = _paged(awaiting(execute, self.tables), luck.choice((1, 1, 2, None)))
        store = self.world.store(name, paged, layout=layout)
        archived = self.careful or luck.random() < 0.5
        return (
            replace(store, archive=replace(store, table=ARCHIVE, fresh=_other(store.fresh)))
            if archived
            else store
        )

    def act(self, luck: random.Random, store: Streams) -> None:
        before = luck.randint(1, 8)
        match luck.choice(
            ("append",) * 4 + ("read", "read", "page", "archive", "prune", "equinox", "delete")
        ):
            case "append":
                self._append(luck, store, self._expectation(luck, store), None)
            case "read":
                self._read(store, luck.choice(("forward", "backward")))
            case "page":
                self._page(store, luck.randint(1, 4))
            case "archive" if store.archive is not None:
                self._archive(store, before)
            case "prune":
                self._prune(store, before, unarchived=not self.careful)
            case "equinox" if self.shared:
                _equinox(store, self.tables, self.world.stream, before)
            case "delete" if not self.careful and luck.random() < 0.3:
                store.try_delete(self.world.stream, leave_open=luck.random() < 0.8)

    def check(self) -> None:
        super(Holed, self).check()
        low, history = self.world.low(), self.world.history()
        for read in self.seen:
            self._check(read, low, history)
        for told in self.told:
            assert [first for first, _, _ in told] == [0, *(end for _, end, _ in told)][: len(told)], (
                f"untold: {told}"
            )
            assert all(end <= low for _, end, there in told if not there), f"told to be gone: {told}"
        if self.careful:
            assert not any(read.gone for read in self.seen), "pruned unarchived"
        if self.kind is TIP_ITEMS:
            self._check_damage()

    def _check(self, read: Read, low: int, history: dict[int, bytes | None]) -> None:
        indices = [event.index for event in read.events]
        assert all(abs(one - other) == 1 for one, other in pairwise(indices)), f"untold: {indices}"
        assert all(event.append_id == history[event.index] for event in read.events)
        if read.gone is not None:
            first, end = read.gone
            assert end <= low, f"told to be gone: {read.gone}"
            assert read.archived is None or first >= min(read.archived, end), "the archive was not asked"
            return
        lowest, highest = min(indices, default=low), max(indices, default=low - 1)
        assert lowest <= low, f"{low} is there, {lowest} was read"
        assert highest + 1 >= read.acknowledged, f"{read.acknowledged} were acknowledged, {indices} were read"
        assert not indices or not lowest or read.archived is None, "the archive was not asked"

    def _check_damage(self) -> None:
        """Check that a missing calf above existing events was never pruned."""
        spans = sorted(
            (read_span(item) for item in self.world.items() if not is_tip(item)), key=lambda span: span.base
        )
        live = [span for span in spans if span.next > self.world.low()]
        for below, lost in pairwise(live):
            if below.next == lost.base and lost.next <= self._base():
                copy = replace(self.world, tables=self.tables.copy())
                copy.tables.execute(Delete(table="tips", key=calf_key(self.world.stream, lost.base)))
                with pytest.raises(CorruptData, match="is in no item"):
                    list(copy.store("judge").read(self.world.stream))
                return

    def _base(self) -> int:
        tip = self.world.tip()
        return 0 if tip is None else read_tip(tip).span.base

    def _read(self, store: Streams, direction: Direction) -> None:
        head = None if store.archive is None else store.archive.head(self.world.stream)
        archived = None if store.archive is None else 0 if head is None else head.version
        read = Read(direction=direction, acknowledged=self._acknowledged(), archived=archived)
        try:
            read.events.extend(store.read(self.world.stream, direction=direction))
        except EventsPruned as pruned:
            read.gone = (pruned.needed, pruned.low_water)
        self.seen.append(read)

    def _page(self, store: Streams, limit: int) -> None:
        told: list[tuple[int, int, bool]] = []
        at: int | None = 0
        while at is not None:
            page = store.page(self.world.stream, start=at, limit=limit)
            if page.hole is not None:
                told.append((page.hole.first, page.hole.end, False))
            told += [(event.index, event.index + 1, True) for event in page.events]
            at = page.next
        self.told.append(told)

    def _archive(self, store: Streams, before: int) -> None:
        try:
            store.copy_to_archive(self.world.stream, before)
        except InvalidInput as refused:
            if "pruned, but never archived" not in refused.rule:
                raise
            return
        self._prune(store, before, unarchived=False)

    def _prune(self, store: Streams, before: int, *, unarchived: bool) -> None:
        try:
            store.prune(self.world.stream, before, unarchived=unarchived)
        except InvalidInput as refused:
            if "the archive has only" not in refused.rule:
                raise


def _paged(execute: Execute, items: int | None) -> Execute:
    """Return an executor whose pages have few items, as those of large events have."""

    def perform(op: Op) -> Reply:
        if isinstance(op, Query) and items is not None:
            op = replace(op, limit=min(op.limit or items, items))
        return execute(op)

    return perform


def _other(fresh: Callable[[int], bytes]) -> Callable[[int], bytes]:
    return lambda size: fresh(size)[::-1]


def _equinox(store: Streams, tables: Gradual, stream: str, before: int) -> None:
    """As its pruner: calves go, oldest first; then events are cut off the Tip, if nothing was appended meanwhile, under
    a new etag. No mark is left. It does not begin while a calf is being put, which it would overlook.
    """
    items = Query(table="tips", partition=("p", text(stream)), sort=("i", number(0), tip_key(stream)["i"]))
    found = [item for page in store.driver.pages(items) for item in page.items]
    if tables.busy:
        return
    for item in found:
        span = read_span(item)
        if is_tip(item):
            _trim(store, stream, before, span.next)
        elif span.next > before:
            return
        else:
            store.driver.ask(Delete(table="tips", key=calf_key(stream, span.base)))


def _trim(store: Streams, stream: str, before: int, version: int) -> None:
    tip = store.driver.ask(Get(table="tips", key=tip_key(stream))).item
    if tip is None or read_span(tip).next != version:
        return
    span, kept = read_span(tip), read_span(tip).since(before)
    if len(kept.events) < len(span.events):
        lists = (Set("e", sequence(kept.events)), Set("c", sequence(map(text, kept.types))))
        sets = (Set("etag", text(store.fresh(16).hex())), *lists)
        same = equals("etag", tip["etag"])
        store.driver.ask(Update(table="tips", key=tip_key(stream), sets=sets, condition=same))


def replay(seed: int, kind: StreamItems = TIP_ITEMS) -> Holed:
    """Play a seed and check the result; a failure names the seed."""
    return played(Holed(seed, Gradual({kind.spec.kind: kind.spec, ARCHIVE: kind.spec}), kind=kind))
