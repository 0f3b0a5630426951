"""Everything at once, by seed: processes that append, repeat keys, prune, delete and read, under faults and deaths.

Where the enumerations are complete but small, this is large and random. A failing seed is named, and replays exactly:
`replay(seed)`.
"""

from __future__ import annotations

from tests.simulation.stream_simulation import replay

SEEDS = 800


def test_whatever_happens_appends_are_made_once_reads_are_true_and_the_stream_is_whole() -> None:
    kinds = {type(attempt.outcome) for seed in range(SEEDS) for attempt in replay(seed).attempts}

    assert len(kinds) == 5, "appended, conflicts, undetermined, refused for a key, and died"


def test_a_seed_replays_exactly() -> None:
    assert replay(7).world.images() == replay(7).world.images()
