"""G1 to G9 at once, by seed: from the writers of every layout to the handlers of two groups, and all of it to the byte.

A failing seed is named, and replays exactly: `play(seed)`.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

from tests.simulation.seeds import ranges
from tests.simulation.system_checks import play

SIZE, COUNT = 50, 16


@cache
def met(seed: int) -> Counter[str]:
    return play(seed).met


@ranges(SIZE, COUNT)
def test_whatever_was_written_is_handled_by_every_group_and_comes_back_to_the_byte(seeds: range) -> None:
    for seed in seeds:
        met(seed)


def test_the_seeds_bring_about_all_that_they_are_meant_to() -> None:
    found = sum(map(met, range(SIZE)), Counter())
    wanted = {
        "handled",
        "failed in a handler",
        "died in a handler",
        "died reacting",
        "unparked",
        "dead-lettered",
        "given up",
        "split",
        "closed",
        "pruned",
        "told again",
        "untold",
        "left to schedules",
        "woken by notices alone",
    }
    assert wanted <= found.keys(), found


def test_a_seed_replays_to_the_letter() -> None:
    for seed in (1, 2, 3):
        one, two = play(seed), play(seed)
        for table in ("index", "tips", "journal", "tags"):
            assert list(one.tables.items(table)) == list(two.tables.items(table))
        assert [each.group.handled for each in one.consumers] == [
            each.group.handled for each in two.consumers
        ]
