"""How far the index has each of some streams, by the indexer's own rule: active, else previous, else mark, else 0.

It takes the memory of two epochs, however many streams there are and however old the index is. It trusts the marks:
only the whole chain tells whether they are right (`index.chain_check`).
"""

from __future__ import annotations

from collections.abc import Sequence

from epochal.index.epoch_loading import load_newest, refresh
from epochal.index.epochs import unknown_streams
from epochal.index.ingestion import Partition, next_of
from epochal.index.marks import read_marks
from epochal.layout.port import Touched
from epochal.plan.ops import Steps


def reached(table: str, partition: Partition, streams: Sequence[str]) -> Steps[dict[str, int]]:
    """The next index to be indexed of each stream, not older than this call. `partition` keeps what was read."""
    if partition.loaded is None:
        partition.hold((yield from load_newest(table, partition.number)))
    else:
        partition.hold((yield from refresh(table, partition.number, partition.loaded)))
    loaded = partition.state
    changes = [Touched(stream=stream) for stream in streams]
    unknown = unknown_streams(changes, loaded.active, loaded.previous)
    marks = yield from read_marks(table, partition.number, partition.leaves, unknown)
    return {stream: next_of(stream, loaded, marks) for stream in streams}
