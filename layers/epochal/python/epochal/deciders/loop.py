"""The loop of every decision: load a state, decide on it, append, and repeat if another writer was faster.

    load          the state to decide on
    decide        calls the user's function; the state may be an old one if it was not read, or if the read may lag
    no append     nothing to store, or an error: a state that may be old is first compared with the store, and the
                  decision is made again if it was old
    append        on exactly the state that was decided on; a joint decision that stores nothing, or raised an error,
                  only checks here that its streams are unchanged
     ├ stored     the decision is done
     ├ repeat     an earlier call with the idempotency key stored it: the call is answered like that one
     └ moved      the decision is made again on the newer state: the one that came with the refusal, without a second
                  read (DESIGN §5.2); from the second time on after a pause and a read

A `DecisionSource` says what these steps are for one stream, for several streams, or for a query of tagged events. So
every answer was decided on the latest state, at the moment of the append or of the read; the append of an earlier call
is searched for after each load. Each attempt is an append of its own, which its store applies exactly once (DESIGN
§5.3).

Decisions of one process on the same stream take turns (`epochal.store.queueing`): each begins when the one before has
ended, so that they do not refuse each other. So refusals come from other processes.

After the first refusal the decision is made again at once, because the refusal returned the newest state. After the
second, other writers are busy on the same stream, and a writer that continues without a pause costs each of them a
refused write. The pauses are so long (`epochal.layout.giving_way`) that the returned state is old when they end, and
the state is read again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Generic, Protocol, Self, TypeAlias, TypeGuard, TypeVar, cast

from epochal.errors import Contended, InvalidInput
from epochal.layout.streams import Also
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import Event
from epochal.model.kinds import must_be_whole
from epochal.model.plain_functions import must_be_done, must_be_events
from epochal.model.stream_names import TIMERS
from epochal.model.timers import Later
from epochal.store.backing_off import back_off
from epochal.store.context import block_of
from epochal.store.driver import Driver
from epochal.store.queueing import QueuePlace

ATTEMPTS: Final = 10
"""Decisions on one command before `Contended` is raised."""


class DecisionPlan(Protocol):
    """The plan of a decision."""

    @property
    def needs_store(self) -> bool:
        """Whether the store must be asked: to append, or to check that the streams are unchanged."""


E = TypeVar("E")
R = TypeVar("R")
T = TypeVar("T")
B = TypeVar("B")
P = TypeVar("P", bound=DecisionPlan)


class WithAlso(Sequence[E]):
    """An answer of `decide`: events, and writes to tables of your own that are made with them or not at all.

    Args:
        events: the events, at least one.
        also: the writes (`epochal.store.also`), as for `Streams.append`. If a condition of one does not hold, the call
            that decides raises `ConditionUnmet`.
    """

    def __init__(self, events: Sequence[E], also: Also) -> None:
        self.events = tuple(must_be_events(events))
        self.also = also

    def __len__(self) -> int:
        return len(self.events)

    def __getitem__(self, place: Any) -> Any:
        return self.events[place]


Answer: TypeAlias = Sequence[E | Later | Event]
"""What `decide` returns: events of the domain, some by `EventCodec.tagged`, and timers that it sets or cancels."""


def is_timer(answered: object) -> bool:
    """Return whether a part of a decision's answer sets or cancels a timer."""
    return isinstance(answered, Later) or (isinstance(answered, Event) and answered.type in TIMERS)


def is_tagged(answered: object) -> TypeGuard[Event]:
    """Return whether a part of a decision's answer is a domain event with tags (`EventCodec.tagged`)."""
    return isinstance(answered, Event) and answered.untagged is not None


def untagged(answered: object) -> Any:
    """Return a part of a decision's answer in the form that `evolve` receives."""
    return answered.untagged if is_tagged(answered) else answered


@dataclass(frozen=True, kw_only=True)
class Decision(Generic[R, E]):
    """What a user's `decide` returned: its result, events and timers, and writes that go with them."""

    result: R
    events: tuple[E, ...]
    timers: tuple[Later | Event, ...] = ()
    also: Also = ()

    @property
    def writes(self) -> bool:
        """Whether there are events or timers to append."""
        return bool(self.events or self.timers)

    @property
    def needs_store(self) -> bool:
        """Whether the store must be asked: to append what was decided (`DecisionPlan`)."""
        return self.writes


@dataclass(frozen=True, kw_only=True)
class Earlier(Generic[R, T]):
    """The decision was made by an earlier call with the idempotency key; `answer` returns that call's answer."""

    answer: Callable[[], tuple[R, T]]


