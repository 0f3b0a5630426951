"""Remembers a caller's refused appends to a stream, so that its next load waits before it reads.

A program that is refused loads the stream again, decides again, and appends again. If many programs do this at once,
they keep refusing each other, unless those that were refused twice pause (`backing_off`). A caller is a thread, a task
or a greenlet: anything that has its own context variables. Its refusals are remembered for as long as the longest
pause; a caller that loads later has paused long enough. A load always reads the stream; the refusals only determine
how long it waits first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from epochal.model.outcomes import Appended, Conflict, Outcome
from epochal.store.answers import REFUSALS, Refusals, StreamPlace
from epochal.store.backing_off import LONGEST_PAUSE, pause_seconds
from epochal.store.driver import Driver

MOST: Final = 16
"""Largest number of streams whose refusals are remembered for a caller: the streams of one decision are few."""


def count_refusals(driver: Driver, table: str, stream: str) -> int:
    """Return how many appends of the caller to a stream were refused in a row, and remembered."""
    refusals = _current(driver, (driver.place, table, stream))
    return 0 if refusals is None else refusals.times


def note_outcomes(driver: Driver, table: str, outcomes: Mapping[str, Outcome]) -> None:
    """Remember refusals among the outcomes of the caller's appends; forget those of streams appended to."""
    for stream, outcome in outcomes.items():
        place = (driver.place, table, stream)
        if isinstance(outcome, Appended):
            _replace(place, ())
        elif isinstance(outcome, Conflict) and outcome.refused is not None:
            refused, now = outcome.refused, driver.clock()
            _replace(place, (Refusals(place=place, times=refused.times, began=refused.began, refused=now),))


def give_way(driver: Driver, table: str, stream: str) -> int:
    """Wait before a load, if appends of the caller to the stream were refused; return how many in a row.

    Each refusal is waited for once. Time that has passed since then counts.
    """
    place = (driver.place, table, stream)
    refusals = _current(driver, place)
    if refusals is None:
        _replace(place, ())
        return 0
    if not refusals.waited:
        _replace(place, (refusals._replace(waited=True),))
        pause = pause_seconds(refusals.times, refusals.refused - refusals.began, driver.luck())
        driver.rest(pause - (driver.clock() - refusals.refused))
    return refusals.times


def forget_refusals(driver: Driver, table: str, stream: str) -> None:
    """Forget the refusals of a stream, because the conflict that the caller passes determines its wait."""
    _replace((driver.place, table, stream), ())


def _current(driver: Driver, place: StreamPlace) -> Refusals | None:
    """Return the refusals of a stream, unless they are too old to matter."""
    refusals = next((refusals for refusals in REFUSALS.get() if refusals.place == place), None)
    if refusals is None or driver.clock() - refusals.refused > LONGEST_PAUSE:
        return None
    return refusals


def _replace(place: StreamPlace, latest: tuple[Refusals, ...]) -> None:
    """Replace the refusals of a stream; beyond the most, the oldest ones are forgotten."""
    others = tuple(refusals for refusals in REFUSALS.get() if refusals.place != place)
    REFUSALS.set((*latest, *others)[:MOST])
