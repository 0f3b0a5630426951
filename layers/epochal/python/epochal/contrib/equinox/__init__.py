"""Streams in the layout of Equinox's DynamoStore: a Tip that takes every append, and calves that never change.

    from epochal.contrib.equinox import Fixed, open_tips

FORMATS §1 has the bytes; DESIGN §5.1 to 5.6 the reasons. The rules in short:

- The Tip (`i` = 2147483647) changes in every append, and is read first by every read.
- A calf holds events that were in the Tip, all of them, contiguous, and never changes. Calves may overlap the Tip.
- Whatever lies below `l` is gone, wherever a copy turns up.

The index is stored so, too: `index.tip` and `index.tip_append` have the items, and the write of a Tip. Here is what
streams of users need beside that.

    append              one write of the Tip, and what comes back from it
    append_search       looking for an append by its id, after a lost response
    keyed_appends       appends under an idempotency key
    calving             when events leave the Tip, and how
    port                reading, in either direction, past what is gone; what the feed and a deployment need
    pruning             pruning and deleting
    archiving           copying events to an archive before they are pruned
    streams             the store of streams, and opening it
    plugin              the parts of the layout, for the rest of the library

Names are resolved when they are first used: a function that reads the feed needs no appends.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from epochal.declaration import Flag, Number, OneOf, Text, must_stay, of_tables
from epochal.deferred import deferred_names
from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, fields
from epochal.settings import EVENTS, Options

if TYPE_CHECKING:
    from epochal.contrib.equinox.calving import ByCost as ByCost
    from epochal.contrib.equinox.calving import Calving as Calving
    from epochal.contrib.equinox.calving import Fixed as Fixed
    from epochal.contrib.equinox.streams import Tips as Tips
    from epochal.contrib.equinox.streams import memory_tips as memory_tips
    from epochal.contrib.equinox.streams import open_tips as open_tips


_NAMES: Final = {
    "calving": ("ByCost", "Calving", "Fixed"),
    "streams": ("Tips", "memory_tips", "open_tips"),
}

__all__ = ["EquinoxOptions", *chain.from_iterable(_NAMES.values())]  # noqa: PLE0604  every element is a string: the keys of the table above

__getattr__ = deferred_names(__name__, _NAMES)


# Settings that a stage chooses, and that deployed functions get (`epochal.settings`).

CALVING = ("auto", "fixed", "cost")
"""Names of the rules by which events leave a Tip: `fixed` at limits, as in Equinox, `cost` when that is cheapest.

`auto` is `fixed` if Equinox applications use the table too, and `cost` otherwise.
"""

TIP_BYTES = 32 * 1024
"""Most bytes of events in a Tip, as in Equinox."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EquinoxOptions:
    """Settings of a stage for streams in the `tips` layout; each field's name is the setting's name."""

    equinox: bool = of_tables(
        False, Flag(), "Equinox applications use the table of tips too", EVENTS, broken=must_stay
    )
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
        """Whether events leave a Tip (a stream's last item) at fixed limits of bytes and events, instead of by cost."""
        return self.equinox if self.calving == "auto" else self.calving == "fixed"


def check_options(options: Options) -> None:
    """Raise `InvalidInput` if a stage's settings limit calving under a rule that has no limits.

    Raises:
        InvalidInput: a limit is set, and `calving` is not a fixed rule.
    """
    chosen = options.of_plugin(EquinoxOptions)
    for field in fields(EquinoxOptions):
        limit = field.name.startswith("calving_max") and getattr(chosen, field.name) != field.default
        if limit and not chosen.is_fixed:
            raise InvalidInput("calving", f"must be fixed if {field.name} is set")


def __dir__() -> list[str]:
    return sorted(__all__)
