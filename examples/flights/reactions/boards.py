"""Two read models over the flights, each made by a reaction.

    departures    a document for each flight: where it goes, when it is due, and whether it has left
    delays        a document for each airport: landings, and the minutes they came late, early ones taken off

Folds are plain functions of documents and an event, so what the models should hold is computed with the same folds over
a dictionary.

This folder is what is deployed: beside it the functions have the library, and nothing of the demo.
"""

from __future__ import annotations

from collections.abc import Collection
from types import MappingProxyType
from typing import Any, Final, Protocol

from epochal import Delivery, FeedEvent, reaction
from epochal.reactions.definition import Reaction
from epochal.read_models.documents import ReadModel

DEPARTURES: Final = "departures-board"
DELAYS: Final = "airport-delays"

CATEGORIES: Final = ("Aircraft", "Unassigned")
LANDED: Final = "FlightArrived"
STATES: Final = MappingProxyType(
    {
        "FlightScheduled": "scheduled",
        "FlightDeparted": "departed",
        "FlightCancelled": "cancelled",
    }
)


class BrokenScale(Exception):
    """What the delays' handler fails with, on purpose."""


class Writable(Protocol):
    """Documents, of a read model or of a dictionary."""

    def get(self, key: str, default: Any = None) -> Any:
        """A document."""

    def put(self, key: str, value: Any) -> None:
        """Write a document."""


def departures(documents: Writable, event: FeedEvent) -> None:
    """What the board says of the flight that an event is about, which its correlation id names."""
    if event.type not in STATES:
        return
    flight, data = str(event.correlation_id), event.json()
    shown = documents.get(flight, {})
    if event.type == "FlightScheduled":
        shown = {"from": data["origin"], "to": data["dest"], "due": data["sched_dep_time"]}
    if event.type == "FlightDeparted":
        shown = {**shown, "late": data["dep_delay"]}
    documents.put(flight, {**shown, "state": STATES[event.type]})


def delays(documents: Writable, event: FeedEvent) -> None:
    """How late flights come to an airport; landings that are not on record do not count."""
    if event.type != LANDED:
        return
    data = event.json()
    airport, late = data["dest"], data["arr_delay"]
    if late is None:
        return
    known = documents.get(airport, {"landings": 0, "minutes": 0})
    documents.put(airport, {"landings": known["landings"] + 1, "minutes": known["minutes"] + late})


def departures_board(model: ReadModel[Any]) -> Reaction:
    """The reaction that keeps the board."""

    @reaction(name=DEPARTURES, categories=CATEGORIES, types=[*STATES])
    def board(delivery: Delivery) -> None:
        model.apply(delivery, departures)

    return board


def delay_table(model: ReadModel[Any], broken: Collection[str]) -> Reaction:
    """The reaction that keeps the table. It fails on the streams in `broken`, to show what happens then."""

    # Few airports and many aircraft: handled side by side, they would only get in each other's way.
    @reaction(name=DELAYS, categories=CATEGORIES[:1], types=[LANDED], attempts=2, parallel=2)
    def table(delivery: Delivery) -> None:
        if delivery.stream in broken:
            raise BrokenScale(f"the scale for {delivery.stream} is broken")
        model.apply(delivery, delays)

    return table
