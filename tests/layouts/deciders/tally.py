"""A domain whose state any strategy can keep, and a store in memory with every request on record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from epochal.contrib.equinox import memory_tips
from epochal.contrib.equinox.streams import Tips
from epochal.deciders.access import (
    LATEST_KNOWN_EVENT,
    UNOPTIMIZED,
    Access,
    custom,
    multi_snapshot,
    rolling_state,
    snapshot,
)
from epochal.deciders.codecs import EventCodec, json_codec
from epochal.deciders.on_streams import Decider, Deciders
from epochal.layout.streams import AnyStreamLayout
from epochal.plan.failures import Lost
from epochal.plan.ops import Op, Reply
from epochal.store.driver import Driver, Meter, Patience
from epochal.store.streams import Streams
from epochal.testing.stores import memory_tables


@dataclass(frozen=True, slots=True)
class Added:
    by: int
    total: int


@dataclass(frozen=True, slots=True)
class Cleared:
    pass


@dataclass(frozen=True, slots=True)
class Snapshotted:
    total: int


@dataclass(frozen=True, slots=True)
class OldSnapshotted:
    total: int


@dataclass(frozen=True, slots=True)
class Tally:
    """The last event alone tells it, so that every strategy can keep it."""

    total: int = 0


TallyEvent = Added | Cleared | Snapshotted | OldSnapshotted


class Refused(Exception):
    """The domain's own error."""


def evolve(_: Tally, event: TallyEvent) -> Tally:
    match event:
        case Added(total=total) | Snapshotted(total=total) | OldSnapshotted(total=total):
            return Tally(total)
        case Cleared():
            return Tally()


def add(by: int) -> Callable[[Tally], Sequence[TallyEvent]]:
    def decide(state: Tally) -> Sequence[TallyEvent]:
        if by < 0 and state.total + by < 0:
            raise Refused(by, state.total)
        return [Added(by, state.total + by)] if by else []

    return decide


def clear(state: Tally) -> Sequence[TallyEvent]:
    return [Cleared()] if state.total else []


def command(decide: Callable[[Tally], Sequence[TallyEvent]], state: Tally) -> Sequence[TallyEvent]:
    return decide(state)


Tallies = Deciders[Callable[[Tally], Sequence[TallyEvent]], Tally, TallyEvent]

CODEC: EventCodec[TallyEvent] = json_codec(Added, Cleared, Snapshotted, OldSnapshotted)

DECIDER = Decider(initial=Tally, evolve=evolve, decide=command)


def is_snapshot(event: TallyEvent) -> bool:
    return isinstance(event, Snapshotted)


def to_snapshot(state: Tally) -> TallyEvent:
    return Snapshotted(state.total)


def to_both(state: Tally) -> Sequence[TallyEvent]:
    return OldSnapshotted(state.total), Snapshotted(state.total)


def only_additions(
    events: Sequence[TallyEvent], state: Tally
) -> tuple[Sequence[TallyEvent], Sequence[TallyEvent]]:
    return [event for event in events if isinstance(event, Added)], [Snapshotted(state.total)]


STRATEGIES: dict[str, Access[Tally, TallyEvent]] = {
    "unoptimized": UNOPTIMIZED,
    "latest known event": LATEST_KNOWN_EVENT,
    "snapshot": snapshot(is_snapshot, to_snapshot),
    "multi-snapshot": multi_snapshot(is_snapshot, to_both),
    "rolling state": rolling_state(to_snapshot),
    "custom": custom(is_snapshot, only_additions, state_in_unfolds=True),
}


@dataclass
class Store:
    """A store in memory. `before` sees each request before it is performed, and may raise or write."""

    layout: AnyStreamLayout = field(default_factory=Tips)
    kind: str = "tips"
    ops: list[Op] = field(default_factory=list)
    before: Callable[[Op], None] = lambda _: None
    lose: Callable[[Op], bool] = lambda _: False
    now: float = 0.0

    def __post_init__(self) -> None:
        self.tables = memory_tables()
        quiet = memory_tips(self.tables)
        driver = Driver(
            execute=self.execute,
            meter=Meter(),
            patience=Patience(first=0.0, longest=0.0),
            clock=lambda: self.now,
            sleep=lambda _: None,
        )
        self.others: Streams = replace(quiet, layout=self.layout, table=self.kind)
        """The same tables for another process, whose requests are not on record."""
        self.streams: Streams = replace(self.others, driver=driver)

    def execute(self, op: Op) -> Reply:
        self.ops.append(op)
        self.before(op)
        reply = self.tables.execute(op)
        if self.lose(op):
            raise Lost("response lost")
        return reply

    def tallies(self, access: Access[Tally, TallyEvent] = UNOPTIMIZED, **options: Any) -> Tallies:
        return Tallies(
            streams=self.streams, decider=DECIDER, codec=options.pop("codec", CODEC), access=access, **options
        )

    def elsewhere(self, access: Access[Tally, TallyEvent] = UNOPTIMIZED, **options: Any) -> Tallies:
        """Deciders of another process."""
        return replace(self.tallies(access, **options), streams=self.others)

    def requests(self) -> list[str]:
        """The kinds of requests since last asked."""
        kinds = [type(op).__name__ for op in self.ops]
        self.ops.clear()
        return kinds


def total(state: Tally) -> int:
    return state.total
