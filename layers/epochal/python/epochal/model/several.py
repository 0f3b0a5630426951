"""An append to several streams at once, and how it can end: all of it is there, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from epochal.model.events import Event, Recorded, Unfold
from epochal.model.outcomes import NOTHING, Appended, Capacity, Conflict, Undetermined
from epochal.model.versions import ANY, ExpectedVersion, Position


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAppend:
    """An append to one of the streams, with the arguments of `Streams.append`."""

    stream: str
    events: Sequence[Event] = ()
    unfolds: Sequence[Unfold] | None = None
    expected: ExpectedVersion = ANY


@dataclass(frozen=True, slots=True, kw_only=True)
class AllAppended:
    """The append was made, once, in every stream.

    Attributes:
        streams: what each stream got, by its name.
        position, versions: of the tags of all events, as `Appended` has them.
        capacity: what the whole call consumed.
    """

    streams: Mapping[str, Appended]
    position: Position = field(default_factory=Position)
    versions: Mapping[str, int] = field(default_factory=dict)
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflicts:
    """Nothing was written to any stream, for one of the reasons that `Conflict` has.

    Attributes:
        streams: those that were found not to be as expected, each with where it is. Others may be elsewhere, too: what
            is found first ends the append. Empty where the reason is another.
        events, position, more, unmet: as `Conflict` has them.
    """

    streams: Mapping[str, Conflict]
    events: tuple[Recorded, ...] = ()
    position: Position = field(default_factory=Position)
    more: bool = False
    unmet: Mapping[int, Mapping[str, Any] | None] = field(default_factory=dict)
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllUndetermined:
    """A response was lost, and what would tell has been pruned or replaced since, in every stream."""

    streams: Mapping[str, Undetermined]
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


AllOutcome = AllAppended | Conflicts | AllUndetermined
"""How an append to several streams ends. Match on all three."""
