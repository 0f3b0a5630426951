"""A process that asks a function, and appends what it answers, so that each kind of step is taken once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from epochal import json_codec
from epochal.contrib.processes import Append, Call, Done, Output, process


@dataclass(frozen=True)
class Asked:
    """An input of others."""

    n: int


@dataclass(frozen=True)
class Echoed:
    """The function's answer."""

    n: int


@dataclass(frozen=True)
class Answered:
    """What others see."""

    n: int


def echo(message: Asked, _key: str) -> Echoed:
    """Answer."""
    return Echoed(message.n)


@process(
    name="EpochalProcess",
    categories=["EpochalProof"],
    begins=[Asked],
    codec=json_codec(Asked, Echoed, Answered),
    targets={"echo": echo},
)
@dataclass(frozen=True)
class Proving:
    """Nothing has to be remembered."""

    def evolve(self, _event: object) -> Proving:
        """The same."""
        return self

    def react(self, event: object) -> Iterable[Output]:
        """Ask, and end with the answer."""
        match event:
            case Asked():
                yield Call("echo", event)
            case Echoed(n=n):
                yield Append("EpochalProof", [Answered(n)])
                yield Done()
