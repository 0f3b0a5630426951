"""Checkpoints: a position in one partition's chain of epochs, as one 64-bit integer.

The 20 low bits are the offset of the next entry to read in its epoch, the other 44 the epoch (as Equinox's
DynamoStore architecture page has it). Past the end of a closed epoch a checkpoint is the beginning of the next
one. Checkpoints of one partition are ordered as integers.
"""

from __future__ import annotations

import re
from typing import Final

from epochal.errors import InvalidInput
from epochal.model.kinds import must_be

OFFSET_BITS: Final = 20
MAX_OFFSET: Final = (1 << OFFSET_BITS) - 1
MAX_EPOCH: Final = (1 << 43) - 1
"""The sign bit of an int64 stays clear."""

_TEXT: Final = re.compile(r"(\d{1,13})@(\d{1,7})|(\d{1,19})", re.ASCII)


class Checkpoint(int):
    """`epoch << 20 | offset`. Shown as `epoch@offset`."""

    __slots__ = ()

    @classmethod
    def of(cls, epoch: int, offset: int) -> Checkpoint:
        """The position of entry `offset` in `epoch`."""
        if not (0 <= epoch <= MAX_EPOCH and 0 <= offset <= MAX_OFFSET):
            raise ValueError(f"no checkpoint holds entry {offset:,} of epoch {epoch:,}")
        return cls(epoch << OFFSET_BITS | offset)

    @property
    def epoch(self) -> int:
        """Which epoch."""
        return int(self) >> OFFSET_BITS

    @property
    def offset(self) -> int:
        """Entries of the epoch before this position."""
        return int(self) & MAX_OFFSET

    def __str__(self) -> str:
        return f"{self.epoch}@{self.offset}"

    def __repr__(self) -> str:
        return f"Checkpoint({self})"


BEGINNING: Final = Checkpoint(0)


def parse_checkpoint(text: str, field: str = "from") -> Checkpoint:
    """Read `epoch@offset` or the plain integer; raises `InvalidInput` naming `field`."""
    must_be(str, text, field, "text")
    match = _TEXT.fullmatch(text)
    if match is None:
        raise InvalidInput(field, "must be a checkpoint: epoch@offset, or its integer")
    epoch, offset, whole = match.groups()
    if whole is not None:
        if int(whole) > (MAX_EPOCH << OFFSET_BITS | MAX_OFFSET):
            raise InvalidInput(field, "must be a checkpoint of at most 63 bits")
        return Checkpoint(int(whole))
    if int(epoch) > MAX_EPOCH or int(offset) > MAX_OFFSET:
        raise InvalidInput(field, f"must have an offset of at most {MAX_OFFSET:,}")
    return Checkpoint.of(int(epoch), int(offset))
