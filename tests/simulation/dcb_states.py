"""What `dcb_explorer` explores: writers of tagged events, their steps, and states of a small world as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from epochal.layout import fences
from epochal.layout.dcb import append, reading
from epochal.layout.dcb.items import Keys
from epochal.layout.dcb.site import TagSite
from epochal.layout.dcb.writes import Stamp, TaggedBatch
from epochal.layout.fences import Condition, fence
from epochal.model.dcb import Query, TaggedEvent, sortable_id
from epochal.model.tagged_results import TaggedAppended, TaggedConflict
from epochal.model.times import Ticks, format_ticks
from epochal.plan.ops import BatchGet, Items, Op, Reply, Steps
from epochal.plan.ops import Query as Pages
from tests.simulation.exploring import Past

T = TypeVar("T")

Ids = frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """What one writer does.

    Attributes:
        query: its condition; None for none.
        reads: it reads first, and appends after the position of that.
        broader: what it reads, where that is not just its condition.
        clock: what it takes for the time.
    """

    event: TaggedEvent
    query: Query | None = None
    reads: bool = False
    broader: Query | None = None
    clock: int = 5


class Budget(NamedTuple):
    """How often each thing may still go wrong.

    Attributes:
        partly: a refusal tells only some of its reasons: the others were hidden by a conflict with a transaction.
    """

    unheard: int = 0
    forgotten: int = 0
    late: int = 0
    crashes: int = 0
    partly: int = 0

    def less(self, what: str) -> Budget:
        """After one more."""
        return self._replace(**{what: getattr(self, what) - 1})


NOTHING = Budget()


class State(NamedTuple):
    """A state of the world.

    Attributes:
        tables: by their number.
        writers: each one's past; None at its end.
        on_the_way: late transactions with what their senders had seen.
        rejected: ids of events whose writers were told that they were not appended.
    """

    tables: int
    writers: tuple[Past | None, ...]
    budget: Budget
    on_the_way: tuple[tuple[int, int, Ids], ...] = ()
    rejected: Ids = frozenset()


@dataclass(frozen=True, slots=True)
class Standing:
    """What a past has led to: the request it is at or the answer it has got, and what it had seen before it wrote."""

    op: int | None
    seen: Ids
    answer: TaggedAppended | TaggedConflict | None


def write(writer: Writer, type_heads: bool, seen: set[str]) -> Steps[TaggedAppended | TaggedConflict]:
    """A writer's steps; `seen` gets the ids of what it has seen before it writes."""
    site = TagSite(events="events", tags="tags", keys=Keys(), type_heads=type_heads)
    moment = Ticks(writer.clock)
    stamp = Stamp(sortable_id(moment, 0), format_ticks(moment))
    batch = TaggedBatch(events=(writer.event,), stamps=(stamp,))
    condition = None
    if writer.query is not None:
        fenced = fence(writer.query, type_heads=type_heads)
        after = None
        if writer.reads:
            asked = fenced if writer.broader is None else fence(writer.broader, type_heads=type_heads)
            found = yield from reading.read(site, asked)
            seen.update(event.id for event in found.events)
            after = found.position
            fenced = fences.fence_after(writer.query, after, type_heads=type_heads)
        condition = Condition(fence=fenced, after=after)
    return (yield from append.append(site, batch, condition))


def apart(steps: Steps[T]) -> Steps[T]:
    """The same steps, with their reads taken apart."""
    try:
        op = next(steps)
        while True:
            reply: Reply
            if isinstance(op, BatchGet):
                items = []
                for key in op.keys:
                    items += (yield replace(op, keys=(key,))).items
                reply = Items(items=tuple(items))
            else:
                reply = yield replace(op, limit=1) if isinstance(op, Pages) else op
            op = steps.send(reply)
    except StopIteration as end:
        outcome: T = end.value
        return outcome


def replay(steps: Steps[T], replies: Sequence[Reply]) -> tuple[Op | None, T | None]:
    """The request that steps come to after some replies, or their outcome."""
    try:
        op = next(steps)
        for reply in replies:
            op = steps.send(reply)
    except StopIteration as end:
        return None, end.value
    return op, None
