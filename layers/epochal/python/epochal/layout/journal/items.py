"""Events and snapshots to items and back. This outlives the code: see FORMATS §2 before touching a name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from epochal.errors import CorruptData
from epochal.layout.journal.keys import HEAD, KeyResolver
from epochal.model.aggregates import AggregateId, Lock
from epochal.plan.values import (
    AttributeValue,
    Item,
    binary,
    decodes,
    number,
    read_list,
    read_number,
    read_text,
    text,
)

NO_TTL: Final = 0
"""`ttl` of live snapshots: DynamoDB does not expire it, and older libraries look for it."""


KNOWN_VERSIONS: Final = "JavaScript 2.2.94, Rust 1.3.17, Go 1.0.178, Java 1.2.85"
"""Of the libraries of event-store-adapter, the newest whose items are read here. Others may have been read as well."""

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
        "last_event_types",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEvent:
    """An event as the journal holds it. Other libraries store no `event_type`: their payload may tell it.

    Attributes:
        unknown: attributes of its item that no version known here writes.
    """

    seq_nr: int
    payload: bytes
    occurred_at: str
    event_type: str | None = None
    append_id: bytes | None = None
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateHead:
    """An aggregate's head.

    Attributes:
        version: of the optimistic lock.
        payload: the snapshot.
        last_seq_nr: the last event; None where another library has written since, so that it must be looked up.
        payload_seq_nr: the last event that the payload has folded in; None likewise.
        append_id: of the latest append; None likewise.
        unknown: attributes of its item that no version known here writes.
    """

    aggregate: AggregateId
    version: int
    payload: bytes
    last_seq_nr: int | None
    payload_seq_nr: int | None
    append_id: bytes | None
    unknown: tuple[str, ...] = ()

    @property
    def lock(self) -> Lock | None:
        """What the next append needs; None where the last number must be looked up first."""
        return None if self.last_seq_nr is None else Lock(version=self.version, seq_nr=self.last_seq_nr)


R = TypeVar("R")


def of_known_versions(unknown: Sequence[str], read: Callable[[], R]) -> R:
    """What is read of an item; where it cannot be, and has attributes that are unknown, `CorruptData` names these."""
    try:
        return read()
    except CorruptData as error:
        if not unknown:
            raise
        raise CorruptData(
            f"{error}; it has {', '.join(unknown)} besides, of a version of its library that is newer than those read "
            f"here: {KNOWN_VERSIONS}"
        ) from error


def unknown_in(item: Item) -> tuple[str, ...]:
    """Attributes of an item that no version known here writes."""
    return tuple(sorted(item.keys() - _KNOWN))


def payload_of(content: bytes, *, as_text: bool) -> AttributeValue:
    """A payload as an attribute: bytes, or text as PHP's library has it."""
    return text(content.decode()) if as_text else binary(content)


def write_event(
    keys: KeyResolver, aggregate: AggregateId, event: JournalEvent, *, as_text: bool = False
) -> Item:
    """A journal item."""
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
    """Decode a journal item. `occurred_at` may be a number, as the libraries store it; its digits are kept."""
    return of_known_versions(unknown_in(item), lambda: _event(item))


@decodes("journal")
def _event(item: Item) -> JournalEvent:
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
    """Decode a head; our own attributes count as unknown where another library wrote last."""
    return of_known_versions(unknown_in(item), lambda: _head(item, aggregate))


def _head(item: Item, aggregate: AggregateId) -> AggregateHead:
    version = read_number(item, "version")
    if version is None or "payload" not in item:
        raise CorruptData(f"{aggregate}: its snapshot has no version or no payload")
    if read_text(item, "aid") != str(aggregate):
        raise CorruptData(
            f"{aggregate}: its `aid` is {read_text(item, 'aid')!r}, and would not be found by it"
        )
    ours = read_number(item, "head_version") == version
    return AggregateHead(
        aggregate=aggregate,
        version=version,
        payload=_payload(item),
        last_seq_nr=read_number(item, "last_seq_nr") if ours else None,
        payload_seq_nr=read_number(item, "payload_seq_nr") if ours else None,
        append_id=bytes(item["append_id"]["B"]) if ours and "append_id" in item else None,
        unknown=unknown_in(item),
    )


def write_copy(
    keys: KeyResolver, aggregate: AggregateId, lock: Lock, payload: AttributeValue, now: int
) -> Item:
    """A kept copy of the snapshot that left the head at `lock`."""
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
    """Whether a snapshot item is a head, not a kept copy."""
    return read_number(item, "seq_nr") == HEAD


def head_types(item: Item) -> tuple[str, ...]:
    """Types of the events that the latest append of ours added."""
    return tuple(kind["S"] for kind in read_list(item, "last_event_types"))


def _payload(item: Item) -> bytes:
    """The payload, whether it is stored as bytes or as text."""
    content = item["payload"]
    return bytes(content["B"]) if "B" in content else content["S"].encode()
