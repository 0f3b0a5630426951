"""Deciders, awaited."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from epochal.aio.bridge import run
from epochal.aio.writes import finished
from epochal.store.deciders import Deciders, Transacted
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
        self, stream: str, command: C, *, load: Load | AllowStale = REQUIRE_LOAD
    ) -> Transacted[S, E]:
        """`Deciders.handle`."""
        return await finished(run(self.deciders.handle, stream, command, load=load))

    async def transact(
        self, stream: str, decide: Callable[[S], Sequence[E]], *, load: Load | AllowStale = REQUIRE_LOAD
    ) -> Transacted[S, E]:
        """`Deciders.transact`."""
        return await finished(run(self.deciders.transact, stream, decide, load=load))

    async def transact_result(
        self,
        stream: str,
        decide: Callable[[S], tuple[R, Sequence[E]]],
        *,
        load: Load | AllowStale = REQUIRE_LOAD,
    ) -> R:
        """`Deciders.transact_result`."""
        return await finished(run(self.deciders.transact_result, stream, decide, load=load))

    async def query(
        self,
        stream: str,
        projection: Callable[[S], R],
        *,
        load: Literal[Load.REQUIRED] | AllowStale = REQUIRE_LOAD,
    ) -> R:
        """`Deciders.query`."""
        return await run(self.deciders.query, stream, projection, load=load)
