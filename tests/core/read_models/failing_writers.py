"""Writers of read models that are killed between requests, lose responses and overtake each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from epochal.feed.events import FeedEvent
from epochal.layout.tables import READ_MODELS
from epochal.plan.failures import Lost, RequestNotApplied
from epochal.plan.ops import Op, Reply
from epochal.testing.memory import MemoryTables


class Killed(BaseException):
    """The process has ended."""


@dataclass
class FailingWriters:
    """Writers on tables in memory, whose failures are chosen by `luck`.

    Attributes:
        luck: source of all choices.
        streams: events of each stream.
        depth: number of deliveries that have been overtaken by the present one.
    """

    luck: Random
    tables: MemoryTables = field(default_factory=lambda: MemoryTables({READ_MODELS.kind: READ_MODELS}))
    streams: dict[str, list[FeedEvent]] = field(default_factory=dict)
    depth: int = 0

    def execute(self, op: Op) -> Reply:
        """Perform a request, unless its process is killed or it is throttled; its response may be lost."""
        fate = self.luck.random()
        if fate < 0.04:
            raise Killed
        if fate < 0.08:
            raise RequestNotApplied("throttled")
        if self.is_overtaken(op, fate):
            self.depth += 1
            try:
                self.deliver()
            finally:
                self.depth -= 1
        reply = self.perform(op)
        if fate > 0.96:
            raise Killed
        if fate > 0.9:
            raise Lost("cut off")
        return reply

    def is_overtaken(self, op: Op, fate: float) -> bool:
        """Return whether another delivery comes before a request, by a number from 0 to 1."""
        raise NotImplementedError

    def perform(self, op: Op) -> Reply:
        """Perform a request on the tables."""
        raise NotImplementedError

    def deliver(self) -> None:
        """Deliver a part of a stream, by a process of its own."""
        raise NotImplementedError
