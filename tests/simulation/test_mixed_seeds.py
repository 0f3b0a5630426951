"""G1, G2, G5 and G11 for appends to streams and tags at once, on tables whose transactions show item by item."""

from __future__ import annotations

import random
from typing import Any

import pytest

from epochal.model.outcomes import Appended
from epochal.model.stream_names import TAG_STREAMS
from epochal.pages import commit
from epochal.pages.items import STREAMS, read_page
from epochal.pages.tags.entries import entries_of
from epochal.plan.ops import Steps
from tests.simulation.gradual import Gradual
from tests.simulation.mixed_explorer import Mixed, Told, act
from tests.simulation.mutants import Mutant, Patch, play_all
from tests.simulation.page_actors import TABLE, Rule
from tests.simulation.page_verdicts import never_applied
from tests.simulation.seeds import ranges
from tests.simulation.several_explorer import A, Actor, B
from tests.simulation.test_several_seeds import Process, go_on

T, U = "t:1", "u:1"


def play(seed: int) -> int:
    """One history, judged; how many appends were made."""
    luck = random.Random(seed)
    tables = Gradual({TABLE: STREAMS})
    tables.gradually(luck)
    running = [Process(actor, acts=act) for actor in _actors(luck)]
    told: list[Told] = []
    while running:
        process = luck.choice(running)
        try:
            go_on(process, tables, luck)
        except StopIteration:
            running.remove(process)
            told += process.diary.answers
            for each in process.diary.answers:
                _check_shown(seed, each, tables)
    tables.settle()
    _check_all(seed, told, tables)
    return sum(map(_made, told))


def _actors(luck: random.Random) -> list[Actor]:
    """Processes that append once each: to streams, tags or both, some as long as a tag has no events."""
    return [
        Actor(
            does=(
                Mixed(
                    name=f"m{k}",
                    streams=luck.choice(((A,), (A, B), (B,))),
                    tags=luck.choice(((), (T,), (U,), (T, U))),
                    fail_if=luck.choice(((), (), (T,), (U,))),
                    events=luck.randint(1, 2),
                    clock=luck.randint(1, 9),
                ),
            ),
            rule=Rule(full=frozenset(luck.sample(range(1, 12), 4))),
        )
        for k in range(5)
    ]


def _made(told: Told) -> bool:
    return bool(told.streams) and all(isinstance(each, Appended) for each in told.streams.values())


def _check_shown(seed: int, told: Told, tables: Gradual) -> None:
    """What was told of is there for whoever reads next; what was refused is nowhere."""
    rest = told.move.batch(A).rest
    for place in told.move.places:
        count = _rests(tables, place).count(rest)
        assert count == _made(told), f"seed {seed}: {place} shows {told.move.name} {count} times"


def _check_all(seed: int, told: list[Told], tables: Gradual) -> None:
    for tag in (T, U):
        alone = [
            each for each in told if _made(each) and {tag} & set(each.move.tags) & set(each.move.fail_if)
        ]
        assert len(alone) <= 1, f"seed {seed}: {len(alone)} were made as the first of {tag}"
    pages = [read_page(item) for item in tables.items(TABLE)]
    stamps = {
        (page.stream, index): stamp
        for page in pages
        for index, stamp in enumerate(
            (frame.stamp for frame in page.frames for _ in range(frame.count)), page.base
        )
    }
    for page in (each for each in pages if each.stream.startswith(TAG_STREAMS)):
        for entry in entries_of(page.span):
            assert entry.label.home is not None
            assert stamps[entry.label.home] == entry.stamp, f"seed {seed}: {entry.label.home} is another's"


def _rests(tables: Gradual, place: str) -> list[bytes]:
    pages = [read_page(item) for item in tables.items(TABLE)]
    return [frame.stamp[8:] for page in pages if page.stream == place for frame in page.frames]


@ranges(150, 20)
def test_what_is_told_of_is_in_its_streams_and_under_its_tags_once_and_shows_at_once(seeds: range) -> None:
    assert 2 * len(seeds) < sum(map(play, seeds)) < 5 * len(seeds)


# ------------------------------------------------------------------------------------------------------------- mutants


def an_append_that_is_under_way_is_told_of(patch: Patch) -> None:
    def unasked(_: Any) -> Steps[None]:
        yield from ()

    patch.setattr(commit, "settled", unasked)


def a_refused_append_is_not_looked_for(patch: Patch) -> None:
    patch.setattr(commit, "_judge", never_applied)


@pytest.mark.parametrize(
    ("mutant", "found"),
    [(an_append_that_is_under_way_is_told_of, "0 times"), (a_refused_append_is_not_looked_for, "times")],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_rule_left_out_is_found_out(mutant: Mutant, found: str, monkeypatch: Patch) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError, match=found):
        play_all(play, 150)
