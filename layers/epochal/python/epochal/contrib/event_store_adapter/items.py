"""Tables, keys and items of aggregates, as the libraries of event-store-adapter have them (FORMATS §2).

This outlives the code: a change of tables, keys or items needs a migration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from epochal.contrib.event_store_adapter import SHARDS, AdapterOptions
from epochal.contrib.event_store_adapter.hashes import hash_of, javascript
from epochal.contrib.event_store_adapter.ids import UNDECLARED, AggregateId, AggregateTypes, Hash
from epochal.contrib.event_store_adapter.model import Lock
from epochal.contrib.event_store_adapter.serializers import JAVASCRIPT, Serializer, serializer_of
from epochal.errors import CorruptData
from epochal.lazy_dataclasses import dataclass
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
    text,
)
from epochal.settings import Settings, variable

_PKEY = KeyAttribute(name="pkey", type="S")
_SKEY = KeyAttribute(name="skey", type="S")
_AID = KeyAttribute(name="aid", type="S")
_SEQ_NR = KeyAttribute(name="seq_nr", type="N")

JOURNAL: Final = TableSpec(
    kind="journal",
    help="Events of aggregates",
    partition=_PKEY,
    sort=_SKEY,
    indexes=(IndexSpec(name="journal-aid-index", partition=_AID, sort=_SEQ_NR),),
)
"""Events of aggregates, an item each."""

SNAPSHOT: Final = TableSpec(
    kind="snapshot",
    help="Heads of aggregates",
    partition=_PKEY,
    sort=_SKEY,
    indexes=(
        IndexSpec(name="snapshot-aid-index", partition=_AID, sort=_SEQ_NR),
        IndexSpec(
            name="snapshot-active-ttl-index",
            partition=_AID,
            sort=KeyAttribute(name="active_ttl_seq_nr", type="N"),
            keys_only=True,
        ),
    ),
    ttl="ttl",
    stream=True,
)
"""The head of each aggregate (number 0), and kept copies of its snapshots."""


HEAD: Final = 0
"""Number of the head among an aggregate's snapshots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyResolver:
    """Makes the primary keys of aggregates' items, which spread aggregates over shards.

    `pkey` is `<type>-<hash mod shards>`, hashed as the library that shares the tables does. Changing `shards` or `hash`
    makes stored items unreachable: both belong to the tables.

    Attributes:
        shards: number of shards.
        hash: hash function of an aggregate's id.
    """

    shards: int = SHARDS
    hash: Hash = javascript

    def key(self, aggregate: AggregateId, seq_nr: int) -> Key:
        """Return the primary key of an event in the journal, or of a snapshot, by its number."""
        hashed = self.hash(aggregate)
        # The remainder of a negative number is negative, as in all languages that have such hashes.
        shard = hashed % self.shards if hashed >= 0 else -(-hashed % self.shards)
        return {"pkey": text(f"{aggregate.type}-{shard}"), "skey": text(f"{aggregate}-{seq_nr}")}

    def sort_range(
        self, aggregate: AggregateId, low: str, high: str
    ) -> tuple[str, AttributeValue, AttributeValue]:
        """Return the range of sort keys of an aggregate's items from one text of a number to another.

        The range may hold items of other aggregates, whose value begins with this one's. Numbers are unpadded text: 1,
        10, 11, 2.
        """
        return ("skey", text(f"{aggregate}-{low}"), text(f"{aggregate}-{high}"))


NO_TTL: Final = 0
"""`ttl` of live snapshots: DynamoDB does not expire it, and older libraries look for it."""


KNOWN_VERSIONS: Final = "JavaScript 2.2.94, Rust 1.3.17, Go 1.0.178, Java 1.2.85"
"""Newest versions of event-store-adapter's libraries whose items are known to be read. Others may be read as well."""

