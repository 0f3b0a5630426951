"""Marks: the next index of a stream that its partition's two newest epochs have forgotten (DESIGN §5.10).

Written before an epoch closes, for every stream of its predecessor that it lacks itself, never lowering one.
Read consistently after the two epochs, and never kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from epochal.index.names import mark_name
from epochal.layout.tips.items import calf_key
from epochal.plan.batches import get_all
from epochal.plan.conditions import Absent, AnyOf, Compare
from epochal.plan.ops import Put, Steps
from epochal.plan.values import number, read_number


def read_marks(table: str, partition: int, streams: Sequence[str]) -> Steps[dict[str, int]]:
    """Marks of those streams that have one."""
    wanted = {mark_name(partition, stream): stream for stream in streams}
    items = yield from get_all(table, (calf_key(name, 0) for name in wanted))
    return {wanted[item["p"]["S"]]: read_number(item, "n") or 0 for item in items}


def write_marks(table: str, partition: int, marks: Iterable[tuple[str, int]]) -> Steps[None]:
    """Raise marks; one that is higher already stays."""
    for stream, following in marks:
        value = number(following)
        yield Put(
            table=table,
            item={**calf_key(mark_name(partition, stream), 0), "n": value},
            condition=AnyOf((Absent("n"), Compare("n", "<", value))),
        )
