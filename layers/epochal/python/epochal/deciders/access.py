"""Access strategies: which events make a state, and what is stored with a decision. They are named after Equinox's.

                        a state is folded from            a decision stores
    UNOPTIMIZED         all events                        its events
    LATEST_KNOWN_EVENT  the latest event that is known    its events
    snapshot            an unfold, and the events since   its events, and the state as an unfold
    multi_snapshot      an unfold, and the events since   its events, and the state as several unfolds
    rolling_state       an unfold                         the state as an unfold, no events
    custom              an unfold or event and the rest   what `transmute` makes of the events and the state

An origin is an event, or an unfold, at which a fold can begin whatever events precede it: a snapshot, a reset. The
codec and `evolve` treat unfolds as events. If a stream has no unfold that is an origin, its events are read backward up
to an origin or the first event, so the strategy can be changed without changing what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar

from epochal.deciders.snapshot_marks import check_version
from epochal.lazy_dataclasses import dataclass
from epochal.model.kinds import must_be
from epochal.model.plain_functions import must_be_done, must_be_plain

S = TypeVar("S")
E = TypeVar("E")


Transmuted = tuple[Sequence[E], Sequence[E] | None]
"""What a decision stores: events to append, and unfolds to replace the stored ones (None keeps the stored ones)."""


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class Access(Generic[S, E]):
    """An access strategy: which events make a state, and what a decision stores; this module's functions build them.

    Attributes:
        transmute: function that returns the events and unfolds that a decision stores, from the events decided and the
            state after them.
        unfold_is_origin: function that returns whether a state can be folded from this unfold on, without the events
            before it.
        event_is_origin: function that returns whether a state can be folded from this event on, without earlier ones;
            None if only the stream's first event can begin it, so that events are read forward.
        state_in_unfolds: whether the state can be made only from an unfold, not from events alone. A load then fails if
            there are unfolds, but none that a fold can begin with.
        version: version of the fold. Snapshots of another version are out of date, and events are used instead.
        trust_unmarked: whether to use also snapshots that carry no mark of the class and version that they were made
            with.
    """

    transmute: Callable[[Sequence[E], S], Transmuted[E]]
    unfold_is_origin: Callable[[E], bool]
    event_is_origin: Callable[[E], bool] | None = None
    state_in_unfolds: bool = False
    version: str = ""
    trust_unmarked: bool = False

    @property
    def every_event_counts(self) -> bool:
        """Whether a state needs all events of its stream, or all since a state that is already known."""
        return self.unfold_is_origin is never and self.event_is_origin is None

    def __post_init__(self) -> None:
        """Check that the functions are neither async nor generators, and the version is a short text."""
        for name in ("transmute", "unfold_is_origin", "event_is_origin"):
            if (function := getattr(self, name)) is not None or name != "event_is_origin":
                must_be_plain(function, name)
        check_version(self.version)
        must_be(bool, self.trust_unmarked, "trust_unmarked", "True or False")


def _always(_: object) -> bool:
    """Return True for every event."""
    return True


def never(_: object) -> bool:
    """Return False for every event."""
    return False


def _events_alone(events: Sequence[E], _: object) -> Transmuted[E]:
    """Store a decision's events unchanged, and keep the stored unfolds."""
    return events, None


UNOPTIMIZED: Final[Access[Any, Any]] = Access(transmute=_events_alone, unfold_is_origin=never)
"""Access strategy that folds every event: for short streams, and for long ones with a cache."""

LATEST_KNOWN_EVENT: Final[Access[Any, Any]] = Access(
    transmute=_events_alone, unfold_is_origin=never, event_is_origin=_always
)
"""Access strategy for streams in which each event replaces the state: a setting, a position, a status."""


def snapshot(
    is_origin: Callable[[E], bool],
    to_snapshot: Callable[[S], E],
    *,
    version: str = "",
    trust_unmarked: bool = False,
) -> Access[S, E]:
    """Build a strategy that stores the state as an unfold with every append, so a load reads one item.

    A snapshot is used as long as its class has the shape that it was made with; after that, events are used.

    Args:
        is_origin: returns whether an unfold or event is a snapshot that this program understands.
        to_snapshot: converts a state into the event from which `evolve` restores it.
        version: version of the rules, at most 64 bytes. Change it if `evolve`, `to_snapshot` or `initial` makes other
            states of the same class: snapshots of another version are not used.
        trust_unmarked: whether to use snapshots without a mark, too, such as those of other programs; only without a
            `version`.

    Raises:
        InvalidInput: a version that is no short text.
    """
    must_be_plain(to_snapshot, "to_snapshot")
    return multi_snapshot(
        is_origin,
        lambda state: (must_be_done(to_snapshot(state), "to_snapshot"),),
        version=version,
        trust_unmarked=trust_unmarked,
    )


def multi_snapshot(
    is_origin: Callable[[E], bool],
    to_snapshots: Callable[[S], Sequence[E]],
    *,
    version: str = "",
    trust_unmarked: bool = False,
) -> Access[S, E]:
    """Build a strategy like `snapshot` that stores several unfolds: two schemas, or a state in parts.

    Two schemas help while old and new programs run. A state begins with the last unfold that is an origin, and the
    unfolds after it are folded in.

    Args:
        is_origin: returns whether a decoded unfold is one that a state begins with.
        to_snapshots: converts the state into the unfolds to store, as events of the codec.
        version, trust_unmarked: as for `snapshot`.
    """
    must_be_plain(to_snapshots, "to_snapshots", may_yield=True)
    return Access(
        transmute=lambda events, state: (
            events,
            must_be_done(to_snapshots(state), "to_snapshots", may_yield=True),
        ),
        unfold_is_origin=is_origin,
        event_is_origin=is_origin,
        version=version,
        trust_unmarked=trust_unmarked,
    )


def rolling_state(to_snapshot: Callable[[S], E]) -> Access[S, E]:
    """Build a strategy that stores only the latest state, without events.

    Only the etag distinguishes versions, and nothing reaches the feed. A stream that has events from before is folded
    from them until the state is first written.

    Args:
        to_snapshot: converts the state into the unfold to store, as an event of the codec.
    """
    must_be_plain(to_snapshot, "to_snapshot")
    return Access(
        transmute=lambda _, state: ((), (must_be_done(to_snapshot(state), "to_snapshot"),)),
        unfold_is_origin=_always,
        state_in_unfolds=True,
    )


def custom(
    is_origin: Callable[[E], bool],
    transmute: Callable[[Sequence[E], S], Transmuted[E]],
    *,
    state_in_unfolds: bool = False,
    version: str = "",
    trust_unmarked: bool = False,
) -> Access[S, E]:
    """Build an access strategy of your own: where a state can begin, and what a decision stores.

    Args:
        is_origin: returns whether a state can begin with an unfold or event.
        transmute: returns events to append and unfolds to replace those stored; may drop, change or add events. The
            state that is restored from what it stores must be the state it was given.
        state_in_unfolds: set it if `transmute` drops events that the state needs.
        version, trust_unmarked: as for `snapshot`, if events make the state.
    """
    return Access(
        transmute=transmute,
        unfold_is_origin=is_origin,
        event_is_origin=is_origin,
        state_in_unfolds=state_in_unfolds,
        version=version,
        trust_unmarked=trust_unmarked,
    )
