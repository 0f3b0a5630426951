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
    """Committed, once. What it tells of a stream is of the one that was named, and 0 where events have tags alone; what
    it tells of tags is empty where events have none.

    Attributes:
        first: index of the first event (equal to `version` where only unfolds were written).
        version: the stream's next index after this append: its events are `first` to `version - 1`.
        token: makes the next append one request.
        events: those with tags, as they are stored.
        position: the condition's, moved past this append; without a condition, where the append is in its tags. Where
            an earlier call had made it (`replayed`), it may still be before it.
        versions: how many events each of their tags has with these, as `ReadModel.wait_for` takes it with the name of
            the tag in the feed. Where it was `replayed`, later ones may be counted in.
        replayed: an earlier call with the same idempotency key, or the same ids, had already done it.
        capacity: what this call consumed, also where an earlier one had done it.
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
    """Not committed: the stream is elsewhere than expected, and `version` and `token` say where; or `events` match the
    condition and are new; or conditions of what was to go with the events are `unmet`.

    Attributes:
        refused: what came back, where this process was refused: `load(…, refused=conflict)` reads none of it again.
        position: has seen these events; where there are `more`, no others.
        unmet: by their place in `also`, the item that stands in the way of each; None where there is none.
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
    """A response was lost and the events from index `first` on, which would tell, have been pruned since."""

    first: int
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


Outcome = Appended | Conflict | Undetermined
"""How an append ends. Match on all three."""
