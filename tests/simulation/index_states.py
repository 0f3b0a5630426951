"""States of a small world with an index: what `index_explorer` visits, each a plain value."""

from __future__ import annotations

from typing import NamedTuple

from epochal.layout.changes import Span


class Past(NamedTuple):
    """An invocation: the batch it was given, and the replies it has been sent, by their numbers.

    Attributes:
        who: the process, and which of its invocations.
        lost: the request it is at may have been applied before.
        before: the invocation whose state it found in its process.
    """

    who: str
    shard: int
    first: int
    end: int
    replies: tuple[int, ...] = ()
    lost: bool = False
    before: Past | None = None


class Budget(NamedTuple):
    """How often each thing may still go wrong.

    Attributes:
        again: a batch is done, and is delivered again.
        rests: a process dies in its rest: likewise, and what it held is gone.
    """

    crashes: int = 0
    lost: int = 0
    late: int = 0
    again: int = 0
    drops: int = 0
    rests: int = 0

    def less(self, what: str) -> Budget:
        """After one more."""
        return self._replace(**{what: getattr(self, what) - 1})


NOTHING = Budget()


class State(NamedTuple):
    """A state of the world.

    Attributes:
        tables: the index, by its number.
        working: the invocation in each process.
        held: the last invocation of each process, whose state the next may find.
        started: invocations of each process so far.
        done: records of each shard that are acknowledged.
        on_the_way: requests whose senders are gone, by their numbers.
        dropped: records that never arrive.
    """

    tables: int
    working: tuple[Past | None, ...]
    held: tuple[Past | None, ...]
    started: tuple[int, ...]
    done: tuple[int, ...]
    budget: Budget
    on_the_way: tuple[int, ...] = ()
    dropped: tuple[Span, ...] = ()
