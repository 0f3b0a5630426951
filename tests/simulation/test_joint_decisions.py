"""Decisions on two streams at once, by processes that take turns request by request, lose answers and die.

What is in two accounts together is never below nothing, though each withdrawal writes to one of them and only reads the
other. Transfers leave the sum as it is, so whoever only looks sees that sum. What was told of is there once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from epochal.deciders.cache import Cache
from epochal.deciders.loading import ALLOW_LAG, REQUIRE_LOAD, AllowStale
from epochal.deciders.on_streams import handle_all
from epochal.errors import Contended
from epochal.model.outcomes import Appended
from epochal.pages import commit, writes
from epochal.pages.items import STREAMS
from epochal.pages.layout import Pages
from epochal.plan.conditions import Absent, AnyOf, Present
from epochal.plan.ops import Check, Execute, Steps
from epochal.store.streams import Streams
from tests.layouts.deciders.tally import (
    CODEC,
    DECIDER,
    STRATEGIES,
    Added,
    Refused,
    Tallies,
    Tally,
    TallyEvent,
)
from tests.simulation.gradual import Gradual, awaiting
from tests.simulation.mutants import Mutants, Patch
from tests.simulation.page_verdicts import never_applied
from tests.simulation.scheduler import Process, failing, run
from tests.simulation.world import NOON, bytes_of, driver_on

A, B = "Tally-a", "Tally-b"
FIRST = 6
"""What each account has at first."""

SEEDS = 200

TAGGED = replace(CODEC, encode=lambda event: replace(CODEC.encode(event), tags=("money",)))
"""Of half of the worlds: there, what is decided concerns a tag, too."""

ALWAYS = AnyOf((Absent("p"), Present("p")))

MUTANTS = Mutants()
mutant = MUTANTS.add

Both = tuple[Sequence[TallyEvent], Sequence[TallyEvent]]


@dataclass(slots=True)
class World:
    """Two accounts, and what processes were told.

    Attributes:
        told: of each account, what was withdrawn for certain.
        doubtful: and what may have been, by processes that have died.
    """

    seed: int
    tables: Gradual = field(default_factory=lambda: Gradual({"streams": STREAMS}))
    told: int = 0
    doubtful: int = 0

    def tallies(self, name: str, execute: Execute, **options: Any) -> Tallies:
        streams = Streams(
            driver=driver_on(execute),
            table="streams",
            layout=Pages(),
            fresh=bytes_of(f"{self.seed} {name}"),
            now=lambda: NOON,
        )
        return Tallies(
            streams=streams, decider=DECIDER, codec=TAGGED if self.seed % 4 > 1 else CODEC, **options
        )

    def sums(self) -> tuple[int, int]:
        plain = self.tallies("judge", self.tables.execute)
        first, second = (plain.query(stream, lambda state: state.total) for stream in (A, B))
        return first, second


def withdraw(amount: int) -> Callable[[Tally, Tally], Both]:
    def decide(one: Tally, other: Tally) -> Both:
        if amount > one.total + other.total:
            raise Refused(amount)
        return [Added(-amount, one.total - amount)], ()

    return decide


def move(amount: int) -> Callable[[Tally, Tally], Both]:
    def decide(one: Tally, other: Tally) -> Both:
        return [Added(-amount, one.total - amount)], [Added(amount, other.total + amount)]

    return decide


def play(seed: int) -> None:
    """One history, judged."""
    luck, world = random.Random(seed), World(seed)
    first = world.tallies("first", world.tables.execute)
    for stream in (A, B):
        first.handle(stream, decide=lambda _: [Added(FIRST, FIRST)])
    moving = bool(seed % 2)
    world.tables.gradually(luck)
    access = STRATEGIES[luck.choice(("unoptimized", "snapshot"))]

    def body(name: str) -> Callable[[Execute], None]:
        own = random.Random(f"{seed} {name}")

        def act(execute: Execute) -> None:
            cache = Cache() if own.random() < 0.5 else None
            weather = failing(execute, own, 0.04) if seed % 3 else execute
            tallies = world.tallies(name, awaiting(weather, world.tables), access=access, cache=cache)
            for _ in range(3):
                one, other = own.sample((A, B), 2)
                load = own.choice((REQUIRE_LOAD, ALLOW_LAG, AllowStale()))
                parties = (tallies.on(one), tallies.on(other))
                if moving and own.random() < 0.4:
                    outcome = handle_all(parties, lambda *_: ((), ()), load=load)
                    seen = sum(each.state.total for each in outcome.parties)
                    assert seen == 2 * FIRST, f"seed {seed}: one who looked saw {seen}, which never was"
                    continue
                amount = own.randint(1, 5)
                decide = move(amount) if moving else withdraw(amount)
                world.doubtful += amount
                try:
                    handle_all(parties, decide, load=load, attempts=30)
                    world.told += 0 if moving else amount
                except (Refused, Contended):
                    pass
                world.doubtful -= amount

        return act

    processes = {name: Process(name, world.tables.execute, body(name)) for name in "wxyz"}
    run(processes, luck.choice)
    world.tables.settle()
    left = sum(world.sums())
    assert left >= 0, (
        f"seed {seed}: the accounts have {world.sums()}, which nobody who saw both would have left"
    )
    gone = 2 * FIRST - left
    assert gone == 0 if moving else world.told <= gone <= world.told + world.doubtful, (
        f"seed {seed}: {gone} are gone, and {world.told} were told of"
    )


@pytest.mark.parametrize(
    "seeds", [range(25), pytest.param(range(25, SEEDS), marks=pytest.mark.proof)], ids=["some", "all"]
)
def test_what_is_decided_is_decided_on_what_all_streams_were_at_one_moment(seeds: range) -> None:
    for seed in seeds:
        play(seed)


# ------------------------------------------------------------------------------------------------------------- mutants


@mutant("which nobody who saw both", begin=8)
def what_is_only_read_is_not_fenced(patch: Patch) -> None:
    kept = Pages.append_all_on

    def unfenced(self: Pages, table: str, appends: Any, reads: Any, *rest: Any) -> Steps[Any]:
        return (yield from kept(self, table, appends, () if appends else reads, *rest))

    patch.setattr(Pages, "append_all_on", unfenced)


@mutant("which nobody who saw both")
def what_is_only_read_is_not_fenced_where_events_have_tags(patch: Patch) -> None:
    kept = Pages.append_tagged

    def unfenced(self: Pages, *given: Any, **_: Any) -> Steps[Any]:
        return (yield from kept(self, *given))

    patch.setattr(Pages, "append_tagged", unfenced)


@mutant("which never was")
def what_was_read_apart_is_told_as_it_is(patch: Patch) -> None:
    kept = Pages.append_all_on

    def unconfirmed(self: Pages, table: str, appends: Any, reads: Any, *rest: Any) -> Steps[Any]:
        return (yield from kept(self, table, appends, reads, *rest)) if appends else Appended()

    patch.setattr(Pages, "append_all_on", unconfirmed)


@mutant("which never was|which nobody who saw both")
def a_full_page_is_no_fence(patch: Patch) -> None:
    kept = commit.fence
    patch.setattr(writes, "is_full", lambda *_, **__: True)

    def open_only(*about: Any) -> Steps[Any]:
        found = yield from kept(*about)
        return replace(found, condition=ALWAYS) if isinstance(found, Check) else found

    patch.setattr(commit, "fence", open_only)


@mutant("are gone, and")
def a_refused_append_is_not_looked_for(patch: Patch) -> None:
    patch.setattr(commit, "_judge", never_applied)


@pytest.mark.parametrize("name", MUTANTS.names())
def test_the_seeds_find_every_mutant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS.find_out(name, monkeypatch, play, SEEDS)
