"""Decisions on tagged events: several small projections, read at once, and one conditional append.

A model has the query of all its projections together. It folds each projection over the events that the projection
matches, and lets a decision append only if no newer event matches its query: what was read is the consistency boundary
(dcb.events). After a conflict the conflicting events are folded in, and the decision is made again without a second
read; after a long pause the store is read again. `epochal.deciders.loop` has the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Generic, Literal, TypeVar, cast, overload

from epochal.deciders.loop import (
    ATTEMPTS,
    Answer,
    Decision,
    DecisionSource,
    Earlier,
    Moved,
    decision_of,
    without_result,
)
from epochal.deciders.model_snapshots import ModelSnapshots
from epochal.deciders.projections import Projection
from epochal.deciders.stream_decisions import encode_event
from epochal.errors import ConditionUnmet, InvalidInput
from epochal.layout.queries import IdTaken
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.capacity import NOTHING, Capacity
from epochal.model.events import Event, Recorded
from epochal.model.kinds import must_be, must_be_whole
from epochal.model.outcomes import Conflict
from epochal.model.plain_functions import must_be_done, must_be_plain, must_be_state
from epochal.model.positions import Position
from epochal.model.tag_answers import Seen
from epochal.model.tags import Query, own_tags
from epochal.store.driver import Driver
from epochal.store.queueing import Key, QueuePlace
from epochal.store.tagged import TaggedStore

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The states of a model's projections, and the position up to which they were read.

    Attributes:
        states: states by the names of the projections.
        query: the query that selects the events of all projections together.
        position: position up to which the events were read, for an append `after` it.
    """

    states: Mapping[str, Any]
    query: Query
    position: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The outcome of a decision on tagged events.

    Attributes:
        events: the events that were appended; none if the decision stored nothing.
        model: the model that was decided on, without the events that the decision appended.
        position: position of the model's query that includes the appended events: the next append under that query may
            go `after` it.
        versions: number of events of each tag, the new ones included, as in `Appended`.
        replayed: whether an earlier call with the idempotency key appended the events.
        capacity: capacity that the decision's read and all its appends consumed.
    """

    events: tuple[Recorded, ...]
    model: Model
    position: Position
    versions: Mapping[str, int] = field(default_factory=dict)
    replayed: bool = field(default=False, compare=False)
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


Decide = Callable[[Mapping[str, Any]], Answer[Event]]
"""A function that takes the states by projection, and returns the events to append and timers. It may raise the
domain's own errors.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """Decides on commands by queries over tagged events, and appends the events that are decided.

    Attributes:
        store: the store of tagged events.
        attempts: maximum number of times that one command is decided on before `Contended` is raised.
        snapshots: snapshots of models, so that a decision reads only later events; None to read all events each time.
    """

    store: TaggedStore
    attempts: int = ATTEMPTS
    snapshots: ModelSnapshots | None = None

    def __post_init__(self) -> None:
        must_be_whole(self.attempts, "attempts", 1)

    def model(self, projections: Mapping[str, Projection[Any]]) -> Model:
        """Read the events of all projections at once, and fold them into a model; store a snapshot if due.

        Args:
            projections: projections by the names that their states get in the model; at least one.
        """
        query = query_of(projections)
        initial, newer = self._read_newer(query, projections)
        states = _fold(initial, projections, newer.events)
        if self.snapshots is not None and len(newer.events) >= self.snapshots.every:
            self.snapshots.keep(query, states, newer.position)
        return Model(states=states, query=query, position=newer.position)

    @overload
    def handle(
        self,
        projections: Mapping[str, Projection[Any]],
        decide: Decide,
        *,
        with_result: Literal[False] = False,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Decided: ...

    @overload
    def handle(
        self,
        projections: Mapping[str, Projection[Any]],
        decide: Callable[[Mapping[str, Any]], tuple[R, Answer[Event]]],
        *,
        with_result: Literal[True],
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> tuple[R, Decided]: ...

    def handle(
        self,
        projections: Mapping[str, Projection[Any]],
        decide: Decide | Callable[[Mapping[str, Any]], tuple[Any, Answer[Event]]],
        *,
        with_result: bool = False,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Decided | tuple[Any, Decided]:
        """Append the events that `decide` returns; decide again if newer ones match. Return the outcome.

        `decide` is called again whenever another writer was faster, so it must be free of side effects.

        Args:
            projections: projections by name, whose states `decide` gets.
            decide: returns the events to append, and timers (`later`), none if there is nothing to do, or `WithAlso`.
            with_result: whether `decide` returns a pair of a result and the events. The answer is then a pair of the
                result and the outcome. For a repeat under a key, `decide` is called again on the model of the first
                call, only for its result.
            metadata: metadata for the events of this decision, however often it is made: what `epochal.metadata` takes.
                They take precedence over a block around the call; an event's own metadata takes precedence over them.
            idempotency_key: identifies one decision within its store: a repeat of the command with its key is answered
                like the first, whatever has been appended by then, and its events exist once. Only the key identifies a
                repeat, not the command; and its model is of the events whose places are before the first's. A decision
                that appended nothing is made again.

        Raises:
            InvalidInput: metadata that a block would refuse; events with ids beside a key, which makes them.
            Contended: others were faster at every attempt.
        """
        must_be_plain(decide, "decide")
        decision: Callable[..., Any] = decide if with_result else partial(without_result, decide)
        source = self._on(projections, decision, idempotency_key, with_result=with_result)
        result, decided = source.decide(attempts=self.attempts, metadata=metadata)
        return (result, decided) if with_result else decided

    def _on(
        self,
        projections: Mapping[str, Projection[Any]],
        decision: Callable[[Mapping[str, Any]], tuple[R, Answer[Event]]],
        key: str | None,
        *,
        with_result: bool,
    ) -> _OnQuery[R]:
        """Build the decision source of these projections."""
        return _OnQuery(
            decisions=self, projections=projections, decision=decision, key=key, with_result=with_result
        )

    def _read_newer(
        self, query: Query, projections: Mapping[str, Projection[Any]]
    ) -> tuple[Mapping[str, Any], Seen]:
        """Return states to fold from, and the events to fold: those after a snapshot, or all."""
        snapshot = None if self.snapshots is None else self.snapshots.find(query, projections.keys())
        if snapshot is not None:
            # A position of another store, or of a table that was restored, is refused.
            with suppress(InvalidInput):
                return snapshot[0], self.store.read(query, after=snapshot[1])
        return _initial_states(projections), self.store.read(query)


@dataclass(frozen=True, kw_only=True)
class _OnQuery(DecisionSource[Model, Decision[R, Event], R, Decided], Generic[R]):
    """A decision on a query. Its model comes from one read, so it is never out of date."""

    decisions: Decisions
    projections: Mapping[str, Projection[Any]]
    decision: Callable[[Mapping[str, Any]], tuple[R, Answer[Event]]]
    key: str | None
    with_result: bool

    @property
    def driver(self) -> Driver:
        return self.decisions.store.driver

    @property
    def queue_keys(self) -> Sequence[Key]:
        """The tags that an append on the query checks."""
        return self.decisions.store.queues_of(query_of(self.projections))

    def over(self, driver: Driver, place: QueuePlace | None = None) -> _OnQuery[R]:  # noqa: ARG002  reads bring the ends
        store = replace(self.decisions.store, driver=driver)
        return replace(self, decisions=replace(self.decisions, store=store))

    def load(self) -> Model | Earlier[R, Decided]:
        return self._unless_decided(self.decisions.model(self.projections))

    def plan(self, base: Model) -> Decision[R, Event]:
        return decision_of(self.decision(base.states))

    def conclude_without_append(self, base: Model, plan: Decision[R, Event]) -> tuple[R, Decided]:
        return plan.result, Decided(events=(), model=base, position=base.position)

    def append(
        self,
        base: Model,
        plan: Decision[R, Event],
        began: float,  # noqa: ARG002  a model has no age
    ) -> tuple[R, Decided] | Earlier[R, Decided] | Moved[Model, R, Decided]:
        """Append unless newer events match the model's query; return the outcome, earlier answer or `Moved`."""
        store = self.decisions.store
        try:
            answer = store.try_append(
                [encode_event(None, event) for event in (*plan.events, *plan.timers)],
                fail_if=base.query,
                after=base.position,
                idempotency_key=self.key,
                also=plan.also,
            )
        except IdTaken:
            if self.key is None or not (earlier := store.appended(self.key)):
                raise
            return self._as_earlier(earlier)
        if isinstance(answer, Conflict):
            if answer.unmet:
                raise ConditionUnmet(list(answer.unmet), answer)
            return Moved(name="the decision", onward=partial(self._onward, base, answer))
        if answer.replayed and self.key is not None:
            return self._as_earlier(answer.events)
        return plan.result, Decided(
            events=answer.events, model=base, position=answer.position, versions=answer.versions
        )

    def _onward(self, base: Model, conflict: Conflict, newest: bool) -> Model | Earlier[R, Decided]:
        """Update the model after a conflict, by its events or by another read."""
        model = with_newer_events(base, self.projections, conflict)
        return self._unless_decided(
            model if newest else catch_up(self.decisions.store, model, self.projections)
        )

    def _unless_decided(self, model: Model) -> Model | Earlier[R, Decided]:
        """Return the model, or the answer of an earlier call with the same key.

        The key is looked up after the model was read: its events are found here, or conflict.
        """
        events = () if self.key is None else self.decisions.store.appended(self.key)
        return self._as_earlier(events) if events else model

    def _reconstruct_answer(self, events: tuple[Recorded, ...]) -> tuple[R, Decided]:
        """Reconstruct the answer of an earlier call with the same key, by folding the events before it."""
        query, store = query_of(self.projections), self.decisions.store
        answer = store.read(query)
        before = [event for event in answer.events if event.key < events[0].key]
        position = before[-1].position if before else None
        model = Model(
            states=_fold(_initial_states(self.projections), self.projections, before),
            query=query,
            position=store.beginning(query) if position is None else position,
        )
        decided = Decided(
            events=events,
            model=model,
            position=answer.position,
            versions=store.counts(own_tags(events)),
            replayed=True,
        )
        if not self.with_result:
            return cast("R", None), decided
        return decision_of(self.decision(model.states)).result, decided


