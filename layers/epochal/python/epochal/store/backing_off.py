"""Pauses of a writer that decides again after each refusal, so that other writers can finish."""

from __future__ import annotations

from typing import Final

from epochal.layout import giving_way
from epochal.plan.ops import SLOWEST
from epochal.store.driver import Driver

LONGEST_PAUSE: Final = max(giving_way.ROUND_TRIPS) * SLOWEST
"""Seconds of the longest pause."""


def back_off(driver: Driver, refused: int, began: float) -> bool:
    """Wait before deciding again, except after the first refusal; return whether its head is usable.

    The pause grows with the duration of the refused append: where requests are slow, other writers need longer, too.

    Args:
        driver: driver whose clock and sleep are used.
        refused: number of refusals in a row.
        began: clock reading before the append that was refused.

    Returns:
        Whether the head that came back with the refusal can be used; after a pause the stream must be read again.
    """
    seconds = pause_seconds(refused, driver.clock() - began, driver.luck())
    if not seconds:
        return True
    driver.rest(seconds)
    return False


def pause_seconds(refused: int, took: float, luck: float) -> float:
    """Return the seconds to wait after `refused` refusals in a row; 0 after the first one.

    Args:
        refused: number of refusals in a row.
        took: seconds that the last refused append took.
        luck: random number from 0 to 1, which spreads writers out.
    """
    pause = giving_way.pause_after(refused)
    return 0.0 if pause is None else pause.seconds(took, luck)
