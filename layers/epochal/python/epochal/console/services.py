"""What the console reaches beside the store: functions, CloudWatch, reactions of this machine, the time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

from epochal.console.lags import Lags
from epochal.dynamo.cloudwatch import Measure
from epochal.errors import Refused
from epochal.reactions.reaction import Reaction

T = TypeVar("T")

KEPT: Final = 60 * 10**9
"""Nanoseconds for which what other services told is kept: a page that is live asks every two seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Each is optional: a page says what it lacks.

    Attributes:
        prefix: of the names of the deployment's functions.
        reactions: by name, those that replay here, with their own handlers.
        deployed: names of the reactions that are deployed.
        invoke: invokes a function by its name with a payload.
        measure: asks CloudWatch.
        sizes: bytes of tables, by their names, as DynamoDB tells them.
        lags: what the console has seen of the groups that it showed.
        now: nanoseconds since 1970.
    """

    prefix: str = ""
    reactions: Mapping[str, Reaction] = field(default_factory=dict)
    deployed: Callable[[], list[str]] | None = None
    invoke: Callable[[str, dict[str, Any]], dict[str, Any]] | None = None
    measure: Measure | None = None
    sizes: Callable[[], Mapping[str, int]] | None = None
    lags: Lags = field(default_factory=Lags)
    now: Callable[[], int] = time.time_ns
    _kept: dict[str, tuple[int, Any]] = field(default_factory=dict)

    def groups(self) -> list[str]:
        """The groups that are known without reading a table: deployed reactions, those given, those shown before."""
        deployed = self._told("deployed", self.deployed, list[str]())
        return sorted({*self.reactions, *deployed, *self.lags.groups()})

    def bytes_of_tables(self) -> Mapping[str, int]:
        """Bytes of tables, by their names; nothing where they cannot be told."""
        return self._told("sizes", self.sizes, {})

    def _told(self, name: str, ask: Callable[[], T] | None, otherwise: T) -> T:
        """What a service says, or said a moment ago. Who may read a table need not be allowed to describe it."""
        if ask is None:
            return otherwise
        at, told = self._kept.get(name, (-KEPT, otherwise))
        if self.now() - at >= KEPT:
            with suppress(Refused):
                told = ask()
            self._kept[name] = (self.now(), told)
        return cast("T", told)
