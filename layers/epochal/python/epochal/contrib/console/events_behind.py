"""How many events groups are behind, the one unit in which the console counts.

Entries of the index are known without reading them, but an entry may have many events, also of streams that a group
does not read. So events are counted, at most once a minute, and only where a group is not at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from epochal.care.status import PartitionStanding
from epochal.contrib.console.page import Services
from epochal.hosting.group_summaries import figures_of
from epochal.lazy_dataclasses import dataclass
from epochal.reactions.steering import COUNTED, GroupFigures, Groups


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsBehind:
    """Number of events that a group has not handled.

    Attributes:
        count: the number; None where it is not known.
        of_all: whether events are counted that the group does not read.
    """

    count: int | None
    of_all: bool = False

    @property
    def text(self) -> str:
        """The number as a page shows it."""
        if self.count is None:
            return "not counted yet"
        more = " or more" if self.count >= COUNTED else ""
        return f"{self.count:,}{more}{' of all' if self.count and self.of_all else ''}"


def events_behind(
    services: Services, groups: Groups, partitions: Iterable[PartitionStanding]
) -> dict[tuple[str, int], EventsBehind]:
    """Return how many events each group has yet to handle, by pairs of group and partition."""
    return {
        (group.group, partition.partition): EventsBehind(count=0)
        if group.behind == 0
        else _counted(services, groups, group.group, partition.partition)
        for partition in partitions
        for group in partition.groups
    }


def in_all_partitions(behind: Mapping[tuple[str, int], EventsBehind], group: str) -> EventsBehind:
    """Return how many events a group is behind in all partitions; unknown if it is so in one of them."""
    of_group = [events for (name, _), events in behind.items() if name == group]
    counts = [events.count for events in of_group]
    return EventsBehind(
        count=None if None in counts else sum(count or 0 for count in counts),
        of_all=any(events.of_all for events in of_group),
    )


def _counted(services: Services, groups: Groups, group: str, partition: int) -> EventsBehind:
    """Return how many events a group is behind in a partition, as counted within the last minute."""
    nothing: dict[tuple[str, int], GroupFigures] = {}
    count = partial(figures_of, groups, [group])
    figures = services.once_a_minute(f"events behind {group}", count, nothing).get((group, partition))
    return (
        EventsBehind(count=None)
        if figures is None
        else EventsBehind(count=figures.events, of_all=figures.of_all)
    )
