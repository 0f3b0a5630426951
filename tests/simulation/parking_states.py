"""States of a small world with a group that parks: what `parking_explorer` visits, each a plain value."""

from __future__ import annotations

from typing import NamedTuple

Place = tuple[str, int]
"""Stream and index."""


class Handling(NamedTuple):
    """What a process asks for when it calls its handler."""

    stream: str
    first: int
    end: int

    @property
    def places(self) -> frozenset[Place]:
        return frozenset((self.stream, index) for index in range(self.first, self.end))


class Asked(BaseException):
    """A process has come to what it has no answer for yet."""


Answer = int | str
"""A reply by its number, or what became of a call."""

Counts = tuple[int, int]
"""Events that a reset brings again, and that it skips."""

HANDLED, FAILED, UNHEARD = "handled", "failed", "unheard"


class Past(NamedTuple):
    """A process: what it does, whose turn it is of how many, and what it has been answered."""

    kind: str
    who: str
    answers: tuple[Answer, ...] = ()


class Budget(NamedTuple):
    """How often each thing may still happen."""

    fails: int = 0
    deaths: int = 0
    unheard: int = 0
    late: int = 0
    grows: int = 0

    def less(self, what: str) -> Budget:
        """After one more."""
        return self._replace(**{what: getattr(self, what) - 1})


class State(NamedTuple):
    """A state of the world.

    Attributes:
        tables: by their number.
        working: the process of each slot, None between two.
        lives: processes that each slot may still have.
        done: events that are handled, or given up.
        owed: of these, those that come again since a reset, and have not.
        counted: of each slot's process what it must have counted, once its reset was applied.
        on_the_way: requests whose senders are gone.
    """

    tables: int
    working: tuple[Past | None, ...]
    lives: tuple[int, ...]
    budget: Budget
    done: frozenset[Place] = frozenset()
    on_the_way: tuple[int, ...] = ()
    owed: frozenset[Place] = frozenset()
    counted: tuple[Counts | None, ...] = ()
