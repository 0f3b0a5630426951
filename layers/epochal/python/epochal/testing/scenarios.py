"""Tests decisions by example: given these events, when this is commanded, then these events follow.

    given(tickets, SeatTaken(seat="4A")).when(TakeSeat(seat="4A")).then_raises(Occupied)
    given(tickets).when(TakeSeat(seat="4A")).then(SeatTaken(seat="4A"))

    given_tagged({"taken": taken}, seat("4A")).when(reserve("4A")).then_raises(Occupied)

    given(loans).when(Lend(days=14)).after(days=14).then(Reminded())

No store, no stream, no waiting: time goes by where `after` says so. With a codec every event passes through it as it
would through a store, so that an example also shows that its events survive. A timer that a store would refuse is
refused here, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import UTC, datetime
from pprint import pformat
from typing import Any, Final, Generic, TypeVar, cast

from epochal.codec import json
from epochal.deciders.codecs import EventCodec, Stored
from epochal.deciders.loop import is_tagged, is_timer, untagged
from epochal.deciders.on_queries import Decide, Decisions
from epochal.deciders.on_streams import Decider
from epochal.deciders.projections import Projection
from epochal.deciders.stream_decisions import encode_event
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.events import Event, Recorded, check_event
from epochal.model.moments import Ticks, format_ticks, read_moment
from epochal.model.plain_functions import must_be_done, must_be_events, must_be_state
from epochal.model.stream_names import TIMER_CANCELLED, TIMER_SET
from epochal.model.timers import Later
from epochal.scheduling import after, due_at, later, timer_of
from epochal.testing.stores import memory_tagged_events

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")
X = TypeVar("X", bound=BaseException)


MILLENNIUM: Final = datetime(2000, 1, 1, tzinfo=UTC)


def given(
    decider: Decider[C, S, E],
    *events: E | Later | Event,
    codec: EventCodec[E] | None = None,
    now: datetime | str = MILLENNIUM,
) -> Given[C, S, E]:
    """Begin an example with a stream in which these events have happened and these timers are set.

    Args:
        decider: rules under test.
        events: events and timers, in order.
        codec: stores events, so that the example also tests it; None leaves them as they are.
        now: time of the example's beginning, from which timers count.
    """
    begun = Given(decider=decider, codec=codec, state=decider.initial(), now=read_moment(now, "now"))
    return begun.and_then(*events)


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class Given(Generic[C, S, E]):
    """A stream's state and its pending timers, ready for a command or for time to pass.

    Attributes:
        decider: the decider under test.
        codec: codec through which events pass before they are compared; None leaves them as they are.
        state: state of the stream.
        now: the scenario's present time.
        timers: due time and events of each pending timer, by its name.
    """

    decider: Decider[C, S, E]
    codec: EventCodec[E] | None
    state: S
    now: Ticks
    timers: Mapping[str, tuple[Ticks, tuple[E | Later | Event, ...]]] = field(default_factory=dict)

    def when(self, command: C) -> When[C, S, E]:
        """Prepare the decision on a command.

        Args:
            command: command that the decider decides on.
        """
        return When(given=self, command=command)

    def after(
        self, *, weeks: float = 0, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> Elapsed[C, S, E]:
        """Let time pass: fire due timers in order; return an `Elapsed` with the stream and the new events.

        Args:
            weeks, days, hours, minutes, seconds: parts of the time that passes, which are added up.
        """
        scenario, answers = self, list[E]()
        span = after(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
        until = due_at(span, self.now)
        while due := [name for name, (due_at, _) in scenario.timers.items() if due_at <= until]:
            name = min(due, key=lambda name: scenario.timers[name][0])
            moment, events = scenario.timers[name]
            scenario = replace(scenario._without(name), now=max(moment, scenario.now)).and_then(*events)
            answers += [untagged(event) for event in events if not is_timer(event)]
        return Elapsed(given=replace(scenario, now=until), came=tuple(answers))

    def then_state(self, expected: S) -> None:
        """Assert that the events led to this state.

        Args:
            expected: state that must be equal to that of the stream.
        """
        must_equal(expected, self.state, "state")

    def and_then(self, *events: E | Later | Event) -> Given[C, S, E]:
        """Return the scenario after more events of the same stream.

        Args:
            events: events of the domain, timers that are set (`later`) or cancelled (`cancel`).
        """
        scenario = self
        for event in events:
            scenario = scenario._with(self.stored(event))
        return scenario

    def _with(self, event: E | Later | Event) -> Given[C, S, E]:
        """Return the stream after one more event, or with a timer set or cancelled."""
        if isinstance(event, Later):
            return self._timed(event.name, due_at(event.at, self.now), tuple(event.events))
        if isinstance(event, Event) and event.type == TIMER_SET:
            timestamp = event.timestamp or format_ticks(self.now)
            timer = timer_of(Recorded(stream="given", type=event.type, data=event.data, timestamp=timestamp))
            return self._timed(timer.name, timer.ticks, tuple(map(self._decoded, timer.events)))
        if is_timer(event):
            off = isinstance(event, Event) and event.type == TIMER_CANCELLED
            return self._without(json.loads(cast("Event", event).content)["name"]) if off else self
        moved = self.decider.evolve(self.state, untagged(event))
        return replace(self, state=must_be_state(moved, self.state, self.decider.initial, event))

    def _timed(self, name: str, moment: Ticks, events: tuple[Any, ...]) -> Given[C, S, E]:
        """Return the stream with a timer set."""
        return replace(self, timers={**self._without(name).timers, name: (moment, events)})

    def _without(self, name: str) -> Given[C, S, E]:
        """Return the stream without a timer."""
        return replace(
            self, timers={setting: timer for setting, timer in self.timers.items() if setting != name}
        )

    def stored(self, event: E | Later | Event) -> E | Later | Event:
        """Return an event or timer as it would come back from a store; raise if a store would refuse it.

        Args:
            event: event of the domain, or timer that is set or cancelled.

        Raises:
            InvalidInput: a store would refuse it.
        """
        if isinstance(event, Later):
            self._check_timer(event)
            return replace(event, events=tuple(map(self.stored, event.events)))
        if self.codec is None or is_timer(event):
            return event
        encoded = encode_event(self.codec, event)
        check_event(encoded, "events", tags=True)
        if not isinstance(encoded.data, bytes) or not isinstance(encoded.meta, bytes):
            raise AssertionError(f"{event!r} is stored as a claim, which is not here to be read")  # noqa: TRY004
        decoded = self._decoded(encoded)
        return replace(event, untagged=decoded) if is_tagged(event) else decoded

    def _check_timer(self, timer: Later) -> None:
        """Raise `InvalidInput` if a store would refuse a timer; without a codec its events are not looked into."""
        if self.codec is not None:
            encode_event(self.codec, timer)
            return
        placeholders = [Event(type="event")] * len(timer.events)
        later(timer.name, placeholders, at=timer.at, tags=timer.tags)

    def _decoded(self, event: Event) -> E | Event:
        """Decode an event as it would come back from a store; fail if the codec does not know its type."""
        if self.codec is None or is_timer(event):
            return event
        meta = cast("bytes", event.meta)
        decoded = self.codec.decode(Stored(type=event.type, data=event.content, meta=meta))
        if decoded is None:
            raise AssertionError(f"{event!r} is stored as {event.type}, which the codec does not know")
        return decoded


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class Elapsed(Generic[C, S, E]):
    """A stream after time has passed, and the events that came meanwhile."""

    given: Given[C, S, E]
    came: tuple[E, ...]

    def then(self, *events: E) -> None:
        """Assert that exactly these events came, in this order; none if no timer was due."""
        must_equal(events, self.came, "events")

    def then_state(self, expected: S) -> None:
        """Assert that the events led to this state."""
        self.given.then_state(expected)

    def when(self, command: C) -> When[C, S, E]:
        """Prepare the decision on a command at this time."""
        return self.given.when(command)


class _Claims(ABC, Generic[E]):
    """Assertions about a decision."""

    def then(self, *events: E | Later | Event) -> None:
        """Assert that exactly these events and timers, or none, are decided, in this order.

        An event of the domain is equal to the same event with any tags. To compare the tags, too, expect
        `codec.tagged(event, …)`.

        Args:
            events: the events and timers.
        """
        decided = self._decided()
        if len(events) != len(decided) or events != tuple(map(_as_expected, events, decided)):
            raise AssertionError(
                _difference(tuple(map(_shown, events)), tuple(map(_shown, decided)), "events")
            )

    def then_raises(self, error: type[X]) -> X:
        """Assert that the decision fails with this error, and return the error."""
        try:
            decided = self._decided()
        except error as raised:
            return raised
        raise AssertionError(
            f"{self._named()!r} did not raise {error.__name__} but led to\n{pformat(decided)}"
        )

    @abstractmethod
    def _decided(self) -> tuple[E | Later | Event, ...]:
        """Make the decision, and return its events and timers."""

    @abstractmethod
    def _named(self) -> object:
        """Return what is decided, for messages."""


@dataclass(frozen=True, kw_only=True)
class When(_Claims[E], Generic[C, S, E]):
    """A command in a given state. The decision is made when an assertion is checked."""

    given: Given[C, S, E]
    command: C

    def then_state(self, expected: S) -> None:
        """Assert that the decided events lead to this state."""
        self.given.and_then(*self._decided()).then_state(expected)

    def after(
        self, *, weeks: float = 0, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> Elapsed[C, S, E]:
        """Let time pass after the decision: fire its timers and earlier ones; return the events that came."""
        given = self.given.and_then(*self._decided())
        return given.after(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)

    def _decided(self) -> tuple[E | Later | Event, ...]:
        """Make the decision, and return its events and timers as a store would."""
        decided = self.given.decider.decide(self.command, self.given.state)
        return tuple(map(self.given.stored, must_be_events(decided)))

    def _named(self) -> object:
        """Return the command, for messages."""
        return self.command


def must_equal(expected: object, actual: object, what: str) -> None:
    """Raise `AssertionError` with both values if they differ."""
    if expected != actual:
        raise AssertionError(_difference(expected, actual, what))


def _difference(expected: object, actual: object, what: str) -> str:
    """Describe two values that differ."""
    return f"expected {what}\n{pformat(expected)}\nbut found\n{pformat(actual)}"


def _as_expected(expected: object, decided: object) -> object:
    """Return a decided part without its tags where the expected one is an event of the domain."""
    if isinstance(expected, Later) and isinstance(decided, Later):
        if len(expected.events) != len(decided.events):
            return decided
        return replace(decided, events=tuple(map(_as_expected, expected.events, decided.events)))
    return decided if isinstance(expected, Event) else untagged(decided)


class _Tagged:
    """Shows an event of the domain with its tags as it is written."""

    def __init__(self, event: Event) -> None:
        self.event = event

    def __repr__(self) -> str:
        return f"tagged({', '.join(map(repr, (untagged(self.event), *self.event.tags)))})"


def _shown(part: object) -> object:
    """Return a part of a decision as a failed example shows it."""
    if isinstance(part, Later):
        return replace(part, events=tuple(map(_shown, part.events)))
    return _Tagged(part) if is_tagged(part) else part


def given_tagged(projections: Mapping[str, Projection[Any]], *events: Event) -> GivenTagged:
    """Begin an example with tagged events and projections over them, on which `Decisions` decides.

    Args:
        projections: projections by name.
        events: events that are stored before the decision.
    """
    store = memory_tagged_events()
    if events:
        store.append(events)
    return GivenTagged(states=Decisions(store=store).model(projections).states)


@dataclass(frozen=True, kw_only=True)
class GivenTagged:
    """The states of projections, ready for a decision.

    Attributes:
        states: states of the projections, by their names.
    """

    states: Mapping[str, Any]

    def when(self, decide: Decide) -> WhenTagged:
        """Prepare a decision on the states.

        Args:
            decide: function of the states that returns the events to append.
        """
        return WhenTagged(given=self, decide=decide)

    def then_states(self, **expected: Any) -> None:
        """Assert that the events led to these states.

        Args:
            expected: states that must be equal to those of the projections, all of them by name.
        """
        must_equal(expected, dict(self.states), "states")


@dataclass(frozen=True, kw_only=True)
class WhenTagged(_Claims[Event]):
    """A decision on the states of projections. It is made when an assertion is checked."""

    given: GivenTagged
    decide: Decide

    def _decided(self) -> tuple[Event | Later, ...]:
        """Make the decision, and return its events and timers."""
        decided = tuple(must_be_events(must_be_done(self.decide(self.given.states), "decide")))
        for event in decided:
            encode_event(None, event)  # which refuses timers as a store does
        return decided

    def _named(self) -> object:
        """Return the function that decides, for messages."""
        return self.decide
