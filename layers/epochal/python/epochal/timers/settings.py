"""What events say about timers: which are pending, by their settings, and what is appended when one fires.

    $timer-set          {"name", "due", "events": [{"type", "data" or "data64", …}]}
    $timer-cancelled    {"name"}
    $timer-fired        {"name", "set": the index of the setting, or its id}

A timer is pending while no cancellation, no firing and no other setting of its name follows its setting.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from epochal.errors import CorruptData, InvalidInput
from epochal.feed.history import FeedEvent
from epochal.model.events import Event, Recorded, Ticks, parse_time, write_json

SET: Final = "$timer-set"
CANCELLED: Final = "$timer-cancelled"
FIRED: Final = "$timer-fired"
TYPES: Final = frozenset({SET, CANCELLED, FIRED})


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTimer:
    """A timer that was set.

    Attributes:
        place: the index of the setting in its stream; under tags alone its id.
        events: to be appended when it is due.
    """

    name: str
    due: Ticks
    place: int | str
    events: tuple[Event, ...]


def read_setting(event: Recorded | FeedEvent, place: int | str) -> SetTimer:
    """What was set by an event. Raises `CorruptData` where it is no setting; other errors where it cannot be read."""
    told = event.json()
    cause = f"{event.stream}@{place}" if isinstance(place, int) else place
    try:
        events = tuple(_event(each, event, cause) for each in told["events"])
        return SetTimer(name=told["name"], due=parse_time(told["due"]), place=place, events=events)
    except (InvalidInput, KeyError, TypeError, ValueError) as error:
        raise CorruptData(f"{cause} sets no timer: {error!r}") from error


def _event(told: Mapping[str, Any], setting: Recorded | FeedEvent, cause: str) -> Event:
    data = base64.b64decode(told["data64"]) if "data64" in told else write_json(told["data"])
    meta = told.get("meta")
    return Event(
        type=told["type"],
        data=data,
        meta=b"" if meta is None else write_json(meta),
        timestamp=told.get("timestamp"),
        correlation_id=told.get("correlation") or setting.correlation_id,
        causation_id=cause,
        tags=tuple(told.get("tags", ())),
    )


def firing(setting: SetTimer, tags: tuple[str, ...] = ()) -> tuple[Event, ...]:
    """What is appended for a timer that is due; `tags` are those under which it was set."""
    told = write_json({"name": setting.name, "set": setting.place})
    return (*setting.events, Event(type=FIRED, data=told, tags=tags))


def pending(events: Iterable[Recorded]) -> tuple[SetTimer, ...]:
    """The timers that are pending after these events; what is malformed among them says nothing."""
    found: dict[str, SetTimer] = {}
    for event in events:
        if event.type not in TYPES:
            continue
        place: int | str = event.index if event.stream else event.id
        try:
            if event.type == SET:
                setting = read_setting(event, place)
                found[setting.name] = setting
                continue
            told = event.json()
            same = found.get(told["name"])
            if same is not None and (event.type == CANCELLED or told["set"] == same.place):
                del found[same.name]
        except (CorruptData, KeyError, TypeError):
            continue
    return tuple(found.values())
