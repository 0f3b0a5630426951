"""A decider's rules as examples: given these events, when this is commanded, then these events.

    given(tickets, SeatTaken(seat="4A")).when(TakeSeat(seat="4A")).then_raises(Occupied)
    given(tickets).when(TakeSeat(seat="4A")).then(SeatTaken(seat="4A"))

No store, no stream, no time. With a codec every event passes through it as it would through a store, so that an example
also shows that its events survive.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from pprint import pformat
from typing import Generic, TypeVar

from epochal.model.kinds import must_be_events, must_be_state
from epochal.store.codecs import EventCodec, Stored
from epochal.store.deciders import Decider

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


@dataclass(frozen=True, kw_only=True)
class When(Generic[C, S, E]):
    """A command given in a state. It is decided on when a claim about it is checked."""

    given: Given[C, S, E]
    command: C

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
            f"{self.command!r} did not raise {error.__name__} but led to\n{pformat(decided)}"
        )

    def then_state(self, expected: S) -> None:
        """The events that are decided lead to this state."""
        self.given.and_then(*self._decided()).then_state(expected)

    def _decided(self) -> tuple[E, ...]:
        decided = self.given.decider.decide(self.command, self.given.state)
        return tuple(map(self.given.stored, must_be_events(decided)))


def _equal(expected: object, actual: object, what: str) -> None:
    if expected != actual:
        raise AssertionError(f"expected {what}\n{pformat(expected)}\nbut found\n{pformat(actual)}")
