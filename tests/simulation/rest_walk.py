"""What an indexer makes of the entries that it sees, without an index: batch after batch, as a seed decides."""

from __future__ import annotations

from random import Random

from epochal.index import crowding
from epochal.index.crowding import Crowding
from tests.simulation.rest_rules import RestRules

BATCHES = 60

PRECISION = 1e-9


def walk(seed: int) -> None:
    """Measure batches of a partition that is crowded and calm by turns; an `AssertionError` names the seed.

    Now and then a clock is set back, or an epoch is deleted, which others then begin anew.
    """
    rng, measured, rules = Random(seed), Crowding(), RestRules()
    now = rate = 0.0
    for batch in range(BATCHES):
        if batch % 12 == 0:
            rate = rng.choice((0.0, 0.5, 0.95, 1.3, 3.0)) * crowding.CALM
        seconds = rng.uniform(0.05, 2.0)
        entries, changes = round(rate * seconds), rng.randint(0, 8)
        for part in (entries // 2, entries - entries // 2):
            measured.count_others(part)
            if rng.random() < 1 / 10:
                measured.count_others(-rng.randint(1, 500))
        now += seconds if rng.random() < 0.9 else seconds - rng.choice((seconds * 0.99, 2.0, 500.0))
        measured.measure(now, changes)
        rules.end_batch(now, entries, entries, changes)
        why = f"seed {seed}: after batch {batch} it rests for {measured.rest} s,"
        assert 0 <= measured.rest <= crowding.LONGEST, f"{why} no longer than {crowding.LONGEST} s is allowed"
        assert measured.rest <= rules.most + PRECISION, f"{why} where {rules.most} s are due at most"
        assert measured.rest >= rules.least - PRECISION, f"{why} where {rules.least} s are due at least"
