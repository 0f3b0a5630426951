"""Reactions: functions called with every event, in order within a stream, and how far each group has come.

Programs use these modules:

definition       declares a reaction
composite        joins several reactions under one name
parking          lists, replays and skips parked streams
steering         pauses, resumes, resets and deletes groups, and shows their lag

reactor          runs a reaction over a partition
group_member     reads and replaces the state of the group for one process
page_tasks       makes tasks of a page of the feed, and computes the state after them
task_queue       keeps tasks that wait for a thread, with events that were read in batches
handling         handles the events of one stream
calls            calls the handler, and waits for it
event_loop       runs handlers that are `async def` in a thread
failures         has the failures of handlers as values
traces           shows errors without values
filter_coverage  finds names in a filter that match nothing
reset_effect     counts what a reset does to the events of a partition
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from epochal.deferred import deferred_names

if TYPE_CHECKING:
    from epochal.reactions.composite import Composite as Composite
    from epochal.reactions.composite import OnPassed as OnPassed
    from epochal.reactions.definition import Delivery as Delivery
    from epochal.reactions.definition import Handler as Handler
    from epochal.reactions.definition import OnFailure as OnFailure
    from epochal.reactions.definition import Reaction as Reaction
    from epochal.reactions.definition import Selector as Selector
    from epochal.reactions.definition import Start as Start
    from epochal.reactions.definition import reaction as reaction
    from epochal.reactions.parking import ParkedStream as ParkedStream
    from epochal.reactions.parking import Parking as Parking
    from epochal.reactions.parking import Replayed as Replayed
    from epochal.reactions.steering import GroupFigures as GroupFigures
    from epochal.reactions.steering import Groups as Groups
    from epochal.reactions.steering import Reset as Reset

_NAMES = {
    "composite": (
        "Composite",
        "OnPassed",
    ),
    "definition": (
        "Delivery",
        "Handler",
        "OnFailure",
        "Reaction",
        "Selector",
        "Start",
        "reaction",
    ),
    "parking": (
        "ParkedStream",
        "Parking",
        "Replayed",
    ),
    "steering": (
        "GroupFigures",
        "Groups",
        "Reset",
    ),
}

__all__ = [*chain.from_iterable(_NAMES.values())]  # noqa: PLE0604  every element is a string: the keys of the table above

__getattr__ = deferred_names(__name__, _NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)
