"""Metadata that a block adds to all events appended within it, and idempotency keys for calls that are repeated.

A block also covers appends in functions that are called within it. It belongs to the thread, or to the asynchronous
task, that entered it (`contextvars`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from uuid import UUID

from epochal.codec import json
from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.bodies import Claim
from epochal.model.events import MAX_ID_BYTES, Event
from epochal.model.kinds import must_be, must_be_text
from epochal.store.encoding import AMBIENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The metadata that a `metadata` block adds to events; an event's own metadata takes precedence.

    Attributes:
        correlation_id: for events that have none; None adds none.
        causation_id: for events that have none; None adds none.
        members: JSON values that the events' `meta` gets as members of an object.
    """

    correlation_id: str | None = None
    causation_id: str | None = None
    members: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, event: Event, /) -> Event:
        """Return an event with the block's metadata added where the event has none of its own.

        Raises:
            InvalidInput: members are to be added, and the event's own `meta` is no JSON object.
        """
        return replace(
            event,
            meta=self._meta(event) if self.members else event.meta,
            correlation_id=self.correlation_id if event.correlation_id is None else event.correlation_id,
            causation_id=self.causation_id if event.causation_id is None else event.causation_id,
        )

    def within(self, outer: Context) -> Context:
        """Combine the metadata of a block with that of the block around it; the inner block takes precedence."""
        return Context(
            correlation_id=self.correlation_id or outer.correlation_id,
            causation_id=self.causation_id or outer.causation_id,
            members={**outer.members, **self.members},
        )

    def _meta(self, event: Event) -> bytes:
        """Return an event's `meta` with the block's members added.

        Raises:
            InvalidInput: the `meta` is no JSON object.
        """
        members = None if isinstance(event.meta, Claim) else json.with_members(event.meta, self.members)
        if members is None:
            rule = f"must be a JSON object, because a `metadata` block adds to it ({event.type})"
            raise InvalidInput("events.meta", rule)
        return members


@contextmanager
def metadata(
    *, correlation_id: str | None = None, causation_id: str | None = None, **members: Any
) -> Iterator[None]:
    """Add metadata to all events of named streams and all tagged events appended in the block.

        with metadata(user="ada", correlation_id=request_id):
            doors.handle("Door-UA1545", board("Ada"))

    Blocks may be nested: an inner block adds to the outer one, and takes precedence over it. An event's own metadata
    takes precedence over both. A call that is repeated under an idempotency key, or with the ids of tagged events, may
    be in a block with other metadata; the stored events keep the first metadata. Aggregates keep no metadata.

    Args:
        correlation_id: correlation id for events that have none, 1 to 1,024 bytes.
        causation_id: causation id for events that have none, 1 to 1,024 bytes.
        members: JSON values, which `meta` gets as members of an object.

    Raises:
        InvalidInput: a value that is not JSON, an id of another length; from appends below, an event whose own `meta`
            is no JSON object.
    """
    for name, value in (("correlation_id", correlation_id), ("causation_id", causation_id)):
        if value is not None:
            must_be_text(value, MAX_ID_BYTES, name)
    for name, value in members.items():
        _check(name, value)
    context = Context(correlation_id=correlation_id, causation_id=causation_id, members=members)
    outer = AMBIENT.get()
    token = AMBIENT.set(context.within(outer) if isinstance(outer, Context) else context)
    try:
        yield
    finally:
        AMBIENT.reset(token)


def _check(name: str, value: Any) -> None:
    """Raise `InvalidInput` unless a metadata value can be written as JSON."""
    try:
        json.dumps(value)
    except (ValueError, TypeError) as error:
        raise InvalidInput(name, f"must be JSON: {error}") from None


def block_of(given: Mapping[str, Any] | None) -> AbstractContextManager[None]:
    """Return the `metadata` block for a call's `metadata=` argument; for None a block without effect.

    Raises:
        InvalidInput: the argument is no mapping with keys of text. Entering the block raises as `metadata` does.
    """
    if given is None:
        return nullcontext()
    must_be(Mapping, given, "metadata", "a mapping")
    for name in given:
        must_be(str, name, "metadata", "a mapping whose keys are text")
    return metadata(**given)


def new_key(prefix: str = "") -> str:
    """Make an idempotency key for one call and its repeats: a prefix and a UUIDv7 of now.

    Make the key just before the first call, and keep it for the repeats. `uuid.uuid7()` of Python 3.14
    makes as good ones; this is for older versions, too. A key has at most 255 characters, of visible ASCII.

    Args:
        prefix: beginning of the key, of visible ASCII; the key must not exceed 255 characters with it.
    """
    milliseconds = time.time_ns() // 1_000_000
    number = milliseconds << 80 | int.from_bytes(os.urandom(10))
    return f"{prefix}{UUID(int=number & ~(0xF << 76 | 0x3 << 62) | 0x7 << 76 | 0x2 << 62)}"
