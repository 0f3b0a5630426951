"""Decisions of every kind under keys that several processes use at once, while they take turns request by request, lose
answers and die, and streams are pruned.

Each decision is another one whenever it is made: it draws numbers nobody else has, and how many depends on the state;
none, often, which is decided again.
Of all that was drawn under a key one decision is stored, whole and once, or none; and whoever is answered under that
key is told of that one, as is who asks once everything is over.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

import pytest

from epochal.contrib.equinox.port import TIPS
from epochal.contrib.event_store_adapter.deciders import AggregateDeciders
from epochal.contrib.event_store_adapter.snapshot_policies import every
from epochal.contrib.event_store_adapter.state_codecs import json_state
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.deciders.cache import Cache
from epochal.deciders.codecs import json_codec
from epochal.deciders.loading import ALLOW_LAG, ASSUME_EMPTY, REQUIRE_LOAD, AllowStale, Loader
from epochal.deciders.on_queries import Decisions
from epochal.deciders.on_streams import Decider, handle_all
from epochal.deciders.projections import projection
from epochal.errors import Contended, EventsPruned, OutcomeUndetermined
from epochal.layout import decision_keys
from epochal.layout.streams import AnyStreamLayout
from epochal.model.events import Event
from epochal.model.outcomes import Undetermined
from epochal.model.tags import Query, QueryItem
from epochal.pages.items import STREAMS
from epochal.pages.layout import Pages
from epochal.pages.tags import mixed
from epochal.plan.ops import Execute, Put, Steps
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedStore
from tests.contrib.event_store_adapter.test_deciders import Added as Number
from tests.contrib.event_store_adapter.test_deciders import Sum
from tests.contrib.event_store_adapter.test_deciders import evolve as add_up
from tests.layouts.deciders.tally import CODEC, DECIDER, STRATEGIES, Added, Tallies, Tally
from tests.simulation import dcb_world, tag_world
from tests.simulation.aggregate_simulation import ALICE, SITE
from tests.simulation.aggregate_simulation import Aggregates as AggregateTables
from tests.simulation.dcb_world import piecemeal
from tests.simulation.gradual import Gradual, awaiting
from tests.simulation.mutants import Mutant, Mutants, Patch
from tests.simulation.scheduler import Process, failing, run
from tests.simulation.seeds import ranges
from tests.simulation.world import NOON, SECOND, bytes_of, driver_on, key_of
from tests.support.stream_layouts import WAYS

TAGGED = replace(CODEC, encode=lambda event: replace(CODEC.encode(event), tags=("money",)))
SEEDS = 300
KEYS = ("k", "l")
STREAM, OTHER = "Tally-1", "Tally-2"
ACCESS = ("unoptimized", "latest known event", "snapshot", "multi-snapshot")

MUTANTS = Mutants()
ON: dict[str, str] = {}
"""The kind of decision that each mutant is of."""


def mutant(found: str, *, on: str) -> Callable[[Mutant], Mutant]:
    def register(change: Mutant) -> Mutant:
        ON[change.__name__] = on
        return MUTANTS.add(found)(change)

    return register


Draw = Callable[[int], Sequence[int]]
"""From what a state counts to the numbers that are decided."""

Told = tuple[tuple[int, ...], Any]
"""The numbers that a call was told of, and all else of its answer that must be the same for all."""

GONE = (OutcomeUndetermined, EventsPruned)
"""What may be answered once events are pruned."""


@dataclass(slots=True)
class World:
    """What can be decided on, and how: a subclass for each kind of decision."""

    seed: int
    luck: random.Random
    tables: Gradual
    calls: count[int] = field(default_factory=count, init=False)

    def named(self, name: str) -> str:
        """Whose random bytes nobody has had."""
        return f"{self.seed} {name} {next(self.calls)}"

    def decide(self, name: str, execute: Execute, draw: Draw, key: str | None, luck: random.Random) -> Told:
        """One decision of a process."""
        raise NotImplementedError

    def numbers(self) -> list[int]:
        """All that is stored, or was until it was pruned."""
        raise NotImplementedError

    def prune(self, execute: Execute) -> None:
        """Events may be pruned, by a process of its own."""


@dataclass(slots=True)
class OnStreams(World):
    """One stream in each layout and with each strategy, which may be pruned, with an archive or without."""

    codec: Any = CODEC
    layout: AnyStreamLayout = field(init=False)
    strategy: str = field(init=False)
    pruned: str = field(init=False, default="never")
    caches: dict[str, Cache] = field(default_factory=dict)
    seen: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tagged = self.codec is TAGGED
        self.layout = WAYS["pages"] if tagged else self.luck.choice(list(WAYS.values()))
        self.strategy = self.luck.choice(ACCESS)
        self.pruned = self.luck.choice(("never", "never", "for good", "archived"))

    def streams(self, name: str, execute: Execute) -> Streams:
        streams = Streams(
            driver=driver_on(execute),
            table="t",
            layout=self.layout,
            fresh=bytes_of(self.named(name)),
            now=lambda: NOON,
        )
        return replace(streams, archive=replace(streams, table="a")) if self.pruned == "archived" else streams

    def tallies(self, name: str, execute: Execute) -> Tallies:
        return Tallies(
            streams=self.streams(name, execute),
            decider=DECIDER,
            codec=self.codec,
            access=STRATEGIES[self.strategy],
            cache=self.caches.get(name),
        )

    def decide(self, name: str, execute: Execute, draw: Draw, key: str | None, luck: random.Random) -> Told:
        if luck.random() < 0.3:
            self.caches.setdefault(name, Cache())
        load = luck.choice((REQUIRE_LOAD, ALLOW_LAG, ASSUME_EMPTY, AllowStale()))
        made = replace(self.tallies(name, execute), attempts=30).handle(
            STREAM, decide=lambda state: added(draw, state), load=load, idempotency_key=key
        )
        etag = None if made.token is None else made.token.etag
        return of(made.events), (made.state, made.version, etag)

    def numbers(self) -> list[int]:
        self._look(self.tables.execute)
        return [self.seen[index] for index in sorted(self.seen)]

    def prune(self, execute: Execute) -> None:
        if self.pruned == "never":
            return
        self._look(self.tables.execute)
        reached, streams = max(self.seen, default=-1) + 1, self.streams("pruner", execute)
        streams.archive_and_prune(STREAM, self.luck.randint(0, reached))

    def _look(self, execute: Execute) -> None:
        plain = replace(self.streams("judge", execute), archive=None)
        for event in plain.read(STREAM):
            decoded = CODEC.read(event)
            assert isinstance(decoded, Added)
            assert self.seen.setdefault(event.index, decoded.by) == decoded.by


def added(draw: Draw, state: Tally) -> list[Added]:
    return [Added(number, number) for number in draw(state.total)]


def of(events: Sequence[Any]) -> tuple[int, ...]:
    return tuple(event.by for event in events)


@dataclass(slots=True)
class OnMoments(OnStreams):
    """Under keys that tell a moment: about that of the first append, before it or after."""

    def decide(self, name: str, execute: Execute, draw: Draw, key: str | None, luck: random.Random) -> Told:
        told = key and key_of(key, NOON + (self.seed // 3 % 3 - 1) * SECOND)
        return super(OnMoments, self).decide(name, execute, draw, told, luck)


@dataclass(slots=True)
class OnSeveral(OnStreams):
    """Two streams of pages, of which one may be only read."""

    def __post_init__(self) -> None:
        self.layout, self.pruned = WAYS["pages"], "never"
        self.strategy = self.luck.choice(ACCESS)

    def decide(self, name: str, execute: Execute, draw: Draw, key: str | None, luck: random.Random) -> Told:
        tallies = self.tallies(name, execute)
        one, other = (STREAM, OTHER) if luck.random() < 0.5 else (OTHER, STREAM)

        def both(mine: Tally, theirs: Tally) -> Any:
            by_name = {one: mine, other: theirs}
            events = added(draw, by_name[STREAM])
            half = len(events) // 2 if key == "l" else 0
            by_stream = {STREAM: events[half:], OTHER: events[:half]}
            return by_stream[one], by_stream[other]

        load = luck.choice((REQUIRE_LOAD, ALLOW_LAG, AllowStale()))
        parties = (tallies.on(one), tallies.on(other))
        made = handle_all(parties, both, load=load, attempts=30, idempotency_key=key)
        told = dict(zip((one, other), made.parties, strict=True))
        rest = [
            (each.state, each.version, each.token and each.token.etag) for _, each in sorted(told.items())
        ]
        return of([*told[OTHER].events, *told[STREAM].events]), rest

    def numbers(self) -> list[int]:
        streams, found = self.streams("judge", self.tables.execute), list[int]()
        for stream in (STREAM, OTHER):
            for event in streams.read(stream):
                decoded = CODEC.read(event)
                assert isinstance(decoded, Added)
                found.append(decoded.by)
        return found


@dataclass(slots=True)
class OnStreamAndQuery(OnStreams):
    """A stream whose events carry a tag, and a query of it, which events of another stream match, too."""

    def decide(self, name: str, execute: Execute, draw: Draw, key: str | None, luck: random.Random) -> Told:
        counted = projection(tags=["money"], initial=0, on={"Added": lambda found, _: found + 1})
        tallies = replace(self.tallies(name, execute), attempts=30)
        stream = STREAM if key is not None or luck.random() < 0.5 else OTHER
        made = tallies.handle(
            stream,
            given={"count": counted},
            decide=lambda state, model: [] if model["count"] % 3 == 1 else added(draw, state),
            load=luck.choice((REQUIRE_LOAD, ALLOW_LAG, AllowStale())),
            idempotency_key=key,
        )
        return of(made.events), (made.state, made.version, made.token.etag)

    def numbers(self) -> list[int]:
        elsewhere = self.streams("judge", self.tables.execute).read(OTHER)
        found = [*OnStreams.numbers(self), *(event.by for event in map(CODEC.read, elsewhere))]  # type: ignore[union-attr]
        tagged = self.streams("judge", self.tables.execute).tagged
        count = len(tagged.read(Query(items=(QueryItem(tags=frozenset({"money"})),))).events)
        assert count == len(found), "streams and tag have the same"
        return found


@dataclass(slots=True)
class OnMomentsAndQuery(OnMoments, OnStreamAndQuery):
    """A stream and a query under such keys."""


@dataclass(slots=True)
class OnAggregates(World):
    """One aggregate, with snapshots that are taken more or less often."""

    def deciders(self, name: str, execute: Execute, often: int = 2) -> AggregateDeciders[Any, Sum, Number]:
        store = AggregateStore(
            driver=driver_on(awaiting(piecemeal(execute), self.tables)),
            site=SITE,
            fresh=bytes_of(self.named(name)),
            now=lambda: NOON,
        )
        decider = Decider[Any, Sum, Number](initial=Sum, evolve=add_up, decide=lambda _, __: [])
        return AggregateDeciders(
            store=store,
            decider=decider,
            codec=json_codec(Number),
            state=json_state(Sum),
            policy=every(often),
            attempts=30,
        )

    def decide(self, name: str, execute: Execute, draw: Draw, key: str | None, luck: random.Random) -> Told:
        deciders = self.deciders(name, execute, luck.choice((1, 3, 100)))
        known = deciders.load(ALICE) if luck.random() < 0.3 else None
        made = deciders.handle(
            ALICE, decide=lambda state: list(map(Number, draw(state.count))), known=known, idempotency_key=key
        )
        return tuple(event.number for event in made.events), (made.state, made.standing.lock)

    def numbers(self) -> list[int]:
        deciders = self.deciders("judge", self.tables.execute)
        found = [deciders.codec.read(event) for event in deciders.store.events_after(ALICE)]
        return [event.number for event in found if event is not None]


@dataclass(slots=True)
class OnTags(World):
    """A query on a tag, whose types may leave out what is decided: then only the ids tell."""

    stores: Callable[..., TaggedStore]

    def decide(self, name: str, execute: Execute, draw: Draw, key: str | None, _: random.Random) -> Told:
        counted = projection(tags=["a:1"], on={"Added": lambda total, __: total + 1}, initial=0)
        kind = "Added" if key != "l" else "Other"

        def decide(model: Any) -> list[Event]:
            return [
                Event(type=kind, data=str(number).encode(), tags=("a:1", f"b:{number % 2}"))
                for number in draw(model["count"])
            ]

        store = self.stores(self.named(name), awaiting(piecemeal(execute), self.tables))
        made = Decisions(store=store, attempts=30).handle({"count": counted}, decide, idempotency_key=key)
        ids = [event.id for event in made.events]
        return tuple(int(event.content) for event in made.events), (ids, made.model.states)

    def numbers(self) -> list[int]:
        query = Query(items=(QueryItem(tags=frozenset({"a:1"})),))
        return [int(event.content) for event in self.stores("judge").read(query).events]


def on_streams(seed: int) -> World:
    return OnStreams(seed, random.Random(f"{seed} world"), Gradual({"t": TIPS, "a": TIPS}))


def on_moments(seed: int) -> World:
    codec, table = (TAGGED, STREAMS) if seed % 2 else (CODEC, TIPS)
    return OnMoments(seed, random.Random(f"{seed} world"), Gradual({"t": table, "a": table}), codec)


def on_moments_and_a_query(seed: int) -> World:
    tables = Gradual({"t": STREAMS, "a": STREAMS})
    return OnMomentsAndQuery(seed, random.Random(f"{seed} world"), tables, TAGGED)


def on_several(seed: int) -> World:
    return OnSeveral(seed, random.Random(f"{seed} world"), Gradual({"t": STREAMS}))


def on_a_stream_with_tags(seed: int) -> World:
    return OnStreams(seed, random.Random(f"{seed} world"), Gradual({"t": STREAMS, "a": STREAMS}), TAGGED)


def on_several_with_tags(seed: int) -> World:
    return OnSeveral(seed, random.Random(f"{seed} world"), Gradual({"t": STREAMS}), TAGGED)


def on_a_stream_and_a_query(seed: int) -> World:
    return OnStreamAndQuery(
        seed, random.Random(f"{seed} world"), Gradual({"t": STREAMS, "a": STREAMS}), TAGGED
    )


def on_aggregates(seed: int) -> World:
    return OnAggregates(seed, random.Random(f"{seed} world"), AggregateTables(seed).tables)


def on_tags(seed: int) -> World:
    pages = tag_world.World()
    return OnTags(seed, random.Random(f"{seed} world"), pages.tables, pages.store)


def on_tables_of_tags(seed: int) -> World:
    tables = dcb_world.World()
    return OnTags(seed, random.Random(f"{seed} world"), tables.tables, tables.store)


KINDS: dict[str, Callable[[int], World]] = {
    each.__name__: each
    for each in (
        on_streams,
        on_moments,
        on_moments_and_a_query,
        on_a_stream_with_tags,
        on_several,
        on_several_with_tags,
        on_a_stream_and_a_query,
        on_aggregates,
        on_tags,
        on_tables_of_tags,
    )
}


@dataclass(slots=True)
class Judge:
    """All that was decided under each key, and what was told of it."""

    drawn: dict[str | None, list[tuple[int, ...]]] = field(default_factory=dict)
    told: dict[str, list[Told]] = field(default_factory=dict)
    last: int = 0
    asked: int = 0

    def draw(self, key: str | None) -> Draw:
        def decide(total: int) -> Sequence[int]:
            first = self.last + 1
            self.asked += 1
            self.last += (total + self.asked) % 4
            numbers = tuple(range(first, self.last + 1))
            if numbers:
                self.drawn.setdefault(key, []).append(numbers)
            return numbers

        return decide

    def check(self, numbers: list[int], after: dict[str, Told | None]) -> None:
        assert len(numbers) == len(set(numbers)), "stored twice"
        there = set(numbers)
        for key, decided in self.drawn.items():
            stored = [each for each in decided if there.intersection(each)]
            assert all(there.issuperset(each) for each in stored), "stored in part"
            if key is None:
                continue
            assert len(stored) <= 1, f"one key, yet {len(stored)} decisions are stored"
            again = after.get(key)
            told = [*self.told.get(key, []), *([again] if again is not None and stored else [])]
            assert {each for each, _ in told} <= set(stored), "told of what is not stored"
            assert all(each == told[0] for each in told), "not all were told the same"


def play(kind: str, seed: int) -> None:
    """One history, judged."""
    luck, judge = random.Random(f"{seed} turns"), Judge()
    world = KINDS[kind](seed)
    if seed % 3:
        world.tables.gradually(luck)

    def body(name: str) -> Callable[[Execute], None]:
        own = random.Random(f"{seed} {name}")

        def act(execute: Execute) -> None:
            weather = awaiting(failing(execute, own, 0.04) if seed % 4 else execute, world.tables)
            for _ in range(3):
                key = own.choice((*KEYS, *KEYS, None))
                with suppress(Contended, *GONE):
                    made = world.decide(name, weather, judge.draw(key), key, own)
                    if key is not None and made[0]:
                        judge.told.setdefault(key, []).append(made)
                if own.random() < 0.3:
                    world.prune(weather)

        return act

    processes = {name: Process(name, world.tables.execute, body(name)) for name in "wxyz"}
    try:
        run(processes, luck.choice)
        world.tables.settle()
        numbers, after = world.numbers(), dict[str, Told | None]()
        for key in KEYS:
            before = len(judge.drawn.get(key, []))
            after[key] = None
            with suppress(*GONE):
                found = world.decide("judge", world.tables.execute, judge.draw(key), key, luck)
                # It may be the first under the key.
                after[key] = None if len(judge.drawn.get(key, [])) > before else found
        judge.check(world.numbers(), after)
        assert set(numbers) <= set(world.numbers()), "what was stored is gone"
    except Exception as fault:
        raise AssertionError(f"seed {seed}: {kind}: {type(fault).__name__}: {fault}") from fault


@pytest.mark.parametrize("kind", KINDS)
@ranges(40, SEEDS // 40)
def test_of_all_that_is_decided_under_a_key_one_decision_is_stored_and_told_of(
    kind: str, seeds: range
) -> None:
    for seed in seeds:
        play(kind, seed)


@pytest.mark.parametrize("before", [0, 1, 40])
def test_an_append_whose_keys_show_before_its_events_is_waited_for(before: int) -> None:
    world = tag_world.World()
    for number in range(before):
        body = f'"{random.Random(number).randbytes(200).hex()}"'
        world.store(f"before {number}").append([Event(type="E", data=body.encode(), tags=("a:1",))])
    world.tables.late = lambda write: not isinstance(write, Put) or "s" not in write.item
    new = [
        Event(type="E", data=b"1", tags=("a:1",)),
        Event(type="E", data=b"2", tags=("a:1", "b:1")),
    ]
    made = world.store("writer").append(new, idempotency_key="k")
    assert world.tables.busy
    assert [event.id for event in world.store("reader").appended("k")] == [event.id for event in made.events]


# ------------------------------------------------------------------------------------------------------------- mutants


@mutant("one key|told of what|not all were told", on="on_streams")
def what_is_there_under_the_key_is_not_looked_for_before_deciding(patch: Patch) -> None:
    def begin(*_: Any) -> Steps[decision_keys.KeyUnused]:
        yield from ()
        return decision_keys.KeyUnused()

    patch.setattr(decision_keys, "begin_decision", begin)


@mutant("one key", on="on_streams")
def it_is_not_looked_for_on_what_was_read_after_a_pause(patch: Patch) -> None:
    patch.setattr(Loader, "resume_decision", lambda _self, _key, _before, loaded: loaded)


@mutant("one key", on="on_streams")
def what_was_pruned_was_never_there(patch: Patch) -> None:
    kept = decision_keys._find_decision  # noqa: SLF001  the rule itself

    def made(*given: Any) -> Steps[Any]:
        found = yield from kept(*given)
        return None if isinstance(found, Undetermined) else found

    patch.setattr(decision_keys, "_find_decision", made)


@mutant("one key", on="on_moments")
def every_state_is_as_old_as_the_key(patch: Patch) -> None:
    patch.setattr(Pages, "is_new", staticmethod(lambda _, above: bool(above) or None))


@mutant("told of what", on="on_several")
def a_decision_on_several_is_not_looked_for_before_deciding(patch: Patch) -> None:
    patch.setattr(Streams, "decided_all", lambda *_: None)


@mutant("one key", on="on_several")
def a_decision_on_several_leaves_no_record(patch: Patch) -> None:
    kept = Pages.append_all_on

    def unkeyed(self: Pages, table: str, appends: Any, reads: Any, _: Any, *rest: Any) -> Any:
        return kept(self, table, appends, reads, None, *rest)

    patch.setattr(Pages, "append_all_on", unkeyed)


@mutant("one key", on="on_several_with_tags")
def a_decision_with_tags_leaves_no_record(patch: Patch) -> None:
    kept = mixed.append_mixed

    def unkeyed(site: Any, appends: Any, tagged: Any, condition: Any, _: Any, **rest: Any) -> Any:
        return kept(site, appends, tagged, condition, None, **rest)

    patch.setattr(mixed, "append_mixed", unkeyed)


@mutant("told of what|one key", on="on_a_stream_and_a_query")
def a_decision_on_a_stream_and_a_query_is_not_looked_for_before_deciding(patch: Patch) -> None:
    patch.setattr(Streams, "decided_all", lambda *_: None)


@mutant("told of what", on="on_aggregates")
def a_decision_on_an_aggregate_is_not_looked_for(patch: Patch) -> None:
    patch.setattr(AggregateStore, "decided", lambda *_: None)


@mutant("IdTaken", on="on_tags")
def what_is_in_nobodys_way_is_not_looked_for_by_its_ids(patch: Patch) -> None:
    kept = TaggedStore.appended

    def only_of_the_first_kind(self: TaggedStore, key: str) -> Any:
        return () if key == "l" else kept(self, key)

    patch.setattr(TaggedStore, "appended", only_of_the_first_kind)


@pytest.mark.parametrize("name", MUTANTS.names())
def test_the_seeds_find_every_mutant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS.find_out(name, monkeypatch, partial(play, ON[name]), SEEDS)
