"""Snapshots of decision models: what projections were folded to up to a position. A decision reads what came after.

A snapshot is an unfold in a stream of its own, without events, named after the model and the hash of its query. It only
saves reading: the read that follows is of the same query, after the snapshot's position, and the decision's condition
rests on the position of that read. So a snapshot that is old costs a longer read, and nothing else.

    of another version, or of other projections     it is passed over
    its position was never one of this store's      likewise: the read refuses it, and all is read
    `load` refuses it, or makes no mapping of it    likewise
    two keep one at the same moment                 either is a fold of all up to its position
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from epochal.codec import json
from epochal.errors import TooLarge, Unavailable
from epochal.model.dcb import Query
from epochal.model.events import Claim, Unfold
from epochal.model.positions import read_position, write_position
from epochal.model.versions import Position
from epochal.store.streams import Streams

EVERY: Final = 100

_TYPE: Final = "Model"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSnapshots:
    """Keeps the folded models of decisions, in streams.

    Attributes:
        streams: streams as pages, in the table of the events or another.
        name: of the model; the category of its streams, so that no other streams may have it.
        version: of the projections: another one's snapshots are passed over.
        dump, load: the answers of all projections, by name, to bytes and back. `load` raises `ValueError`, `KeyError`,
            `TypeError` or `AttributeError` for what it cannot read.
        every: so many events are folded before another snapshot is kept.
    """

    streams: Streams
    name: str
    version: str
    dump: Callable[[Mapping[str, Any]], bytes]
    load: Callable[[bytes], Mapping[str, Any]]
    every: int = EVERY

    def find(self, query: Query, names: Collection[str]) -> tuple[Mapping[str, Any], Position] | None:
        """The answers of these projections up to a position; None where there is no snapshot to go on from."""
        found = self.streams.load(self._stream(query, names))
        if found is None or not found.unfolds:
            return None
        kept = found.unfolds[0]
        if isinstance(kept.data, Claim) or isinstance(kept.meta, Claim):
            return None
        try:
            told = json.loads(kept.meta)
            if told["version"] != self.version:
                return None
            position = read_position(told["position"])
            states: object = self.load(kept.data)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
        # A user's `load` may return anything: `json.loads` does.
        return (states, position) if isinstance(states, Mapping) and states.keys() == set(names) else None

    def keep(self, query: Query, states: Mapping[str, Any], position: Position) -> None:
        """Keep what the model was folded to. Where that fails, the next decision reads more."""
        meta = json.dumps({"version": self.version, "position": write_position(position)})
        unfold = Unfold(type=_TYPE, data=self.dump(states), meta=meta)
        with suppress(Unavailable, TooLarge):
            self.streams.try_append(self._stream(query, states), [], unfolds=[unfold])

    def _stream(self, query: Query, names: Collection[str]) -> str:
        items = sorted([sorted(item.types), sorted(item.tags)] for item in query.items)
        digest = hashlib.sha256(json.dumps([sorted(names), items])).hexdigest()
        return f"{self.name}-{digest[:32]}"
