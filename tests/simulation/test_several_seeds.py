"""G1, G2 and G5 for appends to several streams of pages, on tables whose transactions show item by item."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from epochal.model.outcomes import Appended
from epochal.pages import commit
from epochal.pages.items import STREAMS, read_page
from epochal.plan.failures import RequestNotApplied
from epochal.plan.ops import Done, Op, Refusal, Reply, Steps, Transact
from tests.simulation.exploring import Diary, one_by_one
from tests.simulation.gradual import Gradual
from tests.simulation.mutants import Mutant, Patch, play_all
from tests.simulation.page_actors import TABLE, Rule, ruled_by
from tests.simulation.page_verdicts import never_applied
from tests.simulation.several_explorer import A, Actor, Answer, B, Move, act

SEEDS = 150


@dataclass(slots=True)
class Process:
    """A process in the middle of what it does.

    Attributes:
        acts: what it does, step by step.
        lost: the answer to its request was.
        waits: the answer that it gets.
    """

    actor: Actor
    acts: Callable[[Any, Diary], Steps[Any]] = act
    diary: Diary = field(default_factory=Diary)
    steps: Steps[Any] = field(init=False)
    op: Op = field(init=False)
    lost: bool = False
    waits: Reply | None = None

    def __post_init__(self) -> None:
        self.steps = one_by_one(self.acts(self.actor, self.diary))
        self.op = self.sent(None)

    def sent(self, reply: Reply | None) -> Any:
        """The request that follows a reply. Raises `StopIteration` at its end."""
        with ruled_by(self.actor.rule):
            return self.steps.send(reply)


def play(seed: int) -> int:
    """One history, judged; how many appends were made."""
    luck = random.Random(seed)
    tables = Gradual({TABLE: STREAMS})
    tables.gradually(luck)
    running = [Process(actor) for actor in _actors(luck)]
    made: list[Move] = []
    while running:
        process = luck.choice(running)
        try:
            go_on(process, tables, luck)
        except StopIteration:
            running.remove(process)
            (answer,) = process.diary.answers
            if _written(answer):
                made.append(answer.move)
                _check_shown(seed, answer, tables)
    tables.settle()
    for stream in (A, B):
        found = _rests(tables, stream)
        wanted = [move.batch(stream).rest for move in made if stream in move.streams]
        assert sorted(found) == sorted(wanted), f"seed {seed}: {stream} has other appends than were told of"
    return len(made)


def go_on(process: Process, tables: Gradual, luck: random.Random) -> None:
    """One request, unless it meets a transaction. One of its own is answered once it is carried out, or never."""
    if process.waits is None:
        try:
            reply = tables.execute(process.op)
        except RequestNotApplied:
            return
        if isinstance(process.op, Transact) and not process.lost and luck.random() < 0.3:
            process.lost = True
            return
        process.waits = (
            replace(reply, ambiguous=True) if isinstance(reply, Refusal) and process.lost else reply
        )
    if isinstance(process.op, Transact) and isinstance(process.waits, Done) and tables.under_way(process.op):
        tables.tick()
        return
    reply, process.waits, process.lost = process.waits, None, False
    process.op = process.sent(reply)


def _actors(luck: random.Random) -> list[Actor]:
    """Processes that append once each, some to one stream alone."""
    streams = [(A, B), (B, A), (A,), (B,)]
    return [
        Actor(
            does=(Move(name=f"m{k}", streams=luck.choice(streams), clock=luck.randint(1, 9)),),
            rule=Rule(full=frozenset(luck.sample(range(1, 12), 4))),
        )
        for k in range(5)
    ]


def _written(answer: Answer) -> bool:
    return all(isinstance(each, Appended) for each in answer.told)


def _check_shown(seed: int, answer: Answer, tables: Gradual) -> None:
    """What was told of is there for whoever reads next."""
    for stream in answer.move.streams:
        count = _rests(tables, stream).count(answer.move.batch(stream).rest)
        assert count == 1, f"seed {seed}: told that it was appended, and {stream} shows it {count} times"


def _rests(tables: Gradual, stream: str) -> list[bytes]:
    pages = [read_page(item) for item in tables.items(TABLE)]
    return [frame.stamp[8:] for page in pages if page.stream == stream for frame in page.frames]


def test_what_is_told_of_is_in_every_stream_once_and_shows_at_once() -> None:
    assert sum(map(play, range(SEEDS))) == 5 * SEEDS


# ------------------------------------------------------------------------------------------------------------- mutants


def an_append_that_is_under_way_is_told_of(patch: Patch) -> None:
    def unasked(_: Any) -> Steps[None]:
        yield from ()

    patch.setattr(commit, "settled", unasked)


def a_refused_append_is_not_looked_for(patch: Patch) -> None:
    patch.setattr(commit, "_judge", never_applied)


@pytest.mark.parametrize(
    ("mutant", "found"),
    [
        (an_append_that_is_under_way_is_told_of, "shows it 0 times"),
        (a_refused_append_is_not_looked_for, "2 times"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_rule_left_out_is_found_out(mutant: Mutant, found: str, monkeypatch: Patch) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError, match=found):
        play_all(play, SEEDS)
