"""For users' own tests, and for ours: DynamoDB in memory, and faults that make it misbehave on purpose.

stores     whole stores in memory
feeds      a deployment in memory with its feed and timers, whose time a test advances
scenarios  decisions by example: given events, when a command, then events
memory     tables in memory, and schedules of faults
refusals   refuses what DynamoDB refuses as malformed
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from epochal.deferred import deferred_names

if TYPE_CHECKING:
    from epochal.testing.feeds import MemoryStore as MemoryStore
    from epochal.testing.memory import Fault as Fault
    from epochal.testing.memory import Faults as Faults
    from epochal.testing.memory import Late as Late
    from epochal.testing.memory import MemoryTables as MemoryTables
    from epochal.testing.scenarios import Given as Given
    from epochal.testing.scenarios import GivenTagged as GivenTagged
    from epochal.testing.scenarios import given as given
    from epochal.testing.scenarios import given_tagged as given_tagged
    from epochal.testing.stores import memory_settings as memory_settings
    from epochal.testing.stores import memory_streams as memory_streams
    from epochal.testing.stores import memory_tables as memory_tables
    from epochal.testing.stores import memory_tagged_events as memory_tagged_events

_NAMES = {
    "feeds": ("MemoryStore",),
    "memory": (
        "Fault",
        "Faults",
        "Late",
        "MemoryTables",
    ),
    "scenarios": (
        "Given",
        "GivenTagged",
        "given",
        "given_tagged",
    ),
    "stores": (
        "memory_settings",
        "memory_streams",
        "memory_tables",
        "memory_tagged_events",
    ),
}

__all__ = [*chain.from_iterable(_NAMES.values())]  # noqa: PLE0604  every element is a string: the keys of the table above

__getattr__ = deferred_names(__name__, _NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)
