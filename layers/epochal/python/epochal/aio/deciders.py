"""Deciders on streams and on tagged events, awaited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from epochal.aio.bridge import reads, writes, written
from epochal.deciders import on_queries, on_streams
from epochal.deciders.on_queries import Decisions
from epochal.deciders.on_streams import Deciders, Party

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")


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

    handle = writes(Deciders[C, S, E].handle, of="deciders")
    transact = writes(Deciders[C, S, E].transact, of="deciders")
    transact_result = writes(Deciders[C, S, E].transact_result, of="deciders")
    query = reads(Deciders[C, S, E].query, of="deciders")

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


transact_all = written(on_streams.transact_all)
"""`epochal.deciders.on_streams.transact_all`, of parties that `AsyncDeciders.on` makes."""

transact_all_result = written(on_streams.transact_all_result)
"""`epochal.deciders.on_streams.transact_all_result`, likewise."""

transact_with = written(on_queries.transact_with)
"""`epochal.deciders.on_queries.transact_with`, likewise."""