_KNOWN: Final = frozenset(
    (
        *(
            "pkey",
            "skey",
            "aid",
            "seq_nr",
            "payload",
            "occurred_at",
            "event_type",
            "append_id",
            "version",
            "ttl",
        ),
        *("last_updated_at", "active_ttl_seq_nr", "head_version", "last_seq_nr", "payload_seq_nr"),
        *("last_event_types", "payload_made_with"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEvent:
    """An event as the journal holds it.

    Attributes:
        seq_nr: number of the event in its aggregate.
        payload: type and data, in the form of the site's serializer.
        occurred_at: when the event happened, as it is stored.
        event_type: type of the event; None from other libraries, whose payload may name it.
        append_id: id of the append, on its first event only.
        unknown: names of the item's attributes that no version known here writes.
    """

    seq_nr: int
    payload: bytes
    occurred_at: str
    event_type: str | None = None
    append_id: bytes | None = None
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateHead:
    """An aggregate's head: the snapshot item with number 0, which every append writes.

    Attributes:
        aggregate: id of the aggregate.
        version: version of the optimistic lock.
        payload: payload of the snapshot.
        last_seq_nr: number of the last event; None if another library has written since, so that it must be looked up.
        payload_seq_nr: number of the last event that the payload has folded in; None likewise.
        append_id: id of the latest append; None likewise.
        made_with: class and version that the payload was made with; empty if unknown.
        unknown: names of the item's attributes that no version known here writes.
    """

    aggregate: AggregateId
    version: int
    payload: bytes
    last_seq_nr: int | None
    payload_seq_nr: int | None
    append_id: bytes | None
    made_with: str = ""
    unknown: tuple[str, ...] = ()

    @property
    def lock(self) -> Lock | None:
        """Lock that the next append needs; None if the last number must be looked up first."""
        return None if self.last_seq_nr is None else Lock(version=self.version, seq_nr=self.last_seq_nr)


R = TypeVar("R")


def of_known_versions(unknown: Sequence[str], read: Callable[[], R]) -> R:
    """Call a decoder and return its result; name the item's unknown attributes in its `CorruptData`."""
    try:
        return read()
    except CorruptData as error:
        if not unknown:
            raise
        raise CorruptData(
            f"{error}; it also has {', '.join(unknown)}, from a version of its library newer than those supported "
            f"here: {KNOWN_VERSIONS}"
        ) from error


def unknown_in(item: Item) -> tuple[str, ...]:
    """Return the sorted names of an item's attributes that no version known here writes."""
    return tuple(sorted(item.keys() - _KNOWN))


def payload_of(content: bytes, *, as_text: bool) -> AttributeValue:
    """Return a payload as an attribute: binary, or text as PHP's library stores it."""
    return text(content.decode()) if as_text else binary(content)


def write_event(
    keys: KeyResolver, aggregate: AggregateId, event: JournalEvent, *, as_text: bool = False
) -> Item:
    """Encode an event as an item of the journal."""
    item = {
        **keys.key(aggregate, event.seq_nr),
        "aid": text(str(aggregate)),
        "seq_nr": number(event.seq_nr),
        "payload": payload_of(event.payload, as_text=as_text),
        "occurred_at": text(event.occurred_at),
    }
    if event.event_type is not None:
        item["event_type"] = text(event.event_type)
    if event.append_id is not None:
        item["append_id"] = binary(event.append_id)
    return item


def read_event(item: Item) -> JournalEvent:
    """Decode an item of the journal as an event; raise `CorruptData` if it has another layout.

    `occurred_at` may be a number, as the libraries store it; its digits are kept.

    Raises:
        CorruptData: the item is not of the journal's layout.
    """
    return of_known_versions(unknown_in(item), lambda: _event(item))


@decodes("journal")
def _event(item: Item) -> JournalEvent:
    """Decode an item of the journal as an event, without naming unknown attributes in errors."""
    occurred_at = item.get("occurred_at", {"S": ""})
    return JournalEvent(
        seq_nr=int(item["seq_nr"]["N"]),
        payload=_payload(item),
        occurred_at=occurred_at.get("S") or occurred_at.get("N", ""),
        event_type=read_text(item, "event_type"),
        append_id=bytes(item["append_id"]["B"]) if "append_id" in item else None,
        unknown=unknown_in(item),
    )


def read_head(item: Item, aggregate: AggregateId) -> AggregateHead:
    """Decode an item as an aggregate's head; raise `CorruptData` if it is none, or another aggregate's.

    If another library wrote last, our own attributes count as absent.

    Raises:
        CorruptData: the head has no version or payload, or its `aid` is another aggregate's.
    """
    return of_known_versions(unknown_in(item), lambda: _head(item, aggregate))


def _head(item: Item, aggregate: AggregateId) -> AggregateHead:
    """Decode an item as an aggregate's head, without naming unknown attributes in errors."""
    version = read_number(item, "version")
    if version is None or "payload" not in item:
        raise CorruptData(f"{aggregate}: its snapshot has no version or no payload")
    if read_text(item, "aid") != str(aggregate):
        raise CorruptData(
            f"{aggregate}: its `aid` is {read_text(item, 'aid')!r}, by which it would not be found"
        )
    ours = read_number(item, "head_version") == version
    payload_seq_nr = read_number(item, "payload_seq_nr") if ours else None
    return AggregateHead(
        aggregate=aggregate,
        version=version,
        payload=_payload(item),
        last_seq_nr=read_number(item, "last_seq_nr") if ours else None,
        payload_seq_nr=payload_seq_nr,
        made_with=_made_with(item, payload_seq_nr),
        append_id=bytes(item["append_id"]["B"]) if ours and "append_id" in item else None,
        unknown=unknown_in(item),
    )


def write_made_with(seq_nr: int, made_with: str) -> AttributeValue:
    """Encode what the snapshot of event `seq_nr` was made with, together with that number.

    The number tells when the attribute is out of date: an older program leaves it as it is when it stores another
    snapshot.
    """
    return text(f"{seq_nr} {made_with}")


def _made_with(item: Item, payload_seq_nr: int | None) -> str:
    """Return what the snapshot in a head was made with; empty if unknown or out of date."""
    seq_nr, _, made_with = (read_text(item, "payload_made_with") or "").partition(" ")
    return made_with if seq_nr == str(payload_seq_nr) else ""


def write_copy(
    keys: KeyResolver, aggregate: AggregateId, lock: Lock, payload: AttributeValue, now: int
) -> Item:
    """Encode a kept copy of a snapshot as an item, under the number of its last event.

    Args:
        lock: lock of the head that had the snapshot.
        now: current time in epoch milliseconds.
    """
    return {
        **keys.key(aggregate, lock.seq_nr),
        "aid": text(str(aggregate)),
        "seq_nr": number(lock.seq_nr),
        "payload": payload,
        "version": number(lock.version),
        "ttl": number(NO_TTL),
        "last_updated_at": number(now),
        "active_ttl_seq_nr": number(lock.seq_nr),
    }


def is_head(item: Item) -> bool:
    """Whether a snapshot item is a head, not a kept copy, nor of a newer version, which has other keys."""
    return read_number(item, "seq_nr") == HEAD and "pkey" in item


def head_types(item: Item) -> tuple[str, ...]:
    """Return the types of the events that the latest append of ours added."""
    return tuple(kind["S"] for kind in read_list(item, "last_event_types"))


def _payload(item: Item) -> bytes:
    """Return the bytes of an item's payload, whether it is stored as bytes or as text."""
    content = item["payload"]
    return bytes(content["B"]) if "B" in content else content["S"].encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSite:
    """Tables of aggregates, and how their keys and items are made. All of it belongs to the tables.

    Attributes:
        journal: name of the table of events.
        snapshot: name of the table of heads and copies of snapshots.
        keys: how primary keys are made.
        types: declared types, by which ids are read.
        serializer: how payloads hold types and data.
    """

    journal: str
    snapshot: str
    keys: KeyResolver
    types: AggregateTypes = UNDECLARED
    serializer: Serializer = JAVASCRIPT


def site_of(settings: Settings) -> JournalSite:
    """Make the journal site of a deployment's settings: tables, keys, declared types and serializer."""
    chosen = settings.of_plugin(AdapterOptions)
    return JournalSite(
        journal=settings.table("journal"),
        snapshot=settings.table("snapshot"),
        keys=KeyResolver(
            shards=chosen.journal_shards, hash=hash_of(chosen.journal_keys, variable("journal_keys"))
        ),
        types=AggregateTypes(chosen.aggregate_types),
        serializer=serializer_of(chosen.journal_serializer, variable("journal_serializer")),
    )
