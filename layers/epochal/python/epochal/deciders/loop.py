"""The loop of every decision: load a state, decide on it, append that, and decide again where another was faster.

    load        what is decided on
    decide      the user's function, on a state that may be an old one where nothing was read, or the read may lag
    nothing     to store, or an error: a state that may be old is first compared with the store, and decided on again
    append      on exactly the state that was decided on
     ├ stored   done
     ├ made     by an earlier call with the idempotency key: it is answered like that one
     └ moved    what is there by now is decided on: what came with the refusal, without a second read (DESIGN §5.2);
                from the second time on after a pause, from the third on after a pause and a read

A `DecisionSource` says what that is of one stream, of several, of a query of tagged events. So whatever is answered was
decided on the latest state, at the moment of the append or of the read; what an earlier call did is looked for after
each load. Each attempt is an append of its own, made exactly once by its store (DESIGN §5.3).

After its first refusal a decision is made again at once: what came back with the refusal is the newest there is. From
the second on others are there all the time, and a writer that goes on without a pause costs each of them a refused
write. From the third on pauses are so long that what came back is old by then: it is read again after the pause, or the
next append would only be refused once more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Generic, Protocol, Self, TypeAlias, TypeGuard, TypeVar, cast

from epochal.errors import Contended, InvalidInput
from epochal.layout.streams import Also
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.events import TIMERS, Event
from epochal.model.kinds import must_be_done, must_be_events, must_be_whole
from epochal.store.context import block_of
from epochal.store.driver import Driver
from epochal.store.outcomes import give_way

ATTEMPTS: Final = 10
"""Decisions on one command before `Contended` is raised."""


class Writing(Protocol):
    """What a decision led to."""

    @property
    def writes(self) -> bool:
        """Whether anything is to be appended."""


E = TypeVar("E")
R = TypeVar("R")
T = TypeVar("T")
B = TypeVar("B")
P = TypeVar("P", bound=Writing)


class WithAlso(Sequence[E]):
    """What `decide` answers with where items of tables of your own go with its events, all or nothing.

    Args:
        events: the events, at least one.
        also: the writes (`epochal.store.also`), as for `Streams.append`. Where a condition of one does not hold, the
            call that decides raises `ConditionUnmet`.
    """

    def __init__(self, events: Sequence[E], also: Also) -> None:
        self.events = tuple(must_be_events(events))
        self.also = also

    def __len__(self) -> int:
        return len(self.events)

    def __getitem__(self, place: Any) -> Any:
        return self.events[place]


@dataclass(frozen=True, slots=True)
class Later:
    """What `decide` answers with, beside its events, where events are to come later: a timer (`scheduling`) of the
    domain's events, which the decider's codec encodes. One in it sets the next timer when it fires.

    `epochal.call_off(name)` among the events calls a timer off. Neither is an event of the domain: no state is folded
    from it.

    Args:
        name, events, at, tags: as `epochal.scheduling` has them.
    """

    name: str
    events: Sequence[Any]
    at: timedelta | datetime | str = field(kw_only=True)
    tags: tuple[str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", tuple(must_be_events(self.events, "events")))


Answer: TypeAlias = Sequence[E | Later | Event]
"""What `decide` answers with: events of the domain, some by `EventCodec.tagged`, and timers that it sets or calls off.
"""


def is_timer(answered: object) -> bool:
    """Whether a part of an answer is of a timer, and not an event of the domain."""
    return isinstance(answered, Later) or (isinstance(answered, Event) and answered.type in TIMERS)


def is_tagged(answered: object) -> TypeGuard[Event]:
    """Whether a part of an answer is an event of the domain under tags (`EventCodec.tagged`)."""
    return isinstance(answered, Event) and answered.untagged is not None


def untagged(answered: object) -> Any:
    """A part of an answer as `evolve` is given it."""
    return answered.untagged if is_tagged(answered) else answered


@dataclass(frozen=True, kw_only=True)
class Decision(Generic[R, E]):
    """The answer of a user's `decide`, the events and timers that it leads to, and what goes with them."""

    result: R
    events: tuple[E, ...]
    timers: tuple[Later | Event, ...] = ()
    also: Also = ()

    @property
    def writes(self) -> bool:
        """Whether there are any."""
        return bool(self.events or self.timers)


@dataclass(frozen=True, kw_only=True)
class Earlier(Generic[R, T]):
    """An earlier call with the idempotency key has made the decision: `answer` is what that was answered."""

    answer: Callable[[], tuple[R, T]]


