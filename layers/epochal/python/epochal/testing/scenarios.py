"""Rules of decisions as examples: given these events, when this is commanded, then these events.

    given(tickets, SeatTaken(seat="4A")).when(TakeSeat(seat="4A")).then_raises(Occupied)
    given(tickets).when(TakeSeat(seat="4A")).then(SeatTaken(seat="4A"))

    given_tagged({"taken": taken}, seat("4A")).when(reserve("4A")).then_raises(Occupied)

No store, no stream, no time. With a codec every event passes through it as it would through a store, so that an example
also shows that its events survive.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from pprint import pformat
from typing import Any, Generic, TypeVar

from epochal.deciders.codecs import EventCodec, Stored
from epochal.deciders.on_queries import Decide, Decisions, Projection
from epochal.deciders.on_streams import Decider
from epochal.model.events import Event
from epochal.model.kinds import must_be_done, must_be_events, must_be_state
from epochal.testing.stores import memory_tagged_events

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")
X = TypeVar("X", bound=BaseException)


def given(decider: Decider[C, S, E], *events: E, codec: EventCodec[E] | None = None) -> Given[C, S, E]:
    """A stream in which these events have happened.

    Args:
        codec: what events are stored with; None leaves them as they are.
    """
    return Given(decider=decider, codec=codec, state=decider.initial()).and_then(*events)


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class Given(Generic[C, S, E]):
    """A stream's state, to be commanded."""

    decider: Decider[C, S, E]
    codec: EventCodec[E] | None
    state: S

    def when(self, command: C) -> When[C, S, E]:
        """What the decider makes of a command."""
        return When(given=self, command=command)

    def then_state(self, expected: S) -> None:
        """The events given led to this state."""
        _equal(expected, self.state, "state")

    def and_then(self, *events: E) -> Given[C, S, E]:
        """The same stream after more events."""
        return replace(self, state=reduce(self._moved, map(self.stored, events), self.state))

    def _moved(self, state: S, event: E) -> S:
        return must_be_state(self.decider.evolve(state, event), state, self.decider.initial, event)

    def stored(self, event: E) -> E:
        """An event as it comes back from a store."""
        if self.codec is None:
            return event
        encoded = self.codec.encode(event)
        if not isinstance(encoded.data, bytes) or not isinstance(encoded.meta, bytes):
            raise AssertionError(f"{event!r} is stored as a claim, which is not here to be read")  # noqa: TRY004
        decoded = self.codec.decode(Stored(type=encoded.type, data=encoded.data, meta=encoded.meta))
        if decoded is None:
            raise AssertionError(f"{event!r} is stored as {encoded.type}, which the codec does not know")
        return decoded


class _Claims(ABC, Generic[E]):
    """What can be said of a decision."""

    def then(self, *events: E) -> None:
        """Exactly these events are decided, in this order; none where nothing is to be done."""
        _equal(events, self._decided(), "events")

    def then_raises(self, error: type[X]) -> X:
        """The decision fails with this error, which is returned."""
        try:
            decided = self._decided()
        except error as raised:
            return raised
        raise AssertionError(
            f"{self._named()!r} did not raise {error.__name__} but led to\n{pformat(decided)}"
        )

    @abstractmethod
    def _decided(self) -> tuple[E, ...]:
        """The events that it leads to."""

    @abstractmethod
    def _named(self) -> object:
        """What is decided."""


@dataclass(frozen=True, kw_only=True)
class When(_Claims[E], Generic[C, S, E]):
    """A command given in a state. It is decided on when a claim about it is checked."""

    given: Given[C, S, E]
    command: C

    def then_state(self, expected: S) -> None:
        """The events that are decided lead to this state."""
        self.given.and_then(*self._decided()).then_state(expected)

    def _decided(self) -> tuple[E, ...]:
        decided = self.given.decider.decide(self.command, self.given.state)
        return tuple(map(self.given.stored, must_be_events(decided)))

    def _named(self) -> object:
        return self.command


def _equal(expected: object, actual: object, what: str) -> None:
    if expected != actual:
        raise AssertionError(f"expected {what}\n{pformat(expected)}\nbut found\n{pformat(actual)}")


def given_tagged(projections: Mapping[str, Projection[Any]], *events: Event) -> GivenTagged:
    """Tagged events that have happened, and projections over them; `Decisions` decides on their answers."""
    store = memory_tagged_events()
    if events:
        store.append(events)
    return GivenTagged(states=Decisions(store=store).model(projections).states)


@dataclass(frozen=True, kw_only=True)
class GivenTagged:
    """The answers of projections, to be decided on."""

    states: Mapping[str, Any]

    def when(self, decide: Decide) -> WhenTagged:
        """What a decision makes of them."""
        return WhenTagged(given=self, decide=decide)

    def then_states(self, **expected: Any) -> None:
        """The events given led to these answers."""
        _equal(expected, dict(self.states), "states")


@dataclass(frozen=True, kw_only=True)
class WhenTagged(_Claims[Event]):
    """A decision on the answers of projections. It is made when a claim about it is checked."""

    given: GivenTagged
    decide: Decide

    def _decided(self) -> tuple[Event, ...]:
        return tuple(must_be_events(must_be_done(self.decide(self.given.states), "decide")))

    def _named(self) -> object:
        return self.decide
