"""The asynchronous forms of deciders that a test has already."""

from __future__ import annotations

from typing import Any, TypeVar

from epochal.aio.stores import AsyncDeciders, AsyncDecisions, AsyncStreams, AsyncTaggedEvents
from epochal.contrib.event_store_adapter.aio import AsyncAggregateDeciders, AsyncAggregates
from epochal.contrib.event_store_adapter.deciders import AggregateDeciders
from epochal.deciders.on_queries import Decisions
from epochal.deciders.on_streams import Deciders

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")


def fields_of(deciders: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(deciders, name) for name in names}


def async_deciders(deciders: Deciders[C, S, E]) -> AsyncDeciders[C, S, E]:
    rest = fields_of(deciders, "decider", "codec", "access", "cache", "attempts", "forget_pruned")
    return AsyncDeciders(streams=AsyncStreams(deciders.streams), **rest)


def async_decisions(decisions: Decisions) -> AsyncDecisions:
    return AsyncDecisions(
        store=AsyncTaggedEvents(decisions.store), **fields_of(decisions, "attempts", "snapshots")
    )


def async_aggregate_deciders(deciders: AggregateDeciders[C, S, E]) -> AsyncAggregateDeciders[C, S, E]:
    rest = fields_of(deciders, "decider", "codec", "state", "policy", "attempts")
    return AsyncAggregateDeciders(store=AsyncAggregates(deciders.store), **rest)