def query_of(projections: Mapping[str, Projection[Any]]) -> Query:
    """Return the query for the events of any of these projections; raise `InvalidInput` if there are none.

    Args:
        projections: projections by name.

    Raises:
        InvalidInput: there are none, or one is no projection.
    """
    must_be(Mapping, projections, "projections", "projections by name")
    if not projections:
        raise InvalidInput("projections", "must not be empty")
    for name, projection in projections.items():
        must_be(Projection, projection, f"projections.{name}", "a projection")
    items = dict.fromkeys(item for projection in projections.values() for item in projection.query.items)
    return Query(items=tuple(items))


def _initial_states(projections: Mapping[str, Projection[Any]]) -> dict[str, Any]:
    """Return the initial states of projections."""
    return {name: must_be_done(projection.initial(), "initial") for name, projection in projections.items()}


def catch_up(store: TaggedStore, model: Model, projections: Mapping[str, Projection[Any]]) -> Model:
    """Return a model updated with all newer events in a store."""
    return with_newer_events(model, projections, store.read(model.query, after=model.position))


def with_newer_events(
    model: Model, projections: Mapping[str, Projection[Any]], new: Seen | Conflict
) -> Model:
    """Return a model updated with these newer events."""
    states = _fold(model.states, projections, new.events)
    return Model(states=states, query=model.query, position=new.position)


def _fold(
    states: Mapping[str, Any], projections: Mapping[str, Projection[Any]], events: Sequence[Recorded]
) -> dict[str, Any]:
    """Fold events into the states of the projections that match them, and return the new states."""
    folded = dict(states)
    for event in events:
        for name, projection in projections.items():
            if projection.query.matches(event.type, event.tags):
                before = folded[name]
                folded[name] = must_be_state(
                    projection.evolve(before, event), before, projection.initial, event
                )
    return folded
