"""Where tags are: each is a stream of pages, named so that no stream of a user's can be it.

$tag-<tag>        events that carry the tag; those without any are in `$tag-`
$tag-$type:<type> events of the type, and
$tag-$all         all events: only where the store was opened for it
$event-<uuid>     i = 0: where the event is whose id a caller chose (s its first tag's stream, n its index)
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from epochal.model.dcb import EVERYTHING, UNTAGGED, type_tag
from epochal.model.names import EVENT_IDS, TAG_STREAMS
from epochal.plan.conditions import Absent
from epochal.plan.ops import Put
from epochal.plan.values import Item, Key, number, text


@dataclass(frozen=True, slots=True, kw_only=True)
class TagStreams:
    """A table of pages, and the reserved tags that have streams there: of types, and of everything."""

    table: str
    type_heads: frozenset[str] = frozenset()

    def tags_of(self, kind: str, tags: Collection[str]) -> tuple[str, ...]:
        """The tags in whose streams an event is; the first of them has its body."""
        own = tuple(sorted(set(tags))) or (UNTAGGED,)
        return (*own, *(each for each in (type_tag(kind), EVERYTHING) if each in self.type_heads))


def reserved_tags(types: Collection[str], *, everything: bool) -> frozenset[str]:
    """The reserved tags of these types, and of everything."""
    return frozenset(map(type_tag, types)) | ({EVERYTHING} if everything else set())


def stream_of(tag: str) -> str:
    """The stream that a tag is."""
    return f"{TAG_STREAMS}{tag}"


def id_key(event_id: str) -> Key:
    """Primary key of the record of an id that a caller chose."""
    return {"p": text(f"{EVENT_IDS}{event_id}"), "i": number(0)}


def id_record(table: str, event_id: str, tag: str, index: int) -> Put:
    """The record, if there is none: an event with an id is appended once."""
    item = {**id_key(event_id), "s": text(stream_of(tag)), "n": number(index)}
    return Put(table=table, item=item, condition=Absent("i"))


def read_id_record(item: Item) -> tuple[str, str, int]:
    """The id, and the stream and the index that its event has there."""
    return item["p"]["S"].removeprefix(EVENT_IDS), item["s"]["S"], int(item["n"]["N"])
