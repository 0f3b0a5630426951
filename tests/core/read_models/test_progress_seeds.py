"""Seeded worlds: each event is folded once, in order, wherever the progress of its stream is.

Documents have the names of streams, are written by others, grow, are deleted and made again. Deliveries come twice,
late and by two writers, with events that are skipped; answers are lost, processes end between requests, and reads
without consistency show each item as it was some writes ago.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from epochal.errors import Contended
from epochal.feed.events import FeedEvent
from epochal.layout.tables import READ_MODELS
from epochal.lazy_dataclasses import replace
from epochal.plan.conditions import Absent
from epochal.plan.ops import Get, Op, Put, Query, Reply
from epochal.plan.values import Item, number, text
from epochal.reactions.definition import Delivery
from epochal.read_models.documents import SMALL, Documents, ReadModel, ReadModels
from epochal.store.driver import Driver, Meter
from tests.core.read_models.failing_writers import FailingWriters, Killed
from tests.support.examples import seeds

STREAMS = [f"S-{number}" for number in range(4)]
EVENTS = 10
STALE = 4
"""Versions of an item that a read without consistency may show."""


def history(luck: Random) -> dict[str, list[FeedEvent]]:
    """Events that change the document of their stream, others, both or none, and some that are skipped."""

    def event(stream: str, index: int) -> FeedEvent:
        if luck.random() < 0.2:
            return FeedEvent(stream=stream, index=index, type="Unread")
        targets = luck.choice([[stream], [stream], [stream, "x"], ["x"], [luck.choice(STREAMS)], []])
        change = {"targets": sorted({*targets}), "pads": luck.random() < 0.1, "deletes": luck.random() < 0.1}
        return FeedEvent(stream=stream, index=index, type="Changed", data=json.dumps(change).encode())

    return {stream: [event(stream, index) for index in range(EVENTS)] for stream in STREAMS}


def fold(documents: Documents, event: FeedEvent) -> None:
    change = json.loads(event.data)
    own = documents.get(event.stream, {"seen": []})["seen"]
    count = sum(name == event.stream for name, *_ in own)
    for key in change["targets"]:
        document = documents.get(key, {"seen": [], "pad": ""})
        pad = "p" * (2 * SMALL) if change["pads"] else document["pad"]
        documents.put(key, {"seen": [*document["seen"], [event.stream, event.index, count]], "pad": pad})
    if change["deletes"]:
        documents.delete(event.stream)


@dataclass
class World(FailingWriters):
    """Writers of one model, on tables whose reads may be late."""

    keys: dict[str, Any] | None = None
    versions: dict[tuple[str, str], list[Item | None]] = field(default_factory=lambda: defaultdict(list))

    def model(self, execute: Callable[[Op], Reply] | None = None) -> ReadModel[Any]:
        driver = Driver(execute=execute or self.tables.execute, meter=Meter(), sleep=lambda _: None)
        return ReadModels(driver=driver, table=READ_MODELS.kind).open("m", 1, keys=self.keys)

    def begin(self) -> None:
        """Give some streams a progress of its own, as earlier versions of the library did."""
        model = self.model()
        for stream in STREAMS:
            if self.luck.random() < 0.2:
                mark = {} if model.keys is None else {"k": text(model.keys.mark)}
                key = {"pk": text(f"m@1#{stream}"), "sk": text("place")}
                item = {**key, "n": number(0), **mark}
                self.tables.execute(Put(table=READ_MODELS.kind, item=item, condition=Absent("n")))
        self.note()

    def note(self) -> None:
        """Note the present version of each item."""
        items = {(each["pk"]["S"], each["sk"]["S"]): each for each in self.tables.items(READ_MODELS.kind)}
        for key in {*items, *self.versions}:
            versions, item = self.versions[key], items.get(key)
            if not versions:
                versions.append(None)
            if versions[-1] != item:
                versions.append(item)

    def late(self, op: Query) -> list[Item]:
        """Return the items of a partition, each as it was some versions ago."""
        pk = op.partition[1]["S"]
        chosen = [
            self.luck.choice(versions[-STALE:]) for key, versions in self.versions.items() if key[0] == pk
        ]
        return [item for item in chosen if item is not None]

    def is_overtaken(self, op: Op, fate: float) -> bool:
        return fate < 0.3 and self.depth < 2 and not isinstance(op, Get | Query)

    def perform(self, op: Op) -> Reply:
        reply = self.tables.execute(op)
        self.note()
        if isinstance(op, Query) and not op.consistent and self.luck.random() < 0.5:
            return replace(reply, items=self.late(op))
        return reply

    def deliver(self) -> None:
        """A part of a stream, from anywhere up to what comes next, by a process of its own."""
        stream = self.luck.choice(STREAMS)
        place = self.model().place(stream) or 0
        first = self.luck.randint(0, place)
        with suppress(Killed, Contended):
            hand_over(
                self.model(self.execute),
                stream,
                self.streams[stream][first : place + self.luck.randint(1, 4)],
            )

    def finish(self) -> None:
        for stream, events in self.streams.items():
            hand_over(self.model(), stream, events)

    def check(self) -> None:
        model = self.model()
        for key in [*STREAMS, "x"]:
            seen = [tuple(each) for each in (model.get(key) or {"seen": []})["seen"]]
            for stream, events in self.streams.items():
                own = [index for name, index, _ in seen if name == stream]
                counts = [count for name, _, count in seen if name == stream]
                assert counts == [len(indices(events[:index], stream)) for index in own]
                assert own == sorted(set(own)), f"{stream} in {key}: {own}"
                expected = indices(events, key)
                # The document of another stream may have been deleted by it, and then lacks the first ones.
                is_complete = key in ("x", stream)
                assert own == expected if is_complete else own == expected[len(expected) - len(own) :]
            if key in self.streams:
                assert model.place(key) == EVENTS


def indices(events: list[FeedEvent], key: str) -> list[int]:
    """The events of a stream that a document should have, since the stream has last deleted it."""
    found: list[int] = []
    for event in events:
        change = json.loads(event.data) if event.data else {"targets": [], "deletes": False}
        found += [event.index] * (key in change["targets"])
        if change["deletes"] and key == event.stream:
            found.clear()
    return found


def hand_over(model: ReadModel[Any], stream: str, events: list[FeedEvent]) -> None:
    """Deliver events as a reaction does that takes one type."""
    if not events:
        return
    own = tuple(event for event in events if event.type == "Changed")
    following = events[-1].index + 1
    delivery = Delivery(group="g", partition=0, stream=stream, events=own, next=following)
    if own:
        model.apply(delivery, fold)
    else:
        model.skip(delivery)


def run(seed: int) -> None:
    world = World(luck=Random(seed), keys={} if seed % 3 == 0 else None)
    world.streams = history(world.luck)
    world.begin()
    for _ in range(40):
        world.deliver()
    world.finish()
    world.check()


@pytest.mark.slow
@seeds(120, 30)
def test_each_event_is_folded_once_and_in_order(seed: int) -> None:
    run(seed)


# Each leaves out a rule; a seed has to find that.


def _place_not_looked_for(self: ReadModel[Any], stream: str, *, consistent: bool) -> Any:
    progress = self._read_progress(stream, consistent=consistent)
    self._check_keys(progress.place or progress.home)
    return progress


def _stale_document_used(self: ReadModel[Any], stream: str, progress: Any) -> Documents:
    return Documents(self._load, {stream: self._document(progress.home)})


def _progress_lost(_: Item | None) -> Item:
    return {}


def _home_not_written(
    self: ReadModel[Any], stream: str, progress: Any, following: int, documents: Documents
) -> bool:
    changes = documents.changes
    if stream in changes or progress.place is not None:
        return COMMIT(self, stream, progress, following, documents)
    moved = self._moved(stream, "place", None, following)
    return self._write([moved, *self._write_changes(changes, 1)])


COMMIT = ReadModel._commit  # noqa: SLF001
MUTANTS: dict[str, tuple[str, Any]] = {
    "a place that a reply lacks is taken for none": ("ReadModel._progress", _place_not_looked_for),
    "a document is used as it was, beside a place": ("ReadModel._documents", _stale_document_used),
    "others who write a document lose its stream's progress": ("_progress_in", _progress_lost),
    "a place is begun without the document's item": ("ReadModel._commit", _home_not_written),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_that_folds_twice_or_not_at_all_is_caught(
    mutant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, function = MUTANTS[mutant]
    monkeypatch.setattr(f"epochal.read_models.documents.{name}", function)
    for seed in range(200):
        try:
            run(seed)
        except (AssertionError, Contended):
            return
    pytest.fail(f"no seed finds that {mutant}")
