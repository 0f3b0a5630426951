"""What a stage chooses of tips, and what it is told to functions (`epochal.settings`)."""

from __future__ import annotations

from epochal.declaration import Flag, Number, OneOf, Text, of_tables
from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, fields
from epochal.settings import EVENTS, Options

CALVING = ("auto", "fixed", "cost")
"""Rules by which events leave a Tip: at limits, as Equinox's own, or when that is cheapest; `auto` is at limits where
Equinox applications use the table too.
"""

TIP_BYTES = 32 * 1024
"""Equinox's own limit of a Tip's events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EquinoxOptions:
    """Settings of tips, by their names."""

    equinox: bool = of_tables(False, Flag(), "Equinox applications use the table of tips too", EVENTS)
    calving: str = of_tables(
        CALVING[0], OneOf(of=CALVING), "When events leave the Tip of a stream of tips", ("append",)
    )
    calving_max_bytes: int = of_tables(
        TIP_BYTES,
        Number(most=400_000),
        "Bytes of events above which they do, where limits are fixed",
        ("append",),
    )
    calving_max_events: int = of_tables(
        0, Number(least=0, most=100_000), "Likewise their number; 0 for any", ("append",)
    )
    archive_table: str = of_tables(
        "",
        Text(),
        "Tips as they were before pruning",
        ("append", "replay", "feed", "reaction"),
        chosen=False,
    )

    @property
    def is_fixed(self) -> bool:
        """Whether the rule has limits."""
        return self.equinox if self.calving == "auto" else self.calving == "fixed"


def coherent(options: Options) -> None:
    """Refuse limits of a stage where its rule has none; raises `InvalidInput` of the rule."""
    chosen = options.of_plugin(EquinoxOptions)
    for each in fields(EquinoxOptions):
        limit = each.name.startswith("calving_max") and getattr(chosen, each.name) != each.default
        if limit and not chosen.is_fixed:
            raise InvalidInput("calving", f"must be fixed with {each.name}, which means nothing without")
