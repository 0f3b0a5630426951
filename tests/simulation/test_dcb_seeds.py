"""G1, G2, G3, G5, G11 and G13 for tagged events, everything at once, by seed.

A failing seed is named, and replays exactly: `replay(seed)`.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

from epochal.model.outcomes import Appended
from tests.simulation.dcb_simulation import replay
from tests.simulation.seeds import ranges

SIZE, COUNT = 100, 16


@cache
def met(seed: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for each in replay(seed).history.attempts:
        found[type(each.outcome).__name__] += 1
        found["replayed"] += isinstance(each.outcome, Appended) and each.outcome.replayed
        found["known"] += each.known is not None
    return found


@ranges(SIZE, COUNT)
def test_whatever_happens_conditions_hold_appends_are_made_once_and_every_tag_is_whole(seeds: range) -> None:
    for seed in seeds:
        met(seed)


def test_the_seeds_bring_about_all_that_they_are_meant_to() -> None:
    found = sum(map(met, range(SIZE)), Counter())

    assert found.keys() == {"Appended", "Conflict", "NoneType", "replayed", "known"}
    assert found["replayed"] > SIZE / 20, "hardly any append was made twice"
    assert found["known"] > SIZE, "hardly any position was used"


def test_a_page_backward_waits_for_entries_that_do_not_show_yet() -> None:
    """The page before ended at one of a transaction's entries; those before it showed later."""
    replay(1001)


def test_a_seed_replays_exactly() -> None:
    assert replay(7).world.everything() == replay(7).world.everything()
