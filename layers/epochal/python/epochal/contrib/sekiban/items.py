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
from epochal.model.bodies import Claim, content_of
from epochal.model.events import Event, Recorded
from epochal.model.kinds import must_be, must_be_whole
from epochal.model.moments import MAX_EXPIRES, Ticks
from epochal.model.positions import Reached
from epochal.model.tags import RANDOM_DIGITS, group_of, is_reserved, make_place
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
"""Place of an event in the order of all events: 19 digits of 100 ns ticks since year 1, then 11 random digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedEvent(Event):
    """An event to append to Sekiban's tables, which keep two more fields than others: the user, and the expiry.

    Attributes:
        executed_user: name or id of the user who caused the event.
        expires: epoch seconds at which DynamoDB may delete the event; the feed still lists its place.
    """

    executed_user: str | None = None
    expires: int | None = None

    def __post_init__(self) -> None:
        """Raise `InvalidInput` unless the fields have valid types and values.

        Raises:
            InvalidInput: a field has a wrong type, or `expires` is out of range.
        """
        super(TaggedEvent, self).__post_init__()  # noqa: UP008  slots
        must_be((str, type(None)), self.executed_user, "executed_user", "text")
        if self.expires is not None:
            must_be_whole(self.expires, "expires", 1, MAX_EXPIRES)

    @classmethod
    def of(cls, event: Event) -> TaggedEvent:
        """Convert any event to an event for Sekiban's tables.

        Args:
            event: event to convert.
        """
        return event if isinstance(event, cls) else cls(**_fields(event))

    def without_foreign_fields(self, field: str) -> Event:
        """Return an event for other stores, with the user in its metadata; raise if they cannot hold it.

        Raises:
            InvalidInput: the event expires, which only events in Sekiban's tables may do, or has a user, and its
                metadata is no JSON object.
        """
        if self.expires is not None:
            raise InvalidInput(
                f"{field}.expires", "must not be given: only Sekiban's tables let events expire"
            )
        if self.executed_user is None:
            return Event(**_fields(self))
        user = {"user": self.executed_user}
        meta = None if isinstance(self.meta, Claim) else json.with_members(self.meta, user)
        if meta is None:
            raise InvalidInput(f"{field}.meta", "must be a JSON object, to which `executed_user` is added")
        return replace(Event(**_fields(self)), meta=meta)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTaggedEvent(Recorded):
    """An event as it is stored in Sekiban's tables; it belongs to tags, and to no stream.

    Attributes:
        executed_user: name or id of the user who caused the event; None for none.
    """

    executed_user: str | None = None

    @property
    def besides(self) -> Mapping[str, str | None]:
        """Fields that Sekiban's tables keep and other stores do not, by their JSON name: the event's user."""
        return {"executedUser": self.executed_user}

    def again(self) -> TaggedEvent:
        """Convert this stored event to one that can be appended to another store."""
        fields = _fields(super(RecordedTaggedEvent, self).again())  # noqa: UP008  likewise
        return TaggedEvent(**fields, executed_user=self.executed_user)

    @property
    def sortable_id(self) -> SortableId:
        """The event's place in the order of all events, as Sekiban's sortable id."""
        return SortableId(self.place)


def _fields(event: Event) -> dict[str, Any]:
    """Return the fields that every event has, by name."""
    return {field.name: getattr(event, field.name) for field in fields(Event)}


def later_than(proposed: str, last: str, random: int) -> str:
    """Return `proposed` if it exceeds `last`, else a sortable id just above `last`.

    The other id has the tick of `last` or the next one. `random` distinguishes it from the ids that writers to other
    tags make after the same `last`.
    """
    if proposed > last:
        return proposed
    moment = int(last[:-RANDOM_DIGITS])
    chosen = make_place(Ticks(moment), random)
    return chosen if chosen > last else make_place(Ticks(moment + 1), random)


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
"""Table of tagged events, one item for each event."""

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
"""Table of tags: the head of each tag, and an entry for each of its events."""

PROJECTION_STATES: Final = TableSpec(
    kind="projection-states", help="States of projections", partition=_PK, sort=_SK
)
"""Table of projection states: one for each version of each projection."""


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
    """Builder of the keys of items in Sekiban's tables for one tenant.

    Attributes:
        service: name of the tenant, which prefixes partition keys; empty for none. It must not contain `#`, `|` and
            `/`, which separate it from the rest of a key: else one tenant's keys could be read as another's.
        shards: number of write shards of the index of all events; may be raised later.
    """

    service: str = ""
    shards: int = 1

    def __post_init__(self) -> None:
        if any(mark in self.service for mark in "#|/"):
            raise InvalidInput("service", "must not contain #, | or /")
        if self.shards < 1:
            raise InvalidInput("shards", "must be at least 1")

    def event(self, event_id: str) -> Key:
        """Return the primary key of an event."""
        return {"pk": text(self._prefixed(f"EVENT#{event_id}")), "sk": text(f"EVENT#{event_id}")}

    def tag(self, tag: str) -> str:
        """Return the partition key of a tag's head and entries."""
        return self._prefixed(f"TAG#{tag}")

    def tag_of(self, partition: str) -> str | None:
        """Return the tag of a partition key, or None if the key is another tenant's or no tag's."""
        before = self.tag("")
        return partition.removeprefix(before) if partition.startswith(before) else None

    def head(self, tag: str) -> Key:
        """Return the primary key of a tag's head."""
        return {"pk": text(self.tag(tag)), "sk": text(HEAD)}

    def entry(self, tag: str, sortable_id: str, event_id: str) -> Key:
        """Return the primary key of a tag's entry for an event."""
        return {"pk": text(self.tag(tag)), "sk": text(f"{sortable_id}#{event_id}")}

    def all_events(self, sortable_id: str) -> str:
        """Return the partition of the index of all events that an event belongs to."""
        if self.shards == 1:
            return self._prefixed(ALL_EVENTS)
        shard = int.from_bytes(hashlib.sha256(sortable_id.encode()).digest()[:4], "big") % self.shards
        return self._prefixed(f"{ALL_EVENTS}#{shard}")

    def every_partition(self) -> list[str]:
        """List the partitions of the index of all events.

        The unsharded one is always among them, for events from before sharding.
        """
        shards = [f"{ALL_EVENTS}#{shard}" for shard in range(self.shards)] if self.shards > 1 else []
        return [self._prefixed(name) for name in [ALL_EVENTS, *shards]]

    def projector(self, name: str) -> str:
        """Return the partition key of a projector's states."""
        return self._prefixed(f"PROJECTOR#{name}")

    def group(self, tag: str) -> str:
        """Return the key under which the index by group lists a tag."""
        return self.in_group(group_of(tag))

    def in_group(self, group: str) -> str:
        """Return the key under which the index by group lists the tags of a group."""
        return f"{self.service}|{group}" if self.service else group

    def _prefixed(self, name: str) -> str:
        """Prefix a partition key with the tenant's name, if there is one."""
        return f"SERVICE#{self.service}#{name}" if self.service else name


