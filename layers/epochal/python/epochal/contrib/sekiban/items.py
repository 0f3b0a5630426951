"""Sekiban's tables, and its events, entries and heads as items and back. This outlives the code: see FORMATS §3 before
touching a name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NewType

from epochal.codec import json
from epochal.contrib.sekiban import SekibanOptions
from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, fields, replace
from epochal.model.events import MAX_EXPIRES, Claim, Event, Recorded, Ticks, content_of
from epochal.model.kinds import must_be, must_be_whole
from epochal.model.tags import RANDOM_DIGITS, group_of, is_reserved, place_of
from epochal.model.versions import Reached
from epochal.plan.ops import Query
from epochal.plan.tables import IndexSpec, KeyAttribute, TableSpec
from epochal.plan.values import (
    AttributeValue,
    Item,
    Key,
    binary,
    decodes,
    number,
    read_list,
    read_number,
    read_text,
    sequence,
    text,
)
from epochal.settings import Settings

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
        super(TaggedEvent, self).__post_init__()  # noqa: UP008  slots
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
        known = _fields(super(RecordedTaggedEvent, self).again())  # noqa: UP008  likewise
        return TaggedEvent(**known, executed_user=self.executed_user)

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


_PK = KeyAttribute(name="pk", type="S")
_SK = KeyAttribute(name="sk", type="S")

EVENTS: Final = TableSpec(
    kind="events",
    help="Tagged events",
    partition=_PK,
    sort=_SK,
    indexes=(
        IndexSpec(
            name="GSI1",
            partition=KeyAttribute(name="gsi1pk", type="S"),
            sort=KeyAttribute(name="sortableUniqueId", type="S"),
        ),
    ),
    ttl="ttl",
)
"""Tagged events, an item each."""

TAGS: Final = TableSpec(
    kind="tags",
    help="Heads and entries of tags",
    partition=_PK,
    sort=_SK,
    indexes=(
        IndexSpec(
            name="GSI1",
            partition=KeyAttribute(name="tagGroup", type="S"),
            sort=KeyAttribute(name="tagString", type="S"),
            keys_only=True,
        ),
    ),
    stream=True,
)
"""The head of each tag, and an entry for each of its events."""

PROJECTION_STATES: Final = TableSpec(
    kind="projection-states", help="States of projections", partition=_PK, sort=_SK
)
"""States of projections, one for each version of each."""


HEAD: Final = "#"
"""Sort key of a tag's head: below every entry, whose sort keys begin with a digit."""

ALL_EVENTS: Final = "ALL_EVENTS"

