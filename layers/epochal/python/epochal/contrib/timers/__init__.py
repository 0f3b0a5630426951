"""Timers: appends in the future."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from epochal.deferred import deferred_names

if TYPE_CHECKING:
    from epochal.contrib.timers.stores import StreamTimers as StreamTimers
    from epochal.contrib.timers.stores import TagTimers as TagTimers
    from epochal.contrib.timers.stores import timers_of as timers_of

_NAMES = {
    "stores": (
        "StreamTimers",
        "TagTimers",
        "timers_of",
    ),
}

__all__ = [*chain.from_iterable(_NAMES.values())]  # noqa: PLE0604  every element is a string: the keys of the table above

__getattr__ = deferred_names(__name__, _NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)
