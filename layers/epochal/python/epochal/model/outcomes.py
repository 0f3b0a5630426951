"""How an append can end: applied, refused, or undetermined.

Match on all three: a conflict is an answer, not an accident (DESIGN §5.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any, Final

from epochal.lazy_dataclasses import dataclass, field
from epochal.model.capacity import NOTHING, Capacity
from epochal.model.positions import Position
from epochal.model.tokens import NO_EVENTS, Token

if TYPE_CHECKING:
    from epochal.model.events import Recorded

_NOWHERE: Final = Position()


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """The result of an append that was applied, exactly once.

    `first`, `version` and `token` are of the stream that the call named, and 0 if it named none, or several. `events`,
    `position` and `versions` are of tags, and empty if the events have none.

    Attributes:
        first: index of the append's first event (equal to `version` if only unfolds were written).
        version: the stream's next index after this append: its events are `first` to `version - 1`.
        token: token of the stream's state after this append; the next append takes one request if it expects this
            token.
        events: the appended events that have tags, as they are stored.
        position: position to pass as `after` to the next append: that of this append's condition, moved on past the
            append; without a condition, the end of the tags of the appended events. If `replayed`, it may be older, and
            the next append may conflict.
        versions: for each tag of the appended events, the number of its events after this append; `ReadModel.wait_for`
            takes it, with the tag's name in the feed. If `replayed`, it may count later events too.
        streams: for an append to several streams, the result of each, by the stream's name.
        replayed: whether an earlier call, with the same idempotency key or the same event ids, had already made this
            append.
        capacity: capacity that this call consumed; if `replayed`, without that of the earlier call.
    """

    first: int = 0
    version: int = 0
    token: Token = NO_EVENTS
    events: tuple[Recorded, ...] = ()
    position: Position = _NOWHERE
    versions: Mapping[str, int] = field(default_factory=dict)
    streams: Mapping[str, Appended] = field(default_factory=dict)
    replayed: bool = False
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedAppend:
    """The head that came with a conflict, the number of refusals in a row, and when the append began.

    Attributes:
        head: the current head (`layout.streams.Head`); None if there is no stream.
        times: number of refusals in a row.
        began: clock reading before the append.
    """

    head: Any
    times: int = 1
    began: float = -inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """The result of an append that wrote nothing: the stream, matching events or `also` conditions did not allow it.

    The stream is not at the expected version, or events that match the condition (`fail_if`) exist, or conditions of
    items in `also` do not hold.

    Attributes:
        version: the stream's next index; 0 if there is no stream.
        token: token of the stream's present state; None if there is no stream, or if the reason is another.
        deleted: whether the stream was deleted, and so takes no more events.
        refused: stored state that came back with the refusal; with `load(…, refused=conflict)` it is not read again.
        events: stored events that match the query of the condition (`fail_if`), in order of their places.
        position: position that includes `events`: pass it as `after` to append again, once these have been taken into
            account.
        more: whether more events match, which neither `events` nor `position` include; query `after` the position to
            read them.
        unmet: stored items whose conditions in `also` do not hold, by the index of the write in `also`; None in place
            of an item that does not exist.
        streams: for an append to several streams, the streams that were found not to be as expected, by name, each with
            its version and token. More streams may differ: the first ones found end the append. Empty if the reason is
            another.
        capacity: capacity that the attempt consumed.
    """

    version: int = 0
    token: Token | None = None
    deleted: bool = False
    refused: RefusedAppend | None = field(default=None, compare=False, repr=False)
    events: tuple[Recorded, ...] = ()
    position: Position = _NOWHERE
    more: bool = False
    unmet: Mapping[int, Mapping[str, Any] | None] = field(default_factory=dict)
    streams: Mapping[str, Conflict] = field(default_factory=dict)
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Undetermined:
    """The result of an append that may or may not be applied: its response was lost, and its events may be pruned.

    The events from index `first` on, which would tell, have been pruned since; for an append to several `streams`, in
    every one of them.

    Attributes:
        first: index of the first event whose content would tell whether the append was applied.
        streams: for an append to several streams, the outcome of each, by the stream's name.
        capacity: capacity that the attempt consumed.
    """

    first: int = 0
    streams: Mapping[str, Undetermined] = field(default_factory=dict)
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


Outcome = Appended | Conflict | Undetermined
"""How an append ends: `Appended`, `Conflict` or `Undetermined`. Match on all three."""