@dataclass(frozen=True, kw_only=True)
class Moved(Generic[B, R, T]):
    """An append was refused.

    Attributes:
        name: what has moved.
        onward: what is there by now. Given True, what came with the refusal is new enough; else it is read.
    """

    name: str
    onward: Callable[[bool], B | Earlier[R, T]]


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class DecisionSource(ABC, Generic[B, P, R, T]):
    """What one decision is made on, and by which function.

    B is what is loaded, P what is made of it, R what the function answers besides its events, and T the outcome.
    """

    @property
    @abstractmethod
    def driver(self) -> Driver:
        """That of the store."""

    @property
    def about(self) -> object:
        """What one stream, or one of its kind, the decision is on; None where it is on more."""
        return None

    @abstractmethod
    def over(self, driver: Driver) -> Self:
        """The same, with all its requests through another driver."""

    @abstractmethod
    def load(self) -> B | Earlier[R, T]:
        """What to decide on, as the caller wants it loaded."""

    def confirmed(self, base: B) -> bool:  # noqa: ARG002  of those that may be old
        """Whether the store has shown it during this call. Otherwise it may be old."""
        return True

    def confirm(self, base: B) -> B | Earlier[R, T]:  # noqa: ARG002  of those that may be old
        """The latest."""
        return self.load()

    @abstractmethod
    def plan(self, base: B) -> P:
        """Let the function decide. Raises what it does."""

    def unchanged(self, base: B, plan: P) -> tuple[R, T]:
        """The answer of a decision that stores nothing; one on several streams stores that they have not moved."""
        raise NotImplementedError

    @abstractmethod
    def append(self, base: B, plan: P, since: float) -> tuple[R, T] | Earlier[R, T] | Moved[B, R, T]:
        """Append what was decided, on exactly what it was decided on; `since` is the clock's reading before that.

        Raises:
            StreamDeleted, OutcomeUndetermined: nothing more can come of it.
        """

    @abstractmethod
    def _earlier(self, written: Any) -> tuple[R, T]:
        """What an earlier call was told that had the key, by what it wrote."""

    def _as_earlier(self, written: Any) -> Earlier[R, T]:
        return Earlier(answer=partial(self.over(self.driver.telling())._earlier, written))  # noqa: SLF001  its own

    def decide(self, *, attempts: int = ATTEMPTS, metadata: Mapping[str, Any] | None = None) -> tuple[R, T]:
        """The answer and the outcome, which carries what all of it consumed.

        Args:
            metadata: of the events of this decision, however often it is made.

        Raises:
            Contended: other writers were faster at every attempt.
        """
        must_be_whole(attempts, "attempts", 1)
        driver, meter = self.driver.metered()
        with meter, block_of(metadata):
            result, outcome = self.over(driver)._run(attempts)  # noqa: SLF001  its own
        return result, replace(cast("Any", outcome), capacity=meter.capacity)

    def _run(self, attempts: int) -> tuple[R, T]:
        driver, attempt = self.driver, 0
        base = self.load()
        while not isinstance(base, Earlier):
            plan = self._plan(base)
            if plan is None:
                base = self.confirm(base)
                continue
            if not plan.writes:
                return self.unchanged(base, plan)
            attempt += 1
            since = driver.clock()
            answer = self.append(base, plan, since)
            if isinstance(answer, Moved):
                if attempt == attempts:
                    raise Contended(answer.name, attempt)
                base = answer.onward(give_way(driver, attempt, since))
            elif isinstance(answer, Earlier):
                base = answer
            else:
                return answer
        return base.answer()

    def _plan(self, base: B) -> P | None:
        """A decision that may stand: the store holds what writes to its state. Others need a confirmed one: None."""
        confirmed = self.confirmed(base)
        try:
            plan = self.plan(base)
        except Exception:
            if confirmed:
                raise
            return None
        return plan if confirmed or plan.writes else None


def without_result(decide: Callable[..., T], *states: Any) -> tuple[None, T]:
    """What a function without an answer decides, as one that has none."""
    return None, decide(*states)


def decision_of(answer: tuple[R, Answer[E]]) -> Decision[R, E]:
    """What a user's function answered; raises `InvalidInput` for a coroutine."""
    result, events = must_be_done(answer, "decide")
    also = events.also if isinstance(events, WithAlso) else ()
    parts = tuple(must_be_events(events))
    decision = Decision(
        result=result,
        events=tuple(cast("E", each) for each in parts if not is_timer(each)),
        timers=tuple(cast("Later | Event", each) for each in parts if is_timer(each)),
        also=also,
    )
    if also and not decision.writes:
        raise InvalidInput("also", "needs events to go with")
    return decision
