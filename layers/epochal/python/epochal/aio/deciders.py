"""Deciders on streams and on tagged events, awaited."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, overload

from epochal.aio.bridge import finished, reads, run, writes
from epochal.model.dcb import TaggedEvent
from epochal.store import joint_decisions
from epochal.store.deciders import Deciders, Party, Transacted
from epochal.store.deciding import ATTEMPTS
from epochal.store.decisions import Decided, Decisions, Projection
from epochal.store.joint_decisions import AllTransacted
from epochal.store.loading import REQUIRE_LOAD, AllowStale, Load

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")
R = TypeVar("R")
S2 = TypeVar("S2")
E2 = TypeVar("E2")
S3 = TypeVar("S3")
E3 = TypeVar("E3")


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
    """Decisions on tagged events, likewise.

    Attributes:
        decisions: over the `store` of an `AsyncTaggedEvents`.
    """

    decisions: Decisions

    model = reads(Decisions.model, of="decisions")
    decide = writes(Decisions.decide, of="decisions")

    async def decide_result(
        self,
        projections: Mapping[str, Projection[Any]],
        decide: Callable[[Mapping[str, Any]], tuple[R, Sequence[TaggedEvent]]],
        *,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> tuple[R, Decided]:
        """`Decisions.decide_result`."""
        return await finished(
            run(
                self.decisions.decide_result,
                projections,
                decide,
                metadata=metadata,
                idempotency_key=idempotency_key,
            )
        )


@overload
async def transact_all(
    parties: tuple[Party[S, E], Party[S2, E2]],
    decide: Callable[[S, S2], tuple[Sequence[E], Sequence[E2]]],
    *,
    load: Load | AllowStale = REQUIRE_LOAD,
    attempts: int = ATTEMPTS,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> AllTransacted[tuple[Transacted[S, E], Transacted[S2, E2]]]: ...


@overload
async def transact_all(
    parties: tuple[Party[S, E], Party[S2, E2], Party[S3, E3]],
    decide: Callable[[S, S2, S3], tuple[Sequence[E], Sequence[E2], Sequence[E3]]],
    *,
    load: Load | AllowStale = REQUIRE_LOAD,
    attempts: int = ATTEMPTS,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> AllTransacted[tuple[Transacted[S, E], Transacted[S2, E2], Transacted[S3, E3]]]: ...


@overload
async def transact_all(
    parties: Sequence[Party[S, E]],
    decide: Callable[..., Sequence[Sequence[E]]],
    *,
    load: Load | AllowStale = REQUIRE_LOAD,
    attempts: int = ATTEMPTS,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> AllTransacted[tuple[Transacted[S, E], ...]]: ...


async def transact_all(
    parties: Sequence[Party[Any, Any]],
    decide: Callable[..., Sequence[Sequence[Any]]],
    *,
    load: Load | AllowStale = REQUIRE_LOAD,
    attempts: int = ATTEMPTS,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> AllTransacted[Any]:
    """`epochal.store.joint_decisions.transact_all`, of parties that `AsyncDeciders.on` makes."""
    return await finished(
        run(
            joint_decisions.transact_all,
            parties,
            decide,
            load=load,
            attempts=attempts,
            metadata=metadata,
            idempotency_key=idempotency_key,
        )
    )


async def transact_all_result(
    parties: Sequence[Party[Any, Any]],
    decide: Callable[..., tuple[R, Sequence[Sequence[Any]]]],
    *,
    load: Load | AllowStale = REQUIRE_LOAD,
    attempts: int = ATTEMPTS,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> tuple[R, AllTransacted[tuple[Transacted[Any, Any], ...]]]:
    """`epochal.store.joint_decisions.transact_all_result`, likewise."""
    return await finished(
        run(
            joint_decisions.transact_all_result,
            parties,
            decide,
            load=load,
            attempts=attempts,
            metadata=metadata,
            idempotency_key=idempotency_key,
        )
    )


async def transact_with(
    party: Party[S, E],
    projections: Mapping[str, Projection[Any]],
    decide: Callable[[S, Mapping[str, Any]], Sequence[E]],
    *,
    load: Load | AllowStale = REQUIRE_LOAD,
    attempts: int = ATTEMPTS,
    metadata: Mapping[str, Any] | None = None,
) -> Transacted[S, E]:
    """`epochal.store.joint_decisions.transact_with`, likewise."""
    return await finished(
        run(
            joint_decisions.transact_with,
            party,
            projections,
            decide,
            load=load,
            attempts=attempts,
            metadata=metadata,
        )
    )
