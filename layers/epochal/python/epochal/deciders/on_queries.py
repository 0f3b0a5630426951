"""Decisions on tagged events: several small projections, read at once, and one conditional append.

A projection is a query and a fold. A model asks for what any of its projections asks for, folds each over the
events that concern it, and lets a decision append only if nothing that the model was made of has changed: the
consistency boundary is drawn by what was looked at (dcb.events). Where another was faster, the events that
stood in the way are folded in and the decision is made again, without a second read; after long pauses
(`epochal.deciders.loop`, which has the loop) with one.

A decision on a stream and a query is stored in the stream, if that is at the head that was read and no event has come
that the query matches. One that stores nothing is answered once the stream's head was read again after the query, and
had not moved.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Generic, TypeVar, cast, overload

from epochal.codec import json
from epochal.deciders.codecs import EventCodec
from epochal.deciders.folding import Loaded
from epochal.deciders.loading import REQUIRE_LOAD, AllowStale, Load
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
from epochal.deciders.on_streams import DecisionBase, OnStreams, Party, Transacted, check_access, encoded
from epochal.deciders.snapshot_marks import UNREADABLE
from epochal.errors import ConditionUnmet, InvalidInput, TooLarge, Unavailable
from epochal.layout.queries import IdTaken
from epochal.layout.streams import Also, Head, Result
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.bodies import Claim
from epochal.model.events import Event, Recorded, Unfold
from epochal.model.kinds import must_be_done, must_be_plain, must_be_state, must_be_whole
from epochal.model.tags import Query, QueryItem, Seen, own_tags, read_position, write_position
from epochal.model.versions import NOTHING, Capacity, Conflict, Position, StreamAppend
from epochal.store.answers import token_of
from epochal.store.appending import AppendOptions, append_on
from epochal.store.driver import Driver
from epochal.store.encoding import check_key
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedEvents, TaggedStore

E = TypeVar("E")
R = TypeVar("R")
S = TypeVar("S")


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class Projection(Generic[S]):
    """A question about past events: a query and a fold.

    Attributes:
        query: selects the events that answer it.
        initial: returns the answer before any event.
        evolve: returns the answer after one more event; must not change the one it is given.
    """

    query: Query
    initial: Callable[[], S]
    evolve: Callable[[S, Recorded], S]

    def __post_init__(self) -> None:
        """Check that the functions are neither async nor generators."""
        must_be_plain(self.initial, "initial")
        must_be_plain(self.evolve, "evolve")


@overload
def projection(
    *, tags: Sequence[str], on: Mapping[str, Callable[[S, Recorded], S]], initial: S
) -> Projection[S]: ...


@overload
def projection(
    *, tags: Sequence[str], codec: EventCodec[E], evolve: Callable[[S, E], S], initial: S
) -> Projection[S]: ...


def projection(
    *,
    tags: Sequence[str],
    initial: S,
    on: Mapping[str, Callable[[S, Recorded], S]] | None = None,
    codec: EventCodec[Any] | None = None,
    evolve: Callable[[S, Any], S] | None = None,
) -> Projection[S]:
    """Build a projection over the events that have all of `tags`, by type functions or by a codec.

    Args:
        tags: tags that the events have.
        initial: the answer before any event.
        on: a function for each event type, which takes stored events.
        codec: decodes events into those of the domain instead. Only this codec's types are queried, so a small codec of
            its own, `json_codec` of a class or two, keeps the boundary of a decision small.
        evolve: with a codec, returns the answer after one more event.

    Raises:
        InvalidInput: neither `on` nor `codec` with `evolve`.
    """
    if codec is None:
        if on is None:
            raise InvalidInput("on", "must be given, or else `codec` and `evolve`")
        return _of_functions(tags, on, initial)
    if evolve is None or on is not None:
        raise InvalidInput("evolve", "must be given with a codec, which takes the place of `on`")
    must_be_plain(evolve, "evolve")
    item = QueryItem(types=codec.types, tags=tags)

    def typed(state: S, event: Recorded) -> S:
        """Decode an event and fold it into the state."""
        read = codec.read(event)
        return state if read is None else evolve(state, read)

    return Projection(query=Query(items=(item,)), initial=lambda: initial, evolve=typed)


def _of_functions(
    tags: Sequence[str], on: Mapping[str, Callable[[S, Recorded], S]], initial: S
) -> Projection[S]:
    """Build a projection from a function for each event type."""
    for kind, function in on.items():
        must_be_plain(function, f"on[{kind!r}]")
    item = QueryItem(types=on, tags=tags)
    return Projection(
        query=Query(items=(item,)),
        initial=lambda: initial,
        evolve=lambda state, event: on[event.type](state, event),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The states of a model's projections, and the position up to which they were read.

    Attributes:
        states: states by the names of the projections.
        query: query of all projections together.
        position: position of the read.
    """

    states: Mapping[str, Any]
    query: Query
    position: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The outcome of a decision.

    Attributes:
        events: appended events; none if there was nothing to do.
        model: what was decided on, before these events.
        position: position of the model's query including these events: the next append under that query may go `after`
            it.
        versions: number of events of each tag including these, as in `Appended`.
        replayed: whether an earlier call with the idempotency key appended them.
        capacity: what its read and all its appends consumed.
    """

    events: tuple[Recorded, ...]
    model: Model
    position: Position
    versions: Mapping[str, int] = field(default_factory=dict)
    replayed: bool = field(default=False, compare=False)
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


Decide = Callable[[Mapping[str, Any]], Answer[Event]]
"""Takes the states by projection and returns the events to append, and timers. It may raise the domain's own errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """Makes decisions on a store of tagged events.

    Attributes:
        store: the store.
        attempts: number of decisions on one command before `Contended` is raised.
        snapshots: where models are stored, so that a decision reads only later events; None reads all.
    """

    store: TaggedStore
    attempts: int = ATTEMPTS
    snapshots: ModelSnapshots | None = None

    def __post_init__(self) -> None:
        must_be_whole(self.attempts, "attempts", 1)

    def model(self, projections: Mapping[str, Projection[Any]]) -> Model:
        """Read the events of all projections at once, and fold them into a model."""
        if not projections:
            raise InvalidInput("projections", "must not be empty")
        query = _query_of(projections)
        begun, seen = self._seen(query, projections)
        states = _folded(begun, projections, seen.events)
        if self.snapshots is not None and len(seen.events) >= self.snapshots.every:
            self.snapshots.keep(query, states, seen.position)
        return Model(states=states, query=query, position=seen.position)

    def decide(
        self,
        projections: Mapping[str, Projection[Any]],
        decide: Decide,
        *,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Decided:
        """Append the events that `decide` returns, unless newer events match the projections; retry then.

        `decide` is called again whenever another writer was faster, so it must be free of side effects.

        Args:
            metadata: metadata for the events of this decision, however often it is made: what `epochal.metadata` takes.
                They win over a block around the call, and what an event says itself wins over them.
            idempotency_key: identifies one decision within its store: a repeat of the command with its key is answered
                like the first, whatever has been appended by then, and its events exist once. Only the key identifies a
                repeat, not the command; and its model is of the events whose places are before the first's. A decision
                that appended nothing is made again.

        Raises:
            InvalidInput: metadata that a block would refuse; events with ids beside a key, which makes them.
            Contended: others were faster at every attempt.
        """
        must_be_plain(decide, "decide")
        decision = partial(without_result, decide)
        return self._on(projections, decision, idempotency_key).decide(
            attempts=self.attempts, metadata=metadata
        )[1]

    def decide_result(
        self,
        projections: Mapping[str, Projection[Any]],
        decide: Callable[[Mapping[str, Any]], tuple[R, Answer[Event]]],
        *,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> tuple[R, Decided]:
        """Decide like `decide`, with a function that also returns a result; return it with the outcome.

        For a repeat the function is called again on the model of the first call, only for its result.
        """
        must_be_plain(decide, "decide")
        return self._on(projections, decide, idempotency_key, answers=True).decide(
            attempts=self.attempts, metadata=metadata
        )

    def _on(
        self,
        projections: Mapping[str, Projection[Any]],
        decision: Callable[[Mapping[str, Any]], tuple[R, Answer[Event]]],
        key: str | None,
        *,
        answers: bool = False,
    ) -> _OnQuery[R]:
        """Build the decision source of these projections."""
        return _OnQuery(decisions=self, projections=projections, decision=decision, key=key, answers=answers)

    def _seen(
        self, query: Query, projections: Mapping[str, Projection[Any]]
    ) -> tuple[Mapping[str, Any], Seen]:
        """Return states to fold from, and the events to fold: those after a snapshot, or all."""
        kept = None if self.snapshots is None else self.snapshots.find(query, projections.keys())
        if kept is not None:
            # A position of another store, or of a table that was restored, is refused.
            with suppress(InvalidInput):
                return kept[0], self.store.read(query, after=kept[1])
        return _begun(projections), self.store.read(query)


@dataclass(frozen=True, kw_only=True)
class _OnQuery(DecisionSource[Model, Decision[R, Event], R, Decided], Generic[R]):
    """A decision on a query. Its model is made by one read, so it is never an old one."""

    decisions: Decisions
    projections: Mapping[str, Projection[Any]]
    decision: Callable[[Mapping[str, Any]], tuple[R, Answer[Event]]]
    key: str | None
    answers: bool

    @property
    def driver(self) -> Driver:
        return self.decisions.store.driver

    def over(self, driver: Driver) -> _OnQuery[R]:
        store = replace(self.decisions.store, driver=driver)
        return replace(self, decisions=replace(self.decisions, store=store))

    def load(self) -> Model | Earlier[R, Decided]:
        return self._free(self.decisions.model(self.projections))

    def plan(self, base: Model) -> Decision[R, Event]:
        return decision_of(self.decision(base.states))

    def unchanged(self, base: Model, plan: Decision[R, Event]) -> tuple[R, Decided]:
        return plan.result, Decided(events=(), model=base, position=base.position)

    def append(
        self,
        base: Model,
        plan: Decision[R, Event],
        since: float,  # noqa: ARG002  a model has no age
    ) -> tuple[R, Decided] | Earlier[R, Decided] | Moved[Model, R, Decided]:
        """Append the decided events on condition that no newer event matches the model's query."""
        store = self.decisions.store
        try:
            answer = store.try_append(
                [encoded(None, event) for event in (*plan.events, *plan.timers)],
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
        model = moved(base, self.projections, conflict)
        return self._free(model if newest else caught_up(self.decisions.store, model, self.projections))

    def _free(self, model: Model) -> Model | Earlier[R, Decided]:
        """Return the model, or the answer of an earlier call with the same key.

        The key is looked up after the model was read: its events are found here, or conflict.
        """
        made = () if self.key is None else self.decisions.store.appended(self.key)
        return self._as_earlier(made) if made else model

    def _earlier(self, events: tuple[Recorded, ...]) -> tuple[R, Decided]:
        """Reconstruct the answer of an earlier call with the same key, by folding the events before it."""
        query, store = _query_of(self.projections), self.decisions.store
        seen = store.read(query)
        before = [event for event in seen.events if event.key < events[0].key]
        position = before[-1].position if before else None
        model = Model(
            states=_folded(_begun(self.projections), self.projections, before),
            query=query,
            position=store.beginning(query) if position is None else position,
        )
        decided = Decided(
            events=events,
            model=model,
            position=seen.position,
            versions=store.counts(own_tags(events)),
            replayed=True,
        )
        if not self.answers:
            return cast("R", None), decided
        return decision_of(self.decision(model.states)).result, decided


def _query_of(projections: Mapping[str, Projection[Any]]) -> Query:
    """Return the query for the events of any of these projections."""
    items = dict.fromkeys(item for each in projections.values() for item in each.query.items)
    return Query(items=tuple(items))


def _begun(projections: Mapping[str, Projection[Any]]) -> dict[str, Any]:
    """Return the initial states of projections."""
    return {name: must_be_done(each.initial(), "initial") for name, each in projections.items()}


def caught_up(store: TaggedStore, model: Model, projections: Mapping[str, Projection[Any]]) -> Model:
    """Return a model updated with all newer events in a store."""
    return moved(model, projections, store.read(model.query, after=model.position))


def moved(model: Model, projections: Mapping[str, Projection[Any]], new: Seen | Conflict) -> Model:
    """Return a model updated with these newer events."""
    states = _folded(model.states, projections, new.events)
    return Model(states=states, query=model.query, position=new.position)


def _folded(
    states: Mapping[str, Any], projections: Mapping[str, Projection[Any]], events: Sequence[Recorded]
) -> dict[str, Any]:
    """Fold events into the states of the projections that they match."""
    folded = dict(states)
    for event in events:
        for name, each in projections.items():
            if each.query.matches(event.type, event.tags):
                before = folded[name]
                folded[name] = must_be_state(each.evolve(before, event), before, each.initial, event)
    return folded


# Decisions on a stream and a query.


def transact_with(
    party: Party[S, E],
    projections: Mapping[str, Projection[Any]],
    decide: Callable[[S, Mapping[str, Any]], Answer[E]],
    *,
    load: Load | AllowStale = REQUIRE_LOAD,
    attempts: int = ATTEMPTS,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> Transacted[S, E]:
    """Decide on a stream's state and on projections; store the events if both still hold.

    The stream may be in the projections, too: by events of its own that carry tags.

    Args:
        party: stream and its deciders.
        projections: over tagged events of the same table; they are the condition of the append.
        decide: takes the state and the projections' states, and returns events.
        load, attempts, metadata, idempotency_key: as in `transact_all` on this stream alone.

    Raises:
        InvalidInput: the layout keeps no tags; or what `Deciders.transact` raises it for.
        StreamDeleted, Contended, ConditionUnmet, OutcomeUndetermined, Unavailable, EventsPruned, UnknownType: as
            `Deciders.transact`.
    """
    if idempotency_key is not None:
        check_key(idempotency_key)
        check_access(party.deciders.access)
    decided = _StreamAndQuery(
        parties=(party,),
        streams=party.deciders.streams,
        projections=projections,
        decision=partial(without_result, decide),
        how=load,
        key=idempotency_key,
    ).decide(attempts=attempts, metadata=metadata)[1]
    return replace(decided.parties[0], capacity=decided.capacity)


@dataclass(frozen=True, kw_only=True)
class _StreamAndQuery(OnStreams[R], Generic[R]):
    """A decision on a stream and a query.

    It is confirmed if the stream, read after the model, is still as it was loaded.
    """

    projections: Mapping[str, Projection[Any]]

    def load(self) -> DecisionBase | Earlier[R, Any]:
        (party,) = self.parties
        model = Decisions(store=self._tagged)
        loaded = (party.deciders.loader.load(party.stream, self.how),)
        return self._free(loaded, DecisionBase(loaded=loaded, model=model.model(self.projections)))

    def confirmed(self, base: DecisionBase) -> bool:
        return base.confirmed

    def confirm(self, base: DecisionBase) -> DecisionBase | Earlier[R, Any]:
        """Read the stream again; update the model if the stream has moved."""
        ((party,), (before,)) = self.parties, base.loaded
        loaded = party.deciders.loader.read(party.stream, before)
        if token_of(loaded.known) == token_of(before.known):
            return DecisionBase(loaded=(loaded,), model=base.model)
        free = self._free((loaded,), base)
        return free if isinstance(free, Earlier) else replace(free, model=self._caught_up(base.model))

    def _append(
        self, base: DecisionBase, appends: Sequence[StreamAppend], also: Also
    ) -> Mapping[str, Result[Head] | None] | Moved[DecisionBase, R, Any]:
        """Append to the stream if it is as it was read, and no newer event matches the query."""
        (only,) = appends
        options = AppendOptions(fail_if=base.model.query, after=base.model.position, also=also)
        result = append_on(self.streams, {only.stream: base.loaded[0].known}, [only], options, self.key)
        if not isinstance(result, Conflict):
            return result
        if result.unmet:
            raise ConditionUnmet(list(result.unmet), result)

        def onward(newest: bool) -> DecisionBase:
            """Update the model after a conflict."""
            model = moved(base.model, self.projections, result)
            return replace(base, model=model if newest else self._caught_up(model), confirmed=False)

        return Moved(name=only.stream, onward=onward)

    def _free(
        self, loaded: Sequence[Loaded[Any]], before: DecisionBase | None = None
    ) -> DecisionBase | Earlier[R, Any]:
        """Return the unconfirmed base, or the answer of an earlier call with the same key."""
        free = super()._free(loaded, before)
        return free if isinstance(free, Earlier) else replace(free, confirmed=False)

    @property
    def _tagged(self) -> TaggedEvents:
        return self.streams.tagged

    def _caught_up(self, model: Model) -> Model:
        return caught_up(self._tagged, model, self.projections)


# Snapshots of decision models: what projections were folded to up to a position. A decision reads what came after.
#
# A snapshot is an unfold in a stream of its own, without events, named after the model and the hash of its query. It
# only saves reading: the read that follows is of the same query, after the snapshot's position, and the decision's
# condition rests on the position of that read. So a snapshot that is old costs a longer read, and nothing else.
#
#     of another version, or of other projections     it is passed over
#     its position was never one of this store's      likewise: the read refuses it, and all is read
#     `load` refuses it, or makes no mapping of it    likewise
#     two keep one at the same moment                 either is a fold of all up to its position

EVERY: Final = 100

_TYPE: Final = "Model"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSnapshots:
    """Stores the folded models of decisions, in streams.

    Attributes:
        streams: streams of pages, in the table of the events or another.
        name: name of the model, and category of its streams, so that no other streams may have it.
        version: version of the projections; snapshots of another version are ignored.
        dump, load: convert the states of all projections, by name, to bytes and back. `load` raises `CorruptData` or a
            `ValueError`, `LookupError`, `TypeError` or `AttributeError` for what it cannot read.
        every: number of events that are folded before another snapshot is stored.
    """

    streams: Streams
    name: str
    version: str
    dump: Callable[[Mapping[str, Any]], bytes]
    load: Callable[[bytes], Mapping[str, Any]]
    every: int = EVERY

    def find(self, query: Query, names: Collection[str]) -> tuple[Mapping[str, Any], Position] | None:
        """Return the stored states of these projections and their position; None without a usable snapshot."""
        found = self.streams.load(self._stream(query, names))
        if found is None or not found.unfolds:
            return None
        kept = found.unfolds[0]
        if isinstance(kept.data, Claim) or isinstance(kept.meta, Claim):
            return None
        try:
            told = json.loads(kept.meta)
            if told["version"] != self.version:
                return None
            position = read_position(told["position"])
            states: object = self.load(kept.data)
        except UNREADABLE:
            return None
        # A user's `load` may return anything: `json.loads` does.
        return (states, position) if isinstance(states, Mapping) and states.keys() == set(names) else None

    def keep(self, query: Query, states: Mapping[str, Any], position: Position) -> None:
        """Store the folded states of a model; if that fails, the next decision reads more."""
        meta = json.dumps({"version": self.version, "position": write_position(position)})
        unfold = Unfold(type=_TYPE, data=self.dump(states), meta=meta)
        with suppress(Unavailable, TooLarge):
            self.streams.try_append(self._stream(query, states), [], unfolds=[unfold])

    def _stream(self, query: Query, names: Collection[str]) -> str:
        """Return the name of the stream for the snapshots of a query and these projections."""
        items = sorted([sorted(item.types), sorted(item.tags)] for item in query.items)
        digest = hashlib.sha256(json.dumps([sorted(names), items])).hexdigest()
        return f"{self.name}-{digest[:32]}"
