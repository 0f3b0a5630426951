"""Access strategies: which events make a state, and what is stored with a decision. After Equinox's.

                        a state is folded from            a decision stores
    UNOPTIMIZED         all events                        its events
    LATEST_KNOWN_EVENT  the latest event that is known    its events
    snapshot            an unfold, and the events since   its events, and the state as an unfold
    multi_snapshot      an unfold, and the events since   its events, and the state as several unfolds
    rolling_state       an unfold                         the state as an unfold, no events
    custom              an unfold or event and the rest   whatever it is transmuted into

An origin is an event, or an unfold, from which on a state can be folded whatever went before it: a snapshot, a reset.
Unfolds are events to the codec and to `evolve`. Where a stream has no unfold that is an origin, its events are read
backward up to an origin or the first one, so strategies can be changed without touching what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from epochal.model.plain import must_be_done, must_be_plain

S = TypeVar("S")
E = TypeVar("E")

Transmuted = tuple[Sequence[E], Sequence[E] | None]
"""Events to append, and unfolds to replace those stored (None keeps them)."""


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class Access(Generic[S, E]):
    """A strategy. The functions of this module make them.

    Attributes:
        transmute: what a decision stores, from its events and the state after them.
        unfold_is_origin: whether a state can begin with an unfold.
        event_is_origin: whether a state can begin with an event; None where none but the first can, and events are
            read forward.
        state_in_unfolds: events alone do not make the state. Unfolds of which none is an origin are then an error.
    """

    transmute: Callable[[Sequence[E], S], Transmuted[E]]
    unfold_is_origin: Callable[[E], bool]
    event_is_origin: Callable[[E], bool] | None = None
    state_in_unfolds: bool = False

    @property
    def every_event_counts(self) -> bool:
        """Whether a state is made from all events, unless an earlier one is known."""
        return self.unfold_is_origin is _never and self.event_is_origin is None

    def __post_init__(self) -> None:
        """Refuse what nothing would await."""
        for name in ("transmute", "unfold_is_origin", "event_is_origin"):
            if (function := getattr(self, name)) is not None or name != "event_is_origin":
                must_be_plain(function, name)


def _always(_: object) -> bool:
    return True


def _never(_: object) -> bool:
    return False


def _events_alone(events: Sequence[E], _: object) -> Transmuted[E]:
    return events, None


UNOPTIMIZED: Final[Access[Any, Any]] = Access(transmute=_events_alone, unfold_is_origin=_never)
"""Every event counts. For short streams, and for long ones with a cache."""

LATEST_KNOWN_EVENT: Final[Access[Any, Any]] = Access(
    transmute=_events_alone, unfold_is_origin=_never, event_is_origin=_always
)
"""Each event replaces the state: a setting, a position, a status."""


def snapshot(is_origin: Callable[[E], bool], to_snapshot: Callable[[S], E]) -> Access[S, E]:
    """Store the state beside the events with every append, so that a load is one request of one item.

    Args:
        is_origin: whether an unfold or event is a snapshot that this program understands.
        to_snapshot: a state as the event that `evolve` restores it from.
    """
    must_be_plain(to_snapshot, "to_snapshot")
    return multi_snapshot(is_origin, lambda state: (must_be_done(to_snapshot(state), "to_snapshot"),))


def multi_snapshot(is_origin: Callable[[E], bool], to_snapshots: Callable[[S], Sequence[E]]) -> Access[S, E]:
    """`snapshot` with several unfolds: in an old and a new schema while programs of both run, or a state in parts.

    A state begins with the last unfold that is an origin, and the unfolds after it are folded in.
    """
    must_be_plain(to_snapshots, "to_snapshots", may_yield=True)
    return Access(
        transmute=lambda events, state: (
            events,
            must_be_done(to_snapshots(state), "to_snapshots", may_yield=True),
        ),
        unfold_is_origin=is_origin,
        event_is_origin=is_origin,
    )


def rolling_state(to_snapshot: Callable[[S], E]) -> Access[S, E]:
    """Store the state alone. Nothing but the etag tells versions apart, and nothing reaches the feed.

    A stream that has events from before is folded from them until the state is first written.
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
) -> Access[S, E]:
    """Store what `transmute` makes of a decision's events and the state after them.

    Args:
        transmute: events to append and unfolds to replace those stored; may drop, change or add to the events. The
            state that is restored from what it stores must be the state it was given.
        state_in_unfolds: say so where it drops events that the state needs.
    """
    return Access(
        transmute=transmute,
        unfold_is_origin=is_origin,
        event_is_origin=is_origin,
        state_in_unfolds=state_in_unfolds,
    )