_OPTIONAL: Final = {
    "causationId": "causation_id",
    "correlationId": "correlation_id",
    "executedUser": "executed_user",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """How keys are made.

    Attributes:
        service: tenant, put before partition keys; empty for none. Without `#`, `|` and `/`, which separate it from
            what follows: else one tenant's keys could be read as another's.
        shards: write shards of the index of all events; may be raised later.
    """

    service: str = ""
    shards: int = 1

    def __post_init__(self) -> None:
        if any(mark in self.service for mark in "#|/"):
            raise InvalidInput("service", "must not contain #, | or /")
        if self.shards < 1:
            raise InvalidInput("shards", "must be at least 1")

    def event(self, event_id: str) -> Key:
        """Primary key of an event."""
        return {"pk": text(self._prefixed(f"EVENT#{event_id}")), "sk": text(f"EVENT#{event_id}")}

    def tag(self, tag: str) -> str:
        """Partition key of a tag's head and entries."""
        return self._prefixed(f"TAG#{tag}")

    def tag_of(self, partition: str) -> str | None:
        """The tag whose partition key this is; None where it is another tenant's, or no tag's."""
        before = self.tag("")
        return partition.removeprefix(before) if partition.startswith(before) else None

    def head(self, tag: str) -> Key:
        """Primary key of a tag's head."""
        return {"pk": text(self.tag(tag)), "sk": text(HEAD)}

    def entry(self, tag: str, sortable_id: str, event_id: str) -> Key:
        """Primary key of a tag's entry for an event."""
        return {"pk": text(self.tag(tag)), "sk": text(f"{sortable_id}#{event_id}")}

    def all_events(self, sortable_id: str) -> str:
        """Partition of the index of all events that an event goes to."""
        if self.shards == 1:
            return self._prefixed(ALL_EVENTS)
        shard = int.from_bytes(hashlib.sha256(sortable_id.encode()).digest()[:4], "big") % self.shards
        return self._prefixed(f"{ALL_EVENTS}#{shard}")

    def every_partition(self) -> list[str]:
        """Partitions of the index of all events; the unsharded one too, for events from before sharding."""
        shards = [f"{ALL_EVENTS}#{shard}" for shard in range(self.shards)] if self.shards > 1 else []
        return [self._prefixed(name) for name in [ALL_EVENTS, *shards]]

    def projector(self, name: str) -> str:
        """Partition key of a projector's states."""
        return self._prefixed(f"PROJECTOR#{name}")

    def group(self, tag: str) -> str:
        """What a tag is listed by."""
        return self.in_group(group_of(tag))

    def in_group(self, group: str) -> str:
        """What the tags of a group are listed by."""
        return f"{self.service}|{group}" if self.service else group

    def _prefixed(self, name: str) -> str:
        return f"SERVICE#{self.service}#{name}" if self.service else name


@dataclass(frozen=True, slots=True, kw_only=True)
class TagHead:
    """A tag's head: what it has reached, and the latest append."""

    reached: Reached
    types: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()


def write_event(keys: Keys, event: RecordedTaggedEvent, expires: int | None = None) -> Item:
    """An event item."""
    item: dict[str, AttributeValue] = {
        **keys.event(event.id),
        "eventId": text(event.id),
        "sortableUniqueId": text(event.place),
        "eventType": text(event.type),
        **_bodies(event),
        "tags": sequence(map(text, event.tags)),
        "timestamp": text(event.timestamp),
        "gsi1pk": text(keys.all_events(event.place)),
    }
    for name, attribute in _OPTIONAL.items():
        value = getattr(event, attribute)
        if value is not None:
            item[name] = text(value)
    if expires is not None:
        item["ttl"] = number(expires)
    if keys.service:
        item["serviceId"] = text(keys.service)
    return item


@decodes("dcb")
def read_event(item: Item) -> RecordedTaggedEvent:
    """Decode an event item."""
    optional: dict[str, Any] = {attribute: read_text(item, name) for name, attribute in _OPTIONAL.items()}
    return RecordedTaggedEvent(
        id=item["eventId"]["S"],
        place=item["sortableUniqueId"]["S"],
        type=item["eventType"]["S"],
        data=item["data"]["B"] if "data" in item else item["payload"]["S"].encode(),
        meta=_meta(item),
        tags=tuple(tag["S"] for tag in read_list(item, "tags")),
        timestamp=item["timestamp"]["S"],
        **optional,
    )


def _bodies(event: Recorded) -> dict[str, AttributeValue]:
    """JSON stands as text where the original has it; other bytes beside a `null` there, which its readers can read."""
    data, meta = content_of(event.data), content_of(event.meta)
    payload = _json_text(data)
    found = {"payload": text("null"), "data": binary(data)} if payload is None else {"payload": text(payload)}
    if meta:
        as_text = _json_text(meta)
        found["meta"] = binary(meta) if as_text is None else text(as_text)
    return found


def _json_text(body: bytes) -> str | None:
    """A body as text, if that is JSON."""
    if body.startswith(json.MARK):
        return None
    try:
        json.loads(body)
        return body.decode()
    except ValueError:
        return None


def _meta(item: Item) -> bytes:
    """Metadata, which may be text or bytes."""
    if "meta" not in item:
        return b""
    found: bytes = item["meta"]["S"].encode() if "S" in item["meta"] else item["meta"]["B"]
    return found


def write_entry(keys: Keys, tag: str, index: int, event: Recorded) -> Item:
    """The entry of an event, the tag's event number `index`."""
    item = {
        **keys.entry(tag, event.place, event.id),
        "eventType": text(event.type),
        "eventId": text(event.id),
        "sortableUniqueId": text(event.place),
        "createdAt": text(event.timestamp),
        "tagIndex": number(index),
    }
    if not is_reserved(tag):
        # Keys of the index by group: without them, reserved tags stay out of listings.
        item |= {"tagString": text(tag), "tagGroup": text(keys.group(tag))}
    if keys.service:
        item["serviceId"] = text(keys.service)
    return item


def write_head(keys: Keys, tag: str, before: Reached, events: Sequence[Recorded]) -> Item:
    """The head after an append of `events`, all of this tag."""
    return {
        **keys.head(tag),
        "n": number(before.count + len(events)),
        "a": number(len(events)),
        "c": sequence(text(event.type) for event in events),
        "ids": sequence(text(event.id) for event in events),
        "last": text(events[-1].place),
    }


def read_head(item: Item) -> TagHead:
    """Decode a head."""
    return TagHead(
        reached=Reached(read_number(item, "n") or 0, read_text(item, "last") or ""),
        types=tuple(kind["S"] for kind in read_list(item, "c")),
        ids=tuple(event_id["S"] for event_id in read_list(item, "ids")),
    )


def is_head(item: Item) -> bool:
    """Whether an item of the tags table is a head."""
    return bool(item["sk"]["S"] == HEAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class TagSite:
    """Two tables, and how keys are made."""

    events: str
    tags: str
    keys: Keys
    type_heads: bool = False

    def entries(
        self,
        tag: str,
        lowest: str = "0",
        highest: str = "~",
        *,
        forward: bool = True,
        limit: int | None = None,
        after: Key | None = None,
        consistent: bool = True,
    ) -> Query:
        """A page of a tag's entries between two sort keys. They begin with 30 digits; a head's `#` is below them."""
        return Query(
            table=self.tags,
            partition=("pk", text(self.keys.tag(tag))),
            sort=("sk", text(lowest), text(highest)),
            forward=forward,
            limit=limit,
            after=after,
            consistent=consistent,
        )


def tag_site_of(settings: Settings) -> TagSite:
    """The tables of a deployment."""
    chosen = settings.of_plugin(SekibanOptions)
    return TagSite(
        events=settings.table("events"),
        tags=settings.table("tags"),
        keys=Keys(service=chosen.service, shards=chosen.write_shards),
        type_heads=chosen.type_heads,
    )
