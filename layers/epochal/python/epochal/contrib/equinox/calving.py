"""Rules of calving: when events leave a Tip, and whether a calf and its Tip are one transaction.

`ByCost` calves when that is cheapest (`index.calf_costs.calf_pays`), or at limits. `Fixed` calves by bytes and events,
as Equinox does, for tables that Equinox applications write too. For these, calf and Tip are written in one transaction:
there is no overlap then, at twice the price.
"""

from __future__ import annotations

from typing import Literal

from epochal.contrib.equinox import CALVING, TIP_BYTES, EquinoxOptions
from epochal.errors import InvalidInput
from epochal.index.calf_costs import Growth, calf_pays, overflows
from epochal.index.tip import Tip
from epochal.index.tip_append import calve_and_update, uncalved
from epochal.index.tip_writes import put_calf
from epochal.lazy_dataclasses import dataclass
from epochal.model.tokens import Token
from epochal.plan.ops import Done, Overflow, Refusal, Steps, Transact, Update
from epochal.settings import Settings, variable

Mode = Literal["two-step", "transactional"]
"""How events that leave a Tip are written: before the Tip's update, or with it in one transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _InMode:
    """Base of the rules of calving: puts calves in two steps or in one transaction.

    Attributes:
        mode: whether a calf and its Tip are written one after the other, or in one transaction.
    """

    mode: Mode

    def calve(self, table: str, tip: Tip, update: Update) -> Steps[Done | Refusal | Overflow | None]:
        """Put a Tip's events into calves, and update the Tip; return None if the Tip is stale."""
        steps = calve_at_once if self.mode == "transactional" else calve_and_update
        return steps(table, tip, update)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByCost(_InMode):
    """A rule that moves events out of a stream's Tip (its last item) when that is cheaper than to leave them.

    Attributes:
        mode: how events that leave the Tip are written: `two-step` before the Tip's update, `transactional` with it in
            one transaction.
    """

    mode: Mode = "two-step"

    def calves(self, tip: Token, new: Growth) -> bool:
        """Return whether an append first moves the Tip's events out: if that is cheaper, or they do not fit.

        The Tip is the stream's last item; the events move to an item of their own.

        Args:
            tip: token of the stream's state, with the sizes of its Tip.
            new: what the append adds to the Tip.
        """
        return calf_pays(tip, new, factor=2 if self.mode == "transactional" else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed(_InMode):
    """A rule that moves events out of a stream's Tip (its last item) at a fixed limit of their bytes or number.

    Attributes:
        max_bytes: largest number of bytes of events that stay in a Tip.
        max_events: largest number of events that stay in a Tip; None for any number.
        mode: how events that leave the Tip are written: `two-step` before the Tip's update, `transactional` with it in
            one transaction.
    """

    max_bytes: int = TIP_BYTES
    max_events: int | None = None
    mode: Mode = "transactional"

    def calves(self, tip: Token, new: Growth) -> bool:
        """Return whether a Tip with events would exceed the limits by an append, so that they move out first.

        The Tip is the stream's last item; the events move to an item of their own.

        Args:
            tip: token of the stream's state, with the sizes of its Tip.
            new: what the append adds to the Tip.
        """
        if tip.events == 0:
            return False
        if overflows(tip, new) or tip.carried + new.growth > self.max_bytes:
            return True
        return self.max_events is not None and tip.events + new.events > self.max_events


Calving = ByCost | Fixed
"""The rule that decides when events are moved out of a stream's Tip (its last item): by cost, or at fixed limits."""


def calving_of(settings: Settings) -> Calving:
    """Make the rule of calving (`Fixed` or `ByCost`) of a deployment's settings; raise for unknown names.

    If Equinox applications use the table too, calf and Tip are one transaction, and the rule is Equinox's unless
    another is chosen.

    Raises:
        InvalidInput: there is no rule of the name in the settings.
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
    """Put a Tip's events into a calf and update it in one transaction; None if a calf shows it is stale.

    If part of the events are in calves already, the transaction is tried again with the rest.
    """
    rest, doubtful = tip.span, False
    while True:
        writes = (put_calf(table, tip.stream, rest), update) if rest.events else (update,)
        reply: Done | Refusal | Overflow = yield Transact(writes=writes)
        if not isinstance(reply, Refusal):
            return reply
        # Events that are in a calf already may have got there by a transaction of ours whose response was lost.
        doubtful = doubtful or reply.ambiguous
        if reply.failed[-1]:
            return Refusal(items=reply.items[-1:], ambiguous=doubtful)
        remaining = uncalved(reply, rest)
        if remaining is None:
            return None
        rest = remaining
