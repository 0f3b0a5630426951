"""Snapshots of decision models: the states that projections were folded to, up to a position.

A decision that has one reads only later events. A snapshot is an unfold in a stream of its own, without events; the
stream is named after the model and the hash of its query. A snapshot only saves reading: the read that follows has the
same query and begins after the snapshot's position, and the decision's condition is the position of that read. So an
outdated snapshot costs a longer read and nothing else.

    another version, or other projections               the snapshot is ignored
    its position was never one of this store's          the store refuses the read, and all events are read
    `load` raises, or returns no mapping                the snapshot is ignored
    two processes store one at the same moment          both are right: each has all events up to its position
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, Final

from epochal.codec import json
from epochal.deciders.snapshot_marks import UNREADABLE
from epochal.errors import TooLarge, Unavailable
from epochal.lazy_dataclasses import dataclass
from epochal.model.bodies import Claim
from epochal.model.events import Unfold
from epochal.model.position_text import read_position, write_position
from epochal.model.positions import Position
from epochal.model.tags import Query
from epochal.store.streams import Streams

EVERY: Final = 100

_TYPE: Final = "Model"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSnapshots:
    """Stores snapshots of decision models (the folded states of projections), in streams.

    Attributes:
        streams: the store of the streams that hold the snapshots; in the table of the events, or in another table.
        name: name of the model, and category of its streams, so that no other streams may have it.
        version: version of the projections; snapshots of another version are ignored.
        dump: function that converts the states of all projections, by name, to bytes.
        load: function that converts the bytes of `dump` back to the states by name; raises `CorruptData` or a
            `ValueError`, `LookupError`, `TypeError` or `AttributeError` for what it cannot read.
        every: number of events that are folded before another snapshot is stored.
    """

    streams: Streams
    name: str
    version: str
    dump: Callable[[Mapping[str, Any]], bytes]
    load: Callable[[bytes], Mapping[str, Any]]
    every: int = EVERY

    def find(self, query: Query, names: Collection[str]) -> tuple[Mapping[str, Any], Position] | None:
        """Return the stored states of the named projections and their position; None if no snapshot can be used.

        Args:
            query: query that reads the model.
            names: names of the projections.
        """
        head = self.streams.load(self._stream(query, names), events=False)
        if head is None or not head.unfolds:
            return None
        unfold = head.unfolds[0]
        if isinstance(unfold.data, Claim) or isinstance(unfold.meta, Claim):
            return None
        try:
            meta = json.loads(unfold.meta)
            if meta["version"] != self.version:
                return None
            position = read_position(meta["position"])
            states: object = self.load(unfold.data)
        except UNREADABLE:
            return None
        # A user's `load` may return anything: `json.loads` does.
        return (states, position) if isinstance(states, Mapping) and states.keys() == set(names) else None

    def keep(self, query: Query, states: Mapping[str, Any], position: Position) -> None:
        """Store the folded states of a model as a snapshot; if that fails, the next decision reads more events.

        Args:
            query: query that reads the model.
            states: states of the projections, by their names.
            position: position of the read that they were folded from.
        """
        meta = json.dumps({"version": self.version, "position": write_position(position)})
        unfold = Unfold(type=_TYPE, data=self.dump(states), meta=meta)
        with suppress(Unavailable, TooLarge):
            self.streams.try_append(self._stream(query, states), [], unfolds=[unfold])

    def _stream(self, query: Query, names: Collection[str]) -> str:
        """Return the name of the stream for the snapshots of a query and these projections."""
        items = sorted([sorted(item.types), sorted(item.tags)] for item in query.items)
        digest = hashlib.sha256(json.dumps([sorted(names), items])).hexdigest()
        return f"{self.name}-{digest[:32]}"
