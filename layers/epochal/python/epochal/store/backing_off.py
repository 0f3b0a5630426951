"""Pauses of a writer that was refused, so that other writers can finish."""

from __future__ import annotations

from typing import Final

from epochal.store.driver import Driver, Patience

PAUSES: Final = Patience(first=0.02, longest=0.2)
"""Pauses as long as a few requests to DynamoDB. Longer pauses save few further write units, and make the last writer
wait for seconds."""

_USUAL: Final = 0.01
"""Usual seconds of a refused append, with a read of the page that followed a full one."""

_SLOWEST: Final = 10
"""Largest multiple of the usual seconds by which pauses grow. An append that took longer was lost or throttled, which
tells nothing about the other writers."""

LONGEST_PAUSE: Final = _SLOWEST * PAUSES.longest
"""Seconds of the longest pause."""

_FIRST: Final = 2
"""Number of refusals from which a writer waits."""

_SHORT: Final = 2
"""Number of refusals up to which the head that came back with the conflict is current enough."""


def back_off(driver: Driver, refused: int, since: float) -> bool:
    """Wait longer after each refusal, before deciding again; return whether the head received is usable.

    The pause grows with the duration of the refused append: where requests are slow, other writers need longer, too.

    Args:
        refused: number of refusals in a row.
        since: clock reading before the append that was refused.

    Returns:
        Whether the head that came back with the refusal can be used; else the stream must be read again.
    """
    if refused >= _FIRST:
        driver.sleep(pause_after(refused, driver.clock() - since, driver.luck()))
    return refused <= _SHORT


def pause_after(refused: int, took: float, luck: float) -> float:
    """Return the seconds to wait after so many refusals in a row; 0 after the first one.

    Args:
        refused: number of refusals in a row.
        took: seconds that the last refused append took.
        luck: random number from 0 to 1, which spreads writers out.
    """
    if refused < _FIRST:
        return 0.0
    return min(max(1.0, took / _USUAL), _SLOWEST) * PAUSES.wait(refused - 1, luck)
