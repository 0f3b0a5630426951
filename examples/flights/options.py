"""What can be chosen: DAYS, VIA and KEEP, from the environment, as `make demo DAYS=7 VIA=library` sets them."""

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
    """The first `days` of the year, written `via` the HTTP API or the library; all stays up afterwards with `keep`."""

    days: int = 1
    via: Literal["http", "library"] = "http"
    keep: bool = False

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Options:
        """Read them; an empty value is an absent one."""
        days, via = environment.get("DAYS") or "1", environment.get("VIA") or "http"
        if not days.isascii() or not days.isdigit() or not 1 <= int(days) <= YEAR:
            raise BadOption(f"DAYS must be a whole number from 1 to {YEAR}, not {days!r}")
        if via not in WAYS:
            raise BadOption(f"VIA must be {' or '.join(WAYS)}, not {via!r}")
        keep = environment.get("KEEP") or "0"
        if keep not in ("0", "1"):
            raise BadOption(f"KEEP must be 1 or 0, not {keep!r}")
        if keep == "1" and via == "library":
            raise BadOption("KEEP keeps a deployment, and VIA=library makes none: leave one of them out")
        return cls(days=int(days), via=cast(Literal["http", "library"], via), keep=keep == "1")
