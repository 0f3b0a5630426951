"""Something of which a replica has a part only, and what to do about it."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final, Literal

from epochal.lazy_dataclasses import dataclass

Kind = Literal["pruned", "open", "state", "key", "part", "doubt", "hole", "unreadable"]

ADVICE: Final = MappingProxyType[Kind, str](
    {
        "part": "append the rest, as far as it is wanted, under another key",
        "doubt": "before trusting the answer to a repeated append, check that its events exist",
        "hole": "append the wanted events again, to another stream, or copy the pages of the first region",
        "unreadable": "copy the item of the first region",
    }
)
"""What to do about what stays; all else can be mended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Torn:
    """Something of which a replica has only a part.

    Attributes:
        kind: what is incomplete; the kinds are listed in `partial_replication`.
        stream: name of the stream; for a key, the name of its record.
        index, end: events `index` to `end` - 1 are concerned.
        cause: further details; may be empty.
        mended: whether it has been mended.
    """

    kind: Kind
    stream: str
    index: int = 0
    end: int = 0
    cause: str = ""
    mended: bool = False

    @property
    def advice(self) -> str:
        """What to do about what stays; empty where it can be mended."""
        return ADVICE.get(self.kind, "")
