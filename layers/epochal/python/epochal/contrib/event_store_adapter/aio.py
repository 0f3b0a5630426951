"""Aggregates and deciders on them, awaited.

async with AsyncPlace() as place:
    aggregates = AsyncAggregates(open_aggregates("journal", "snapshot", place=place))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from epochal.aio.bridge import reads, writes
from epochal.contrib.event_store_adapter.deciders import AggregateDeciders
from epochal.contrib.event_store_adapter.snapshot_policies import ONE_BATCH, Policy
from epochal.contrib.event_store_adapter.state_codecs import StateCodec
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.deciders.codecs import EventCodec
from epochal.deciders.loop import ATTEMPTS
from epochal.deciders.on_streams import Decider
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.kinds import must_be

if TYPE_CHECKING:
    from collections.abc import Callable

    from epochal.contrib.event_store_adapter.deciders import AggregateTransacted, Standing
    from epochal.contrib.event_store_adapter.ids import AggregateId
    from epochal.deciders.loop import Answer

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class AsyncAggregates:
    """Aggregates for asynchronous programs: each method awaits that of `AggregateStore`.

    It raises the same errors. A write that is cancelled goes on to its end, and `cancelled_write` tells its outcome.

    Attributes:
        store: the store of aggregates, from an `AsyncPlace` or in memory.
    """

    store: AggregateStore

    append = writes(AggregateStore.append)
    try_append = writes(AggregateStore.try_append)
    persist_event = writes(AggregateStore.persist_event)
    persist_event_and_snapshot = writes(AggregateStore.persist_event_and_snapshot)
    lock = reads(AggregateStore.lock)
    latest_snapshot = reads(AggregateStore.latest_snapshot)
    replay = reads(AggregateStore.replay)
    events_after = reads(AggregateStore.events_after)
    retire = writes(AggregateStore.retire)


@dataclass(frozen=True, kw_only=True)
class AsyncAggregateDeciders(Generic[C, S, E]):
    """Deciders on aggregates for asynchronous programs: each method awaits that of `AggregateDeciders`.

    It raises the same errors.

    Attributes:
        store: the store of aggregates, opened with an `AsyncPlace` or in memory.
        attempts: number of decisions on one command before `Contended` is raised, as in `AggregateDeciders`.
        codec: codec of events, as in `AggregateDeciders`.
        decider: the domain's rules, as in `AggregateDeciders`.
        policy: function that says which appends store a snapshot, as in `AggregateDeciders`.
        state: codec of the states that are stored as snapshots, as in `AggregateDeciders`.
    """

    store: AsyncAggregates
    decider: Decider[C, S, E]
    codec: EventCodec[E]
    state: StateCodec[S]
    policy: Policy = ONE_BATCH
    attempts: int = ATTEMPTS
    deciders: AggregateDeciders[C, S, E] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        must_be(AsyncAggregates, self.store, "store", "an AsyncAggregates")
        object.__setattr__(self, "deciders", self._blocking())

    def _blocking(self) -> AggregateDeciders[C, S, E]:
        """Build the blocking `AggregateDeciders` whose calls this class awaits."""
        return AggregateDeciders(
            store=self.store.store,
            decider=self.decider,
            codec=self.codec,
            state=self.state,
            policy=self.policy,
            attempts=self.attempts,
        )

    if TYPE_CHECKING:  # type checkers cannot follow `writes` through the forms of `handle`

        @overload
        async def handle(
            self,
            aggregate: AggregateId,
            command: C,
            *,
            known: Standing[S] | None = None,
            idempotency_key: str | None = None,
        ) -> AggregateTransacted[S, E]: ...

        @overload
        async def handle(
            self,
            aggregate: AggregateId,
            *,
            decide: Callable[[S], Answer[E]],
            with_result: Literal[False] = False,
            known: Standing[S] | None = None,
            idempotency_key: str | None = None,
        ) -> AggregateTransacted[S, E]: ...

        @overload
        async def handle(
            self,
            aggregate: AggregateId,
            *,
            decide: Callable[[S], tuple[R, Answer[E]]],
            with_result: Literal[True],
            known: Standing[S] | None = None,
            idempotency_key: str | None = None,
        ) -> tuple[R, AggregateTransacted[S, E]]: ...

        async def handle(self, aggregate: AggregateId, command: Any = None, **options: Any) -> Any:
            """Decide as the blocking form does."""

    else:
        handle = writes(AggregateDeciders.handle, of="deciders")
    load = reads(AggregateDeciders[C, S, E].load, of="deciders")
    query = reads(AggregateDeciders[C, S, E].query, of="deciders")
