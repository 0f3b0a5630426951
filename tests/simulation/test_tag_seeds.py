"""G1, G2, G3, G5, G11 and G13 for tagged events in pages, everything at once, by seed.

A failing seed is named, and replays exactly: `replay(seed)`.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

from epochal.model.outcomes import Appended
from tests.simulation.seeds import ranges
from tests.simulation.tag_simulation import replay

SIZE, COUNT = 60, 20


@cache
def met(seed: int) -> Counter[str]:
    found: Counter[str] = Counter()
    played = replay(seed)
    for each in played.history.attempts:
        found[type(each.outcome).__name__] += 1
        found["replayed"] += isinstance(each.outcome, Appended) and each.outcome.replayed
        found["known"] += each.known is not None
    chains = played.world.chains().values()
    found["referred"] += any(entry.label.page is not None for chain in chains for entry in chain)
    found["full"] += any("x" in item for item in played.world.everything())
    return found


@ranges(SIZE, COUNT)
def test_whatever_happens_conditions_hold_appends_are_made_once_and_every_tag_is_whole(seeds: range) -> None:
    for seed in seeds:
        met(seed)


def test_the_seeds_bring_about_all_that_they_are_meant_to() -> None:
    found = sum(map(met, range(SIZE)), Counter())

    told = {"Appended", "Conflict", "NoneType", "replayed", "known", "referred", "full"}
    assert found.keys() == told
    assert found["replayed"] > SIZE / 20, "hardly any append was made twice"
    assert found["known"] > SIZE, "hardly any position was used"
    assert found["full"] > SIZE / 4, "hardly any page was full"
    assert found["referred"] > SIZE / 4, "hardly any body was on another page"


def test_a_seed_replays_exactly() -> None:
    assert replay(7).world.everything() == replay(7).world.everything()
