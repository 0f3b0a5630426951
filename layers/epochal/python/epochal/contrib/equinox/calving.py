"""When a Tip's events go into a calf, and how: when that is cheapest (`index.tip_append.pays`), or at limits.

`Fixed` calves by bytes and events, as Equinox does; for tables that Equinox applications write too. For these, calf and
Tip are written in one transaction: there is no overlap then, at twice the price.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from epochal.contrib.equinox.options import CALVING, TIP_BYTES, EquinoxOptions
from epochal.errors import InvalidInput
from epochal.index.tip import Tip
from epochal.index.tip_append import Append, calve_and_update, overflows, pays, put_calf, uncalved
from epochal.model.versions import Token
from epochal.plan.ops import Done, Overflow, Refusal, Steps, Transact, Update
from epochal.settings import Settings, variable

Mode = Literal["two-step", "transactional"]
"""Whether a calf and its Tip are written one after the other, or in one transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _InMode:
    mode: Mode

    def calve(self, table: str, tip: Tip, update: Update) -> Steps[Done | Refusal | Overflow | None]:
        """Put what the Tip carries into calves, and update it. None: the Tip is stale."""
        steps = calve_at_once if self.mode == "transactional" else calve_and_update
        return steps(table, tip, update)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByCost(_InMode):
    """Calve when that is cheaper than to go on."""

    mode: Mode = "two-step"

    def calves(self, tip: Token, new: Append) -> bool:
        """Whether to calve what the Tip carries before writing `new`."""
        return pays(tip, new, factor=2 if self.mode == "transactional" else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed(_InMode):
    """Calve when the Tip would exceed `max_bytes` of events or `max_events`."""

    max_bytes: int = TIP_BYTES
    max_events: int | None = None
    mode: Mode = "transactional"

    def calves(self, tip: Token, new: Append) -> bool:
        """Whether to calve what the Tip carries before writing `new`."""
        if tip.events == 0:
            return False
        if overflows(tip, new) or tip.carried + new.growth > self.max_bytes:
            return True
        return self.max_events is not None and tip.events + new.events > self.max_events


Calving = ByCost | Fixed
"""When events leave a Tip."""


def calving_of(settings: Settings) -> Calving:
    """What a deployment does. Where Equinox applications use the table too, calf and Tip are one transaction, and the
    rule is theirs unless another is chosen.

    Raises:
        InvalidInput: there is no such rule.
    """
    chosen = settings.of_plugin(EquinoxOptions)
    if chosen.calving not in CALVING:
        raise InvalidInput(variable("calving"), f"must be one of {', '.join(CALVING)}")
    mode: Mode = "transactional" if chosen.equinox else "two-step"
    if chosen.is_fixed:
        most = chosen.calving_max_events or None
        return Fixed(max_bytes=chosen.calving_max_bytes, max_events=most, mode=mode)
    return ByCost(mode=mode)


def calve_at_once(table: str, tip: Tip, update: Update) -> Steps[Done | Refusal | Overflow | None]:
    """The calf and the Tip's update in one transaction. None: the Tip is stale."""
    rest, doubtful = tip.span, False
    while True:
        writes = (put_calf(table, tip.stream, rest), update) if rest.events else (update,)
        reply: Done | Refusal | Overflow = yield Transact(writes=writes)
        if not isinstance(reply, Refusal):
            return reply
        # What is calved already may be so by a transaction of ours whose response was lost.
        doubtful = doubtful or reply.ambiguous
        if reply.failed[-1]:
            return Refusal(items=reply.items[-1:], ambiguous=doubtful)
        left = uncalved(reply, rest)
        if left is None:
            return None
        rest = left
