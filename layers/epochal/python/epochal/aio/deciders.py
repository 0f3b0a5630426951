"""Deciders on streams and on tagged events, awaited."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from epochal.aio.bridge import finished, reads, run, writes, written
from epochal.store import joint_decisions
from epochal.store.deciders import Deciders, Party, Transacted
from epochal.store.decisions import Decisions
from epochal.store.loading import REQUIRE_LOAD, AllowStale, Load

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")
R = TypeVar("R")


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True)
class AsyncDeciders(Generic[C, S, E]):
    """Deciders for asynchronous programs: each method is that of `Deciders`, awaited, and raises what it does.

    `decide` and `evolve` are plain functions, as before: they must not wait. A transaction that is cancelled goes on to
    its end, and `cancelled_write` tells its outcome.

    Attributes:
        deciders: over the `store` of an `AsyncStreams`.
    """

    deciders: Deciders[C, S, E]

    async def handle(
        self,
        stream: str,
        command: C,
        *,
        load: Load | AllowStale = REQUIRE_LOAD,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Transacted[S, E]:
        """`Deciders.handle`."""
        return await finished(
            run(
                self.deciders.handle,
                stream,
                command,
                load=load,
                metadata=metadata,
                idempotency_key=idempotency_key,
            )
        )

    async def transact(
        self,
        stream: str,
        decide: Callable[[S], Sequence[E]],
        *,
        load: Load | AllowStale = REQUIRE_LOAD,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Transacted[S, E]:
        """`Deciders.transact`."""
        return await finished(
            run(
                self.deciders.transact,
                stream,
                decide,
                load=load,
                metadata=metadata,
                idempotency_key=idempotency_key,
            )
        )

    async def transact_result(
        self,
        stream: str,
        decide: Callable[[S], tuple[R, Sequence[E]]],
        *,
        load: Load | AllowStale = REQUIRE_LOAD,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> tuple[R, Transacted[S, E]]:
        """`Deciders.transact_result`."""
        return await finished(
            run(
                self.deciders.transact_result,
                stream,
                decide,
                load=load,
                metadata=metadata,
                idempotency_key=idempotency_key,
            )
        )

    async def query(
        self,
        stream: str,
        projection: Callable[[S], R],
        *,
        load: Literal[Load.REQUIRED] | AllowStale = REQUIRE_LOAD,
    ) -> R:
        """`Deciders.query`."""
        return await run(self.deciders.query, stream, projection, load=load)

    def on(self, stream: str) -> Party[S, E]:
        """`Deciders.on`, which asks for nothing: a party to `transact_all`."""
        return self.deciders.on(stream)


@dataclass(frozen=True, slots=True)
class AsyncDecisions:
    """Decisions on tagged events: each method is that of `Decisions`, awaited, and raises what it does.

    Attributes:
        decisions: over the `store` of an `AsyncTaggedEvents`.
    """

    decisions: Decisions

    model = reads(Decisions.model, of="decisions")
    decide = writes(Decisions.decide, of="decisions")
    decide_result = writes(Decisions.decide_result, of="decisions")


transact_all = written(joint_decisions.transact_all)
"""`epochal.store.joint_decisions.transact_all`, of parties that `AsyncDeciders.on` makes."""

transact_all_result = written(joint_decisions.transact_all_result)
"""`epochal.store.joint_decisions.transact_all_result`, likewise."""

transact_with = written(joint_decisions.transact_with)
"""`epochal.store.joint_decisions.transact_with`, likewise."""
