"""How decisions that were refused give way to each other.

After its first refusal a decision is made again at once: what came back with the refusal is the newest there is. From
the second on others are there all the time, and a writer that goes on without a pause costs each of them a refused
write. From the third on pauses are so long that what came back is old by then: it is read again after the pause, or the
next append would only be refused once more.
"""

from __future__ import annotations

from typing import Final

from epochal.store.driver import Driver, Patience

PAUSES: Final = Patience(first=0.02, longest=0.2)
"""Some requests to DynamoDB long. Longer ones save few write units more, and let the last writer wait for seconds."""

_USUAL: Final = 0.01
"""Seconds that an append takes which is refused, with a read of what followed a full page."""

_SLOWEST: Final = 10
"""Times that, which pauses grow with. A longer one was lost or throttled, and says nothing of the others."""

_SHORT: Final = 2
"""Refusals after which what came back is as good as the newest."""


def give_way(driver: Driver, refused: int, since: float) -> bool:
    """Wait before a decision that has been refused so often is made again.

    Where requests are slow, so are those of the others: a pause that is short beside a request gives no way.

    Args:
        since: clock reading before the append that was refused.

    Returns:
        Whether what came back with the refusal will do; else the next decision is on what is read now.
    """
    if refused > 1:
        slowness = min(max(1.0, (driver.clock() - since) / _USUAL), _SLOWEST)
        driver.sleep(slowness * PAUSES.wait(refused - 1, driver.luck()))
    return refused <= _SHORT
