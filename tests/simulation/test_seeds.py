"""Everything at once, by seed: processes that append, repeat keys, prune, delete and read, under faults and deaths.

Where the enumerations are complete but small, this is large and random. A failing seed is named, and replays exactly:
`replay(seed)`.
"""

from __future__ import annotations

from functools import cache

from tests.simulation.seeds import ranges
from tests.simulation.stream_simulation import replay

SIZE, COUNT = 200, 16


@cache
def met(seed: int) -> frozenset[type]:
    return frozenset(type(attempt.outcome) for attempt in replay(seed).attempts)


@ranges(SIZE, COUNT)
def test_whatever_happens_appends_are_made_once_reads_are_true_and_the_stream_is_whole(seeds: range) -> None:
    for seed in seeds:
        met(seed)


def test_the_seeds_bring_about_all_that_they_are_meant_to() -> None:
    kinds = frozenset().union(*map(met, range(SIZE)))
    assert len(kinds) == 5, "appended, conflicts, undetermined, refused for a key, and died"


def test_a_seed_replays_exactly() -> None:
    assert replay(7).world.images() == replay(7).world.images()
