"""What can be wrong with an index, and what mends it.

repair     in place, beside the indexer: what is missing at the end of a stream comes as any event that is late
rebuild    into another table: readers may have passed the place, so that nothing can be put there any more
look       the index is right about what it was told; what it was told by is wrong
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from epochal.index.checkpoints import Checkpoint
from epochal.plan.values import Key

Remedy = Literal["repair", "rebuild", "look"]

Kind = Literal[
    "unregistered",
    "missing",
    "mark low",
    "mark high",
    "gap",
    "backwards",
    "misplaced",
    "entry unreadable",
    "epoch unreadable",
    "epoch lost",
    "epoch left open",
    "epoch continued",
    "too far",
    "orphan",
    "head unreadable",
    "checkpoint beyond",
    "stray stream",
]

REMEDIES: Final = MappingProxyType[Kind, Remedy](
    {
        "unregistered": "repair",
        "missing": "repair",
        "mark low": "repair",
        "mark high": "rebuild",
        "gap": "rebuild",
        "backwards": "rebuild",
        "misplaced": "rebuild",
        "entry unreadable": "rebuild",
        "epoch unreadable": "rebuild",
        "epoch lost": "rebuild",
        "epoch left open": "rebuild",
        "epoch continued": "rebuild",
        "too far": "look",
        "orphan": "look",
        "head unreadable": "look",
        "checkpoint beyond": "look",
        "stray stream": "look",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that is wrong.

    Attributes:
        source: of the feed; `index` for what is of none.
        partition: of the feed, where it is one's.
        stream: whose events these are; of a head that cannot be read its key, of a checkpoint its group.
        index: of the first event that is concerned.
        end: the index after the last.
        at: the place in the chain.
        cause: what else is known.
        key: of the head that tells of what is missing.
    """

    kind: Kind
    source: str
    partition: int | None = None
    stream: str | None = None
    index: int | None = None
    end: int | None = None
    at: Checkpoint | None = None
    cause: str = ""
    key: Key | None = None

    @property
    def remedy(self) -> Remedy:
        """What mends it."""
        return REMEDIES[self.kind]
