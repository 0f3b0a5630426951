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
    if refused > 1:
        slowness = min(max(1.0, (driver.clock() - since) / _USUAL), _SLOWEST)
        driver.sleep(slowness * PAUSES.wait(refused - 1, driver.luck()))
    return refused <= _SHORT