@dataclass(frozen=True, kw_only=True)
class Moved(Generic[B, R, T]):
    """An append was refused because the stream, or the query's events, have changed.

    Attributes:
        name: name of what has moved.
        onward: function that returns the current base of the decision. Its argument says whether the base that came
            with the refusal is recent enough; otherwise the base is read.
    """

    name: str
    onward: Callable[[bool], B | Earlier[R, T]]


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class DecisionSource(ABC, Generic[B, P, R, T]):
    """What a decision is made on, and by which function: streams, or a query of tagged events.

    B is what is loaded, P the plan made of it, R what the function returns besides its events, and T the outcome.
    """

    @property
    @abstractmethod
    def driver(self) -> Driver:
        """Driver of the store."""

    @property
    def about(self) -> object:
        """The one stream or aggregate on which the decision is made, for traces; None if there are more."""
        return None

    @property
    def queue_keys(self) -> Sequence[tuple[str, ...]]:
        """Keys of what the decision may write to, on which decisions of one process take turns; none for no turns."""
        return ()

    @abstractmethod
    def over(self, driver: Driver, place: QueuePlace | None = None) -> Self:
        """Return the same source with all requests through another driver.

        Args:
            driver: the driver.
            place: place in the queues of `queue_keys`, with the notes of the decisions before; None for none.
        """

    @abstractmethod
    def load(self) -> B | Earlier[R, T]:
        """Load the base of the decision in the way the caller asked for."""

    def confirmed(self, base: B) -> bool:  # noqa: ARG002  of those that may be old
        """Return whether the store has shown this base during the call; otherwise it may be old."""
        return True

    def confirm(self, base: B) -> B | Earlier[R, T]:  # noqa: ARG002  of those that may be old
        """Load the latest base."""
        return self.load()

    @abstractmethod
    def plan(self, base: B) -> P:
        """Let the function decide on the base; raises what it raises."""

    def conclude_without_append(self, base: B, plan: P) -> tuple[R, T]:
        """Return the answer of a decision that need not ask the store."""
        raise NotImplementedError

    @abstractmethod
    def append(self, base: B, plan: P, began: float) -> tuple[R, T] | Earlier[R, T] | Moved[B, R, T]:
        """Append what was decided on exactly `base`; return the outcome, an earlier answer, or `Moved`.

        A joint decision without events only checks that its streams are unchanged.

        `began` is the clock reading before that.

        Raises:
            StreamDeleted, OutcomeUndetermined: the decision cannot be completed.
        """

    @abstractmethod
    def _reconstruct_answer(self, written: Any) -> tuple[R, T]:
        """Return the answer that an earlier call with the key received, reconstructed from what it wrote."""

    def _as_earlier(self, written: Any) -> Earlier[R, T]:
        """Return the earlier call's answer, to be reconstructed when it is needed."""
        return Earlier(answer=partial(self.over(self.driver.reading_back())._reconstruct_answer, written))  # noqa: SLF001  its own

    def decide(self, *, attempts: int = ATTEMPTS, metadata: Mapping[str, Any] | None = None) -> tuple[R, T]:
        """Load, decide and append, again if others were faster; return the function's result and the outcome.

        The outcome has the capacity of all requests.

        Args:
            attempts: number of decisions before `Contended` is raised.
            metadata: metadata for the events of this decision, however often it is made.

        Raises:
            Contended: other writers were faster at every attempt.
        """
        must_be_whole(attempts, "attempts", 1)
        driver, meter = self.driver.metered()
        with meter, block_of(metadata), QueuePlace(driver, *self.queue_keys) as place:
            result, outcome = self.over(driver, place)._run(attempts, place)  # noqa: SLF001  its own
        return result, replace(cast("Any", outcome), capacity=meter.capacity)

    def _run(self, attempts: int, place: QueuePlace) -> tuple[R, T]:
        """Load, decide and append until there is an answer; raise `Contended` after that many attempts.

        Args:
            place: place in the queues of what is decided on, which is told when the decision asks the store.
        """
        driver, attempt = self.driver, 0
        # 1. Load the state. If an earlier call with the key has stored the decision, step 6 answers.
        base = self.load()
        while not isinstance(base, Earlier):
            # 2. Decide. If the store need not be asked, and the state may be old, compare it with the store first.
            plan = self._plan(base)
            if plan is None:
                base = self.confirm(base)
                continue
            # 3. Return the state if the store need not be asked.
            if not plan.needs_store:
                return self.conclude_without_append(base, plan)
            # 4. Append on exactly the state that was decided on, or check it; return the outcome.
            attempt += 1
            place.write()
            began = driver.clock()
            answer = self.append(base, plan, began)
            # 5. If another writer was faster, decide again on the newer state: go to step 2.
            if isinstance(answer, Moved):
                if attempt == attempts:
                    raise Contended(answer.name, attempt)
                base = answer.onward(back_off(driver, attempt, began))
            elif isinstance(answer, Earlier):
                base = answer
            else:
                return answer
        # 6. Answer as the earlier call with the key was answered.
        return base.answer()

    def _plan(self, base: B) -> P | None:
        """Decide on a state; return None if the state may be old and must be confirmed first.

        A decision that asks the store needs no confirmation: the store compares the base when it appends.
        """
        confirmed = self.confirmed(base)
        try:
            plan = self.plan(base)
        except Exception:
            if confirmed:
                raise
            return None
        return plan if confirmed or plan.needs_store else None


def without_result(decide: Callable[..., T], *states: Any) -> tuple[None, T]:
    """Call a user's `decide` that returns only events, and add None as its result."""
    return None, decide(*states)


def pair_of(answer: object) -> tuple[Any, Any]:
    """Return the result and events that a user's `decide` returned; raise `InvalidInput` if it is no pair."""
    must_be_done(answer, "decide")
    if not isinstance(answer, tuple) or len(answer) != 2:  # noqa: PLR2004  a pair
        shown = f"a tuple of {len(answer)}" if isinstance(answer, tuple) else type(answer).__name__
        raise InvalidInput("decide", f"must return a pair of a result and a list of events, not {shown}")
    result, events = answer
    return result, events


def decision_of(answer: tuple[R, Answer[E]]) -> Decision[R, E]:
    """Convert what a user's `decide` returned into a decision; raise `InvalidInput` if that cannot be."""
    result, events = pair_of(answer)
    also = events.also if isinstance(events, WithAlso) else ()
    parts = tuple(must_be_events(events))
    decision = Decision(
        result=result,
        events=tuple(cast("E", part) for part in parts if not is_timer(part)),
        timers=tuple(cast("Later | Event", part) for part in parts if is_timer(part)),
        also=also,
    )
    if also and not decision.writes:
        raise InvalidInput("also", "must not be given without events or timers")
    return decision
