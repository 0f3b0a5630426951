"""A timer whose events are of the domain, which a codec encodes when the timer is stored."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from epochal.lazy_dataclasses import dataclass, field
from epochal.model.plain_functions import must_be_events


@dataclass(frozen=True, slots=True)
class Later:
    """A timer that a decision sets, with the domain events that are appended when it is due; `later` makes it.

    It stands among the events that `decide` or a process's `react` returns, whose codec encodes its events. A `Later`
    among its events sets the next timer when it fires. It is no event of the domain: no state is folded from it.

    Attributes:
        name: name that identifies the timer in its stream, or under its tags.
        events: events that are appended when the timer is due.
        at: due time: a delay from the moment at which the timer is set, or a moment with a time zone.
        tags: tags of a timer of tagged events; empty for a timer in a stream.
    """

    name: str
    events: Sequence[Any]
    at: timedelta | datetime | str = field(kw_only=True)
    tags: tuple[str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", tuple(must_be_events(self.events, "events")))
