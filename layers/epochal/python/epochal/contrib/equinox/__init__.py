"""Streams in the layout of Equinox's DynamoStore: a Tip that takes every append, and calves that never change.

    from epochal.contrib.equinox import Fixed, open_tips

FORMATS §1 has the bytes; DESIGN §5.1 to 5.6 the reasons. The rules in short:

- The Tip (`i` = 2147483647) changes in every append, and is read first by every read.
- A calf holds events that were in the Tip, all of them, contiguous, and never changes. Calves may overlap the Tip.
- Whatever lies below `l` is gone, wherever a copy turns up.

The index is stored so, too: `index.tip` and `index.tip_append` have the items, and the write of a Tip. Here is what
streams of users need beside that.

    append              when events leave the Tip, and how; what comes back from a write
    reading, pruning    in either direction, past what is gone; pruning, deleting, archiving
    streams, opening    the store of streams, and opening it
    port, options       what the feed and a deployment need

Names are resolved when they are first used: a function that reads the feed needs no appends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from epochal.plugins import Plugin, named_later

if TYPE_CHECKING:
    from epochal.contrib.equinox.append import ByCost as ByCost
    from epochal.contrib.equinox.append import Calving as Calving
    from epochal.contrib.equinox.append import Fixed as Fixed
    from epochal.contrib.equinox.opening import memory_tips as memory_tips
    from epochal.contrib.equinox.opening import open_tips as open_tips
    from epochal.contrib.equinox.options import EquinoxOptions as EquinoxOptions
    from epochal.contrib.equinox.streams import Tips as Tips

PLUGIN: Final = Plugin(
    port=f"{__name__}.port:PORT",
    history=f"{__name__}.streams:tips_of",
    options=f"{__name__}.options:EquinoxOptions",
    coherent=f"{__name__}.options:coherent",
    stores={"tips": f"{__name__}.streams:opened"},
    streams="tips",
)

_NAMES: Final = {
    "options": ("EquinoxOptions",),
    "append": ("ByCost", "Calving", "Fixed"),
    "opening": ("memory_tips", "open_tips"),
    "streams": ("Tips",),
}

_FILES: Final = {name: file for file, names in _NAMES.items() for name in names}

__all__ = ["PLUGIN", *_FILES]  # noqa: PLE0604  every element is a string: the keys of the table above

__getattr__ = named_later(__name__, _FILES)
