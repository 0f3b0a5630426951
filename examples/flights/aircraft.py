"""An aircraft's snapshot: where it is, how many flights it has made, how long it was in the air and how late it came.

It travels as an unfold with every append to the aircraft's stream, so its state is one request away, and a writer that
meets a conflict goes on from the state that stands there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from functools import reduce
from typing import Any, Final

from epochal.codec import json
from epochal.model.events import Event, Unfold
from examples.flights.happenings import ARRIVED, DEPARTED

SNAPSHOT: Final = "Aircraft"
_TENTH: Final = Decimal("0.1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aircraft:
    """The state.

    Attributes:
        airport: where it landed last; None before its first landing, in the air, and after one that is not on record.
        flights: that have departed.
        minutes: in the air.
        delay: minutes late on arrival, early ones taken off.
    """

    airport: str | None = None
    flights: int = 0
    minutes: int = 0
    delay: int = 0

    @property
    def hours(self) -> Decimal:
        """Time in the air, to the tenth."""
        return (Decimal(self.minutes) / 60).quantize(_TENTH)

    def snapshot(self) -> Unfold:
        """The state as an unfold."""
        fields = {
            "airport": self.airport,
            "flights": self.flights,
            "minutes": self.minutes,
            "hours": self.hours,
            "delay": self.delay,
        }
        return Unfold(type=SNAPSHOT, data=json.dumps(fields))


INITIAL: Final = Aircraft()


def read_snapshot(fields: dict[str, Any]) -> Aircraft:
    """The state that a snapshot holds."""
    return Aircraft(
        airport=fields["airport"],
        flights=fields["flights"],
        minutes=fields["minutes"],
        delay=fields["delay"],
    )


def evolve(state: Aircraft, event: Event) -> Aircraft:
    """The state after an event."""
    if event.type == DEPARTED:
        return replace(state, airport=None, flights=state.flights + 1)
    if event.type != ARRIVED or not isinstance(event.data, bytes):
        return state
    flown = json.loads(event.data)
    # A flight with a landing but no time in the air was diverted first; where it is now is known all the same.
    return replace(
        state,
        airport=None if flown["arr_time"] is None else flown["dest"],
        minutes=state.minutes + (flown["air_time"] or 0),
        delay=state.delay + (flown["arr_delay"] or 0),
    )


def fold(state: Aircraft, events: tuple[Event, ...]) -> Aircraft:
    """The state after some events."""
    return reduce(evolve, events, state)
