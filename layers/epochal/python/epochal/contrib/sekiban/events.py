"""Events in the words of Sekiban's library: what an event there has besides what any event has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NewType

from epochal.codec import json
from epochal.errors import InvalidInput
from epochal.model.events import MAX_EXPIRES, Claim, Event, Recorded, Ticks
from epochal.model.kinds import must_be, must_be_whole
from epochal.model.tags import RANDOM_DIGITS, place_of

SortableId = NewType("SortableId", str)
"""The place of an event: 19 digits of 100 ns ticks since year 1, then 11 digits of randomness."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedEvent(Event):
    """An event to append, with what Sekiban's tables keep besides.

    Attributes:
        executed_user: who did it.
        expires: epoch seconds at which DynamoDB may delete it; its place in the feed stays.
    """

    executed_user: str | None = None
    expires: int | None = None

    def __post_init__(self) -> None:
        """Check the kinds of the fields."""
        super(TaggedEvent, self).__post_init__()
        must_be((str, type(None)), self.executed_user, "executed_user", "text")
        if self.expires is not None:
            must_be_whole(self.expires, "expires", 1, MAX_EXPIRES)

    @classmethod
    def of(cls, event: Event) -> TaggedEvent:
        """Any event as one of Sekiban's tables."""
        return event if isinstance(event, cls) else cls(**_fields(event))

    def plain(self, field: str) -> Event:
        """Its user is a member of its metadata; raises `InvalidInput` where it expires, which nothing else does."""
        if self.expires is not None:
            raise InvalidInput(
                f"{field}.expires", "must not be given: only Sekiban's tables let events expire"
            )
        if self.executed_user is None:
            return Event(**_fields(self))
        user = {"user": self.executed_user}
        meta = None if isinstance(self.meta, Claim) else json.with_members(self.meta, user)
        if meta is None:
            raise InvalidInput(f"{field}.meta", "must be a JSON object, which gets `executed_user`")
        return replace(Event(**_fields(self)), meta=meta)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTaggedEvent(Recorded):
    """An event as Sekiban's tables hold it; in no stream of its own."""

    executed_user: str | None = None

    @property
    def besides(self) -> Mapping[str, str | None]:
        """Its user."""
        return {"executedUser": self.executed_user}

    def again(self) -> TaggedEvent:
        """The event, to append it elsewhere."""
        return TaggedEvent(
            **_fields(super(RecordedTaggedEvent, self).again()), executed_user=self.executed_user
        )

    @property
    def sortable_id(self) -> SortableId:
        """Its place, in Sekiban's words."""
        return SortableId(self.place)


def _fields(event: Event) -> dict[str, Any]:
    """What any event has."""
    return {each.name: getattr(event, each.name) for each in fields(Event)}


def later_than(proposed: str, last: str, random: int) -> str:
    """`proposed`, or where that does not exceed `last`, an id of the moment of `last` or of the tick after it.

    `random` tells it from other ids made after the same `last`, by writers to other tags.
    """
    if proposed > last:
        return proposed
    moment = int(last[:-RANDOM_DIGITS])
    chosen = place_of(Ticks(moment), random)
    return chosen if chosen > last else place_of(Ticks(moment + 1), random)
