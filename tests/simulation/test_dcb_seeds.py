"""G1, G2, G3, G5, G11 and G13 for tagged events, everything at once, by seed.

A failing seed is named, and replays exactly: `replay(seed)`.
"""

from __future__ import annotations

from epochal.model.tagged_results import TaggedAppended
from tests.simulation.dcb_simulation import replay

SEEDS = 600


def test_whatever_happens_conditions_hold_appends_are_made_once_and_every_tag_is_whole() -> None:
    attempts = [attempt for seed in range(SEEDS) for attempt in replay(seed).history.attempts]

    replays = sum(isinstance(each.outcome, TaggedAppended) and each.outcome.replayed for each in attempts)
    assert {type(each.outcome).__name__ for each in attempts} == {
        "TaggedAppended",
        "TaggedConflict",
        "NoneType",
    }
    assert replays > SEEDS / 20, "hardly any append was made twice"
    assert sum(each.known is not None for each in attempts) > SEEDS, "hardly any position was used"


def test_a_seed_replays_exactly() -> None:
    assert replay(7).world.everything() == replay(7).world.everything()
