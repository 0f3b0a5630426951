"""Programs before and after a change of the class of their state. Both fold the same events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from epochal.deciders.access import snapshot
from epochal.deciders.codecs import EventCodec, json_codec
from epochal.deciders.on_streams import Decider, Deciders
from epochal.store.streams import Streams


@dataclass(frozen=True)
class Paid:
    amount: int


@dataclass(frozen=True)
class Program:
    """One version of a program: the class of its state, stored under the name `Account`, and its rules."""

    kind: type
    initial: Callable[[], Any]
    evolve: Callable[[Any, Paid], Any]

    @property
    def codec(self) -> EventCodec[Any]:
        """Its events, and its state as a snapshot."""
        return json_codec(Paid, named={"Account": self.kind})

    @property
    def decider(self) -> Decider[int, Any, Any]:
        """A decider that pays what it is told."""
        return Decider(
            initial=self.initial,
            evolve=lambda state, event: event if isinstance(event, self.kind) else self.evolve(state, event),
            decide=lambda amount, _: [Paid(amount)],
        )

    def on(self, streams: Streams, **changes: Any) -> Deciders[int, Any, Any]:
        """The program on streams, which keeps snapshots there."""
        access = snapshot(lambda event: isinstance(event, self.kind), lambda state: state, **changes)
        return Deciders(streams=streams, decider=self.decider, codec=self.codec, access=access)

    def folded(self, *amounts: int) -> Any:
        """The state that events lead to."""
        state = self.initial()
        for amount in amounts:
            state = self.evolve(state, Paid(amount))
        return state


@dataclass(frozen=True)
class Account:
    balance: int = 0


@dataclass(frozen=True)
class Counting:
    balance: int = 0
    payments: int = 0


@dataclass(frozen=True)
class CountingAlways:
    balance: int
    payments: int


@dataclass(frozen=True)
class Renamed:
    total: int = 0


@dataclass(frozen=True)
class Listing:
    balance: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Precise:
    balance: float = 0


@dataclass(frozen=True)
class Endowed:
    balance: int = 100


@dataclass(frozen=True)
class Money:
    amount: int = 0


@dataclass(frozen=True)
class CountedMoney:
    amount: int = 0
    coins: int = 0


@dataclass(frozen=True)
class Purse:
    money: tuple[Money, ...] = ()


@dataclass(frozen=True)
class CountedPurse:
    money: tuple[CountedMoney, ...] = ()


class Level(Enum):
    LOW = "low"
    MIDDLE = "middle"
    HIGH = "high"


class CoarseLevel(Enum):
    LOW = "low"
    HIGH = "high"


class ShiftedLevel(Enum):
    LOW = "low"
    MIDDLE = "high"
    HIGH = "highest"


@dataclass(frozen=True)
class Rated:
    level: Level = Level.LOW


@dataclass(frozen=True)
class CoarselyRated:
    level: CoarseLevel = CoarseLevel.LOW


@dataclass(frozen=True)
class ShiftedlyRated:
    level: ShiftedLevel = ShiftedLevel.LOW


ACCOUNT = Program(Account, Account, lambda state, event: Account(state.balance + event.amount))
COUNTING = Program(
    Counting, Counting, lambda state, event: Counting(state.balance + event.amount, state.payments + 1)
)
PURSE = Program(Purse, Purse, lambda state, event: Purse((*state.money, Money(event.amount))))
RATED = Program(Rated, Rated, lambda _, event: Rated(Level.MIDDLE if event.amount < 9 else Level.HIGH))

CHANGES: Mapping[str, tuple[Program, Program]] = {
    "a field added with a default": (ACCOUNT, COUNTING),
    "a field added without a default": (
        ACCOUNT,
        Program(
            CountingAlways,
            lambda: CountingAlways(0, 0),
            lambda state, event: CountingAlways(state.balance + event.amount, state.payments + 1),
        ),
    ),
    "a field removed": (COUNTING, ACCOUNT),
    "a field renamed": (
        ACCOUNT,
        Program(Renamed, Renamed, lambda state, event: Renamed(state.total + event.amount)),
    ),
    "a field of another type": (
        ACCOUNT,
        Program(Listing, Listing, lambda state, event: Listing([*state.balance, event.amount])),
    ),
    "a field of a wider type": (
        ACCOUNT,
        Program(Precise, Precise, lambda state, event: Precise(state.balance + event.amount / 2)),
    ),
    "another default": (
        ACCOUNT,
        Program(Endowed, Endowed, lambda state, event: Endowed(state.balance + event.amount)),
    ),
    "a nested class changed": (
        PURSE,
        Program(
            CountedPurse,
            CountedPurse,
            lambda state, event: CountedPurse((*state.money, CountedMoney(event.amount, 1))),
        ),
    ),
    "a member of an enumeration removed": (
        RATED,
        Program(
            CoarselyRated,
            CoarselyRated,
            lambda _, event: CoarselyRated(CoarseLevel.LOW if event.amount < 9 else CoarseLevel.HIGH),
        ),
    ),
    "a member of an enumeration with another value": (
        RATED,
        Program(
            ShiftedlyRated,
            ShiftedlyRated,
            lambda _, event: ShiftedlyRated(ShiftedLevel.MIDDLE if event.amount < 9 else ShiftedLevel.HIGH),
        ),
    ),
}
"""By what changes: the programs before and after it."""
