"""Time goes by in a deployment in memory, and timers fire: `MemoryStore.advance`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, cast

from epochal.contrib.timers.care import coming
from epochal.contrib.timers.engine import engine_of
from epochal.errors import InvalidInput
from epochal.layout.tables import TIMERS
from epochal.lazy_dataclasses import replace
from epochal.model.moments import PER_SECOND, Ticks
from epochal.store.driver import Driver, Meter

if TYPE_CHECKING:
    from epochal.deployment import Deployment
    from epochal.reactions.composite import Composite
    from epochal.reactions.definition import Reaction
    from epochal.testing.feeds import MemoryStore

_A_MOMENT: Final = PER_SECOND // 1000
"""Time added to `until`: appends of one moment to the same tags get increasing timestamps, and so do their timers."""

_STILL: Final = 1_000_000
_MOST: Final = 100
"""Number of steps within `_STILL` nanoseconds after which timers are taken to set one another without end."""


def advance(feed: MemoryStore, reactions: Sequence[Reaction | Composite | type], until: Ticks) -> int:
    """Run reactions and due timers until the stopped clock of `feed` is at `until`; return how many fired.

    The clock stops at each moment at which timers are due: they fire, and then the reactions run. Timers that the
    reactions set are fired as well.

    Raises:
        EpochalError: a timer could not fire.
        InvalidInput: timers set others without a pause, so that time would not pass.
    """
    engine = engine_of(cast("Deployment", feed), TIMERS.kind, send=lambda _: None, now=feed.now)
    engine = replace(engine, driver=Driver(execute=feed.timers_table.execute, meter=Meter()), at_once=1)
    ends = Ticks(until + _A_MOMENT)
    fired, since, still = 0, 0, 0
    while True:
        for reaction in reactions:
            feed.run(reaction)
        feed.run(engine.reaction(on_failure="block", attempts=1))
        due = next(coming(engine, limit=1), None)
        feed.stop_clock(ends if due is None else min(ends, due.due))
        if due is None or due.due > ends:
            return fired
        since, still = (since, still + 1) if feed.now() - since < _STILL else (feed.now(), 0)
        if still == _MOST:
            rule = f"would not end: {due.stream or due.tags} keeps setting timers that are due at once"
            raise InvalidInput("advance", rule)
        worked = engine.sweep(grace=Ticks(-1))
        for _, error in worked.failures:
            raise error
        fired += worked.fired
