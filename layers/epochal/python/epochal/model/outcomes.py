"""How an append can end. Match on all three: a conflict is an answer, not an accident (DESIGN §5.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from epochal.model.versions import Position, Token

if TYPE_CHECKING:
    from epochal.model.events import Recorded


@dataclass(frozen=True, slots=True)
class Capacity:
    """DynamoDB capacity that a call consumed: with retries and refused writes, without bodies in a bucket.

    Attributes:
        read, write: capacity units, as DynamoDB reports them, secondary indexes included; a store in memory counts
            tables alone. A request whose answer was lost reports none.
        requests: to DynamoDB, whatever became of them.
    """

    read: float = 0.0
    write: float = 0.0
    requests: int = 0


NOTHING: Final = Capacity()


_BEGINNING: Final = Token(version=0)
_NOWHERE: Final = Position()


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """The append was made, once.

    `first`, `version` and `token` are of the stream that the call named, and 0 if the events have tags alone. `events`,
    `position` and `versions` are of tags, and empty if the events have none.

    Attributes:
        first: index of the first event (equal to `version` where only unfolds were written).
        version: the stream's next index after this append: its events are `first` to `version - 1`.
        token: names the stream's state after this append; expecting it makes the next append one request.
        events: the events with tags, as they are stored.
        position: to append `after` next: the position of the condition, with this append; without a condition, of the
            tags of the events. If `replayed`, it may be from before the append.
        versions: how many events each tag of the events has with these; `ReadModel.wait_for` takes it, with the tag's
            name in the feed. If `replayed`, it may count later events too.
        replayed: an earlier call with the same idempotency key, or the same ids, had made the append.
        capacity: what this call consumed, not the earlier one.
    """

    first: int = 0
    version: int = 0
    token: Token = _BEGINNING
    events: tuple[Recorded, ...] = ()
    position: Position = _NOWHERE
    versions: Mapping[str, int] = field(default_factory=dict)
    replayed: bool = False
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Nothing was written, for one of three reasons: the stream is not what was expected; or events that match the
    condition (`fail_if`) are there; or conditions of items in `also` do not hold.

    Attributes:
        version: the stream's next index; 0 where there is no stream.
        token: of the stream as it is; None where there is none, or where the reason is another.
        deleted: the stream was deleted, and takes no more events.
        refused: what came back with the refusal: `load(…, refused=conflict)` reads none of it again.
        events: the events that match, in order of their places.
        position: to append `after` when they have been decided on.
        more: other events match, too, which neither `events` nor `position` include: query `after` the position.
        unmet: the items in the way, by the places of the writes in `also`; None where there is no item.
    """

    version: int = 0
    token: Token | None = None
    deleted: bool = False
    refused: Any = field(default=None, compare=False, repr=False)
    events: tuple[Recorded, ...] = ()
    position: Position = _NOWHERE
    more: bool = False
    unmet: Mapping[int, Mapping[str, Any] | None] = field(default_factory=dict)
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Undetermined:
    """Whether the append was made cannot be known: a response was lost, and the events from index `first` on, which
    would tell, have been pruned since.
    """

    first: int
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


Outcome = Appended | Conflict | Undetermined
"""How an append ends. Match on all three."""
