"""What can be chosen: DAYS and VIA, from the environment, as `make demo DAYS=7 VIA=library` sets them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from examples.flights.dataset import YEAR

WAYS = ("http", "library")


class BadOption(ValueError):
    """An option breaks its rule; the message says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The first `days` of the year, written `via` the HTTP API or the library."""

    days: int = 2
    via: Literal["http", "library"] = "http"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Options:
        """Read them; an empty value is an absent one."""
        days, via = environment.get("DAYS") or "2", environment.get("VIA") or "http"
        if not days.isascii() or not days.isdigit() or not 1 <= int(days) <= YEAR:
            raise BadOption(f"DAYS must be a whole number from 1 to {YEAR}, not {days!r}")
        if via not in WAYS:
            raise BadOption(f"VIA must be {' or '.join(WAYS)}, not {via!r}")
        return cls(days=int(days), via=cast(Literal["http", "library"], via))
