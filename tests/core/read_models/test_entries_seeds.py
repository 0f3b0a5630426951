"""Seeded worlds: deliveries come twice, late and by two writers, answers are lost, processes end between requests, and
a generation is rebuilt beside. After every step the entries are exactly those of the documents, and pages have them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from epochal.errors import Contended
from epochal.feed.events import FeedEvent
from epochal.layout.tables import READ_MODELS
from epochal.plan.ops import Delete, Get, Op, Put, Query, Reply, Transact
from epochal.reactions.definition import Delivery
from epochal.read_models.documents import Documents, ReadModel, ReadModels
from epochal.read_models.keys import ALL, ModelKeys, SecondaryKey, entry_key
from epochal.read_models.value_texts import written
from epochal.store.driver import Driver, Meter
from tests.core.read_models.failing_writers import FailingWriters, Killed
from tests.support.examples import seeds

STREAMS, EVENTS = 4, 12
TOTAL = "total"


def owners(document: Any) -> Any:
    return [(each, document["due"]) for each in document["owners"]] or None


def due(document: Any) -> Any:
    return ("all", document["due"], *document["owners"])


GENERATIONS: dict[int, dict[str, Any]] = {
    1: {"keys": {"owners": owners, "due": SecondaryKey(due, 3, lambda each: each["due"])}, "spread": 2},
    2: {"keys": {"owners": SecondaryKey(owners, 2)}, "holds": lambda each: each["owners"]},
}


def history(luck: Random) -> dict[str, list[FeedEvent]]:
    """Streams of changes to a few documents, which they share."""

    def event(stream: str, index: int) -> FeedEvent:
        change = {
            "put": {
                "due": luck.choice([-1, 0, 2, 10, 1.5]),
                "owners": sorted(luck.sample(["m1", "m10", "m 1", "m!"], luck.randint(0, 3))),
            },
            "of": luck.choice(["a", "a b", "b", "é", "a!"]),
        }
        if luck.random() < 0.3:
            del change["put"]
        return FeedEvent(stream=stream, index=index, type="Changed", data=json.dumps(change).encode())

    names = [f"S-{number}" for number in range(STREAMS)]
    return {name: [event(name, index) for index in range(EVENTS)] for name in names}


def fold(found: Documents, event: FeedEvent) -> None:
    change = json.loads(event.data)
    count = found.get(TOTAL, {"due": 0, "owners": [], "count": 0})
    found.put(TOTAL, {**count, "count": count["count"] + 1})
    if "put" in change:
        found.put(change["of"], change["put"])
    else:
        found.delete(change["of"])


class World(FailingWriters):
    """Two writers of two generations, on one table."""

    def models(self) -> ReadModels:
        driver = Driver(execute=self.execute, meter=Meter(), sleep=lambda _: None)
        return ReadModels(driver=driver, table=READ_MODELS.kind)

    def plain(self, generation: int) -> ReadModel:
        driver = Driver(execute=self.tables.execute, meter=Meter())
        return ReadModels(driver=driver, table=READ_MODELS.kind).open(
            "m", generation, **GENERATIONS[generation]
        )

    def is_overtaken(self, op: Op, fate: float) -> bool:
        return fate < 0.25 and self.depth == 0 and isinstance(op, Transact)

    def perform(self, op: Op) -> Reply:
        reply = self.tables.execute(op)
        if not isinstance(op, Get | Query):
            self.check()
        return reply

    def deliver(self) -> None:
        """A part of a stream, from anywhere up to what comes next, to one generation, by a process of its own."""
        generation, stream = self.luck.choice([1, 2]), self.luck.choice([*self.streams])
        model = self.models().open("m", generation, **GENERATIONS[generation])
        place = self.plain(generation).place(stream) or 0
        first = self.luck.randint(0, place)
        events = tuple(self.streams[stream][first : place + self.luck.randint(1, 5)])
        if events:
            with suppress(Killed, Contended):
                model.apply(Delivery(group="g", partition=0, stream=stream, events=events), fold)

    def finish(self) -> None:
        for generation in GENERATIONS:
            model = self.plain(generation)
            for stream, events in self.streams.items():
                model.apply(Delivery(group="g", partition=0, stream=stream, events=tuple(events)), fold)

    def check(self) -> None:
        items = list(self.tables.items(READ_MODELS.kind))
        for generation, how in GENERATIONS.items():
            made = self.plain(generation)
            wanted = {
                (place["pk"]["S"], place["sk"]["S"]): held
                for place, held in entries_of(made, how, documents(items, generation))
            }
            begins = f"m@{generation}/"
            stored = {
                (each["pk"]["S"], each["sk"]["S"]): each.get("d", {}).get("S")
                for each in items
                if each["pk"]["S"].startswith(begins)
            }
            assert stored == wanted


def documents(items: Any, generation: int) -> dict[str, Any]:
    begins = f"m@{generation}#"
    kept = [each for each in items if each["sk"]["S"] == "document" and "d" in each]
    own = [each for each in kept if each["pk"]["S"].startswith(begins)]
    return {each["pk"]["S"].removeprefix(begins): json.loads(each["d"]["S"]) for each in own}


def entries_of(
    model: ReadModel, how: dict[str, Any], held: dict[str, Any]
) -> Iterator[tuple[Any, str | None]]:
    """What there should be, by the declaration alone."""
    keys = {ALL: SecondaryKey(lambda _: (), how.get("spread", 1), how.get("holds"))}
    for name, key in how["keys"].items():
        keys[name] = key if isinstance(key, SecondaryKey) else SecondaryKey(key)
    for key, document in held.items():
        for name, by in keys.items():
            values = by.of(document)
            for each in values if isinstance(values, list) else [] if values is None else [values]:
                place = entry_key(f"m@{model.generation}", name, by.spread, written(each, ""), key)
                shows = None if by.holds is None else json.dumps(by.holds(document), separators=(",", ":"))
                yield place, shows


def everything(model: ReadModel, *question: Any, limit: int, backward: bool = False) -> list[str]:
    found: list[str] = []
    after = None
    while True:
        how: dict[str, Any] = {"limit": limit, "after": after, "backward": backward}
        page = model.find(*question, **how) if question else model.list(**how)
        found += [each.key for each in page.items]
        after = page.next
        if after is None:
            return found


def run(seed: int) -> World:
    world = World(luck=Random(seed))
    world.streams = history(world.luck)
    for _ in range(25):
        world.deliver()
    world.finish()
    world.check()
    return world


def looked_at(world: World) -> None:
    """Pages and counts say what the documents say, sorted by Python."""
    items = list(world.tables.items(READ_MODELS.kind))
    for generation in GENERATIONS:
        model, held = world.plain(generation), documents(items, generation)
        assert held[TOTAL]["count"] == STREAMS * EVENTS
        limit, backward = world.luck.randint(1, 4), world.luck.random() < 0.5
        wanted = sorted(held, reverse=backward)
        assert everything(model, limit=limit, backward=backward) == wanted
        assert model.count() == len(held)
        for owner in ("m1", "m10", "m 1", "m!"):
            own = sorted((each["due"], key) for key, each in held.items() if owner in each["owners"])
            assert everything(model, "owners", owner, limit=limit) == [key for _, key in own]
            assert model.count("owners", owner, since=0, below=10) == sum(0 <= at < 10 for at, _ in own)
    by_due = sorted((each["due"], each["owners"], key) for key, each in documents(items, 1).items())
    found = everything(world.plain(1), "due", "all", limit=3)
    assert [documents(items, 1)[key]["due"] for key in found] == [at for at, *_ in by_due]


@pytest.mark.slow
@seeds(60, 12)
def test_entries_are_those_of_the_documents_after_every_request(seed: int) -> None:
    looked_at(run(seed))


@pytest.mark.slow
@seeds(30, 6)
def test_pages_read_while_documents_change_miss_and_double_none_that_did_not(seed: int) -> None:
    world = World(luck=Random(seed))
    model = world.plain(1)
    kept = [f"k{number:02}" for number in range(0, 40, 2)]
    others = [f"k{number:02}" for number in range(1, 40, 2)]
    numbers = iter(range(10_000))

    def change(key: str, value: Any, model: ReadModel = model, numbers: Iterator[int] = numbers) -> None:
        event = FeedEvent(stream=f"S-{next(numbers)}", index=0, type="x")
        delivery = Delivery(group="g", partition=0, stream=event.stream, events=(event,))
        model.apply(delivery, lambda all_, _: all_.put(key, value) if value else all_.delete(key))

    for key in kept:
        change(key, {"due": 1, "owners": ["m1"]})
    for question in ((), ("owners", "m1")):
        found: list[str] = []
        after, backward = None, world.luck.random() < 0.5
        while True:
            how: dict[str, Any] = {"limit": 3, "after": after, "backward": backward}
            page = model.find(*question, **how) if question else model.list(**how)
            found += [each.key for each in page.items if each.key in kept]
            after = page.next
            if after is None:
                break
            for _ in range(3):
                value = world.luck.choice([None, {"due": world.luck.choice([0, 1, 2]), "owners": ["m1"]}])
                change(world.luck.choice(others), value)
        assert found == sorted(kept, reverse=backward)


# Each leaves out a rule; a seed has to find that.

MUTANTS: dict[str, Any] = {
    "old entries stay": lambda self, entries: list(_puts(self, entries)),
    "new entries are not written": lambda self, entries: list(_deletes(self, entries)),
}


def _puts(self: ReadModel, entries: Any) -> Iterator[Any]:
    return (Put(table=self.table, item=each) for each in entries.new)


def _deletes(self: ReadModel, entries: Any) -> Iterator[Any]:
    return (Delete(table=self.table, key=each) for each in entries.gone)


def caught() -> bool:
    for seed in range(30):
        try:
            looked_at(run(seed))
        except AssertionError:
            return True
    return False


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_that_leaves_entries_behind_or_out_is_caught(
    mutant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReadModel, "_entry_writes", MUTANTS[mutant])
    assert caught()


def test_a_mutant_that_writes_entries_apart_from_their_document_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = ReadModel._commit  # noqa: SLF001

    def apart(self: ReadModel, *commit: Any) -> bool:
        before = self._entry_writes
        later: list[Any] = []
        monkeypatch.setattr(
            ReadModel, "_entry_writes", lambda _, entries: later.extend(before(entries)) or ()
        )
        done = own(self, *commit)
        monkeypatch.setattr(ReadModel, "_entry_writes", entry_writes)
        for each in later if done else ():
            self.driver.ask(each)
        return done

    entry_writes = ReadModel._entry_writes  # noqa: SLF001
    monkeypatch.setattr(ReadModel, "_commit", apart)
    assert caught()


def test_a_mutant_that_derives_old_entries_anew_is_caught_when_a_function_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another release of the reaction may derive other values: what is stored says which entries there are."""

    def orphans() -> int:
        world = World(luck=Random(1))
        for value in ("x", "y"):
            driver = Driver(execute=world.tables.execute, meter=Meter())
            opened = ReadModels(driver=driver, table=READ_MODELS.kind)
            model = opened.open("m", 1, keys={"by": lambda _, value=value: value})
            event = FeedEvent(stream=f"S-{value}", index=0, type="x")
            model.apply(
                Delivery(group="g", partition=0, stream=event.stream, events=(event,)),
                lambda found, _: found.put("a", 1),
            )
        return model.count("by", "x")

    assert orphans() == 0
    entries = ModelKeys.entries

    def anew(self: ModelKeys, model: str, key: str, item: Any, *change: Any) -> Any:
        made = None if item is None else entries(self, model, key, None, None, change[0])
        stored = None if made is None else {**item, "e": made.values}
        return entries(self, model, key, stored, *change)

    monkeypatch.setattr(ModelKeys, "entries", anew)
    assert orphans() == 1


def test_a_mutant_that_shows_what_an_entry_said_before_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ModelKeys, "_differs", lambda *_: False)
    assert caught()


def test_seeds_kill_throttle_and_lose_answers() -> None:
    world = World(luck=Random(0))
    world.streams = history(world.luck)
    seen: set[str] = set()
    execute = world.execute

    def watched(op: Op) -> Reply:
        try:
            return execute(op)
        except BaseException as error:
            seen.add(type(error).__name__)
            raise

    world.execute = watched  # type: ignore[method-assign]
    for _ in range(60):
        world.deliver()
    assert seen == {"Killed", "RequestNotApplied", "Lost"}
