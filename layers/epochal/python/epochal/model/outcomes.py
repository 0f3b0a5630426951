"""How an append can end. Match on all three: a conflict is an answer, not an accident (DESIGN §5.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from epochal.model.versions import Token


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """Committed, once. Events `first` to `version - 1` are this append's.

    Attributes:
        first: index of the first event (equal to `version` where only unfolds were written).
        version: the stream's next index after this append.
        token: makes the next append one request.
        replayed: an earlier request with the same idempotency key had already done it.
        capacity: what this call consumed, also where an earlier one had done it.
    """

    first: int
    version: int
    token: Token
    replayed: bool = False
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Not committed: the stream is elsewhere than expected. `version` and `token` say where.

    Attributes:
        refused: what came back, where this process was refused: `load(…, refused=conflict)` reads none of it again.
    """

    version: int
    token: Token | None = None
    deleted: bool = False
    refused: Any = field(default=None, compare=False, repr=False)
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Undetermined:
    """A response was lost and the events from index `first` on, which would tell, have been pruned since."""

    first: int
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


Outcome = Appended | Conflict | Undetermined
"""How an append ends. Match on all three."""
