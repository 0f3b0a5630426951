"""Marks: the next index of a stream that its partition's two newest epochs have forgotten (DESIGN §5.10).

Written before an epoch closes, for every stream of its predecessor that it lacks itself, never lowering one.
Read consistently after the two epochs, and never kept. Each is a request of its own, because only its own condition
keeps it from being lowered; they go out side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from epochal.index.names import mark_name
from epochal.index.stored import calf_key
from epochal.plan.batches import get_all, side_by_side
from epochal.plan.conditions import Absent, AnyOf, Compare
from epochal.plan.ops import Put, Steps
from epochal.plan.values import number, read_number

TOGETHER: Final = 500
"""Marks that are made ready at once."""


def read_marks(table: str, partition: int, streams: Sequence[str]) -> Steps[dict[str, int]]:
    """Marks of those streams that have one."""
    wanted = {mark_name(partition, stream): stream for stream in streams}
    items = yield from get_all(table, (calf_key(name, 0) for name in wanted))
    return {wanted[item["p"]["S"]]: read_number(item, "n") or 0 for item in items}


def write_marks(table: str, partition: int, marks: Sequence[tuple[str, int]]) -> Steps[None]:
    """Raise marks; one that is higher already stays."""
    for start in range(0, len(marks), TOGETHER):
        yield from side_by_side(_raised(table, partition, *mark) for mark in marks[start : start + TOGETHER])


def _raised(table: str, partition: int, stream: str, following: int) -> Put:
    value = number(following)
    return Put(
        table=table,
        item={**calf_key(mark_name(partition, stream), 0), "n": value},
        condition=AnyOf((Absent("n"), Compare("n", "<", value))),
    )