@dataclass(frozen=True, slots=True, kw_only=True)
class TagHead:
    """A tag's head: its count and last sortable id, with the event types and ids of its latest append."""

    reached: Reached
    types: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()


def write_event(keys: Keys, event: RecordedTaggedEvent, expires: int | None = None) -> Item:
    """Encode an event as an item, with the epoch seconds at which it expires, if any."""
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
    """Decode an event from its item."""
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
    """Encode an event's data and metadata as item attributes.

    JSON is stored as text, in the attributes of the original library. Other data is stored as bytes, beside a
    `null` payload, which the original library's readers can read.
    """
    data, meta = content_of(event.data), content_of(event.meta)
    payload = _json_text(data)
    attributes = (
        {"payload": text("null"), "data": binary(data)} if payload is None else {"payload": text(payload)}
    )
    if meta:
        as_text = _json_text(meta)
        attributes["meta"] = binary(meta) if as_text is None else text(as_text)
    return attributes


def _json_text(body: bytes) -> str | None:
    """Return a body as text if it is JSON, else None."""
    if body.startswith(json.MARK):
        return None
    try:
        json.loads(body)
        return body.decode()
    except ValueError:
        return None


def _meta(item: Item) -> bytes:
    """Decode an event's metadata from its item, where it may be text or bytes."""
    if "meta" not in item:
        return b""
    data: bytes = item["meta"]["S"].encode() if "S" in item["meta"] else item["meta"]["B"]
    return data


def write_entry(keys: Keys, tag: str, index: int, event: Recorded) -> Item:
    """Encode the entry that makes an event the event number `index` of a tag."""
    item = {
        **keys.entry(tag, event.place, event.id),
        "eventType": text(event.type),
        "eventId": text(event.id),
        "sortableUniqueId": text(event.place),
        "createdAt": text(event.timestamp),
        "tagIndex": number(index),
    }
    if not is_reserved(tag):
        # Keys of the index by group. Entries of reserved tags go without, which keeps these tags out of listings.
        item |= {"tagString": text(tag), "tagGroup": text(keys.group(tag))}
    if keys.service:
        item["serviceId"] = text(keys.service)
    return item


def write_head(keys: Keys, tag: str, before: Reached, events: Sequence[Recorded]) -> Item:
    """Encode a tag's head after an append of `events`, all of this tag."""
    return {
        **keys.head(tag),
        "n": number(before.count + len(events)),
        "a": number(len(events)),
        "c": sequence(text(event.type) for event in events),
        "ids": sequence(text(event.id) for event in events),
        "last": text(events[-1].place),
    }


def read_head(item: Item) -> TagHead:
    """Decode a tag's head from its item."""
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
    """Names of the tables of events and tags, with the builder of their keys."""

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
        """Make the query for a page of a tag's entries between two sort keys.

        Sort keys of entries begin with 30 digits; the `#` of a head sorts below all of them.
        """
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
    """Make the `TagSite` of a deployment's settings: tables, keys, and whether types have heads."""
    chosen = settings.of_plugin(SekibanOptions)
    return TagSite(
        events=settings.table("events"),
        tags=settings.table("tags"),
        keys=Keys(service=chosen.service, shards=chosen.write_shards),
        type_heads=chosen.type_heads,
    )
