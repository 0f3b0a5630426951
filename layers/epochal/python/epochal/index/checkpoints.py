"""Names of the index's streams, and checkpoints: positions in a partition's chain of epochs as 64-bit integers.

The 20 low bits are the offset of the next entry to read in its epoch, the other 44 the epoch (as Equinox's DynamoStore
architecture page has it). Past the end of a closed epoch a checkpoint is the beginning of the next one. Checkpoints of
one partition are ordered as integers. A reader may also begin at a moment (`model.moments.Moment`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal

from epochal.errors import InvalidInput
from epochal.model.kinds import must_be
from epochal.model.moments import Moment, read_moment
from epochal.model.stream_names import StreamName
from epochal.plan.conditions import Condition, equals
from epochal.plan.values import Item, Key, number, text

# The names of streams, and the keys of their items (FORMATS §4). This outlives the code.

TIP: Final = 2_147_483_647
"""Sort key of the Tip (Int32.MaxValue, as Equinox has it)."""

WHERE: Condition = equals("i", number(TIP))
"""Condition that only Tips meet."""

SERIES: Final = StreamName("$AppendsIndex-0")
"""The one stream that says which epoch each partition has reached, and how many partitions a source has."""

EPOCHS: Final = "$AppendsEpoch-"
"""Prefix of the names of epochs' streams."""

REMOVALS: Final = "$Removed-"
"""Prefix of the names of marks of removals. These marks were never stored as items of their own."""

MAX_KEY_BYTES: Final = 2048
"""DynamoDB's limit on partition keys, and so on the name of a mark."""


def epoch_stream(partition: int, epoch: int) -> StreamName:
    """Return the name of the stream that holds one epoch of a partition."""
    return StreamName(f"{EPOCHS}{partition}_{epoch}")


def mark_name(partition: int, stream: str) -> str:
    """Return the partition key of a stream's mark in the older form, as an item of its own."""
    return f"$Indexed-{partition}_{stream}"


def removal_name(stream: str) -> str:
    """Return the name under which the mark of a stream's latest removal is kept."""
    return f"{REMOVALS}{stream}"


def marks_name(partition: int) -> str:
    """Return the partition key of the leaves that hold a partition's marks."""
    return f"$Marks-{partition}"


def poison_stream(partition: int) -> StreamName:
    """Return the name of the stream to which records that cannot be indexed are moved."""
    return StreamName(f"$Poison-{partition}")


def tip_key(stream: str) -> Key:
    """Return the primary key of a stream's Tip."""
    return calf_key(stream, TIP)


def calf_key(stream: str, base: int) -> Key:
    """Return the primary key of the calf whose first event has index `base`."""
    return {"p": text(stream), "i": number(base)}


def is_tip(item: Item) -> bool:
    """Return whether an item of the table is a Tip."""
    return bool(item["i"]["N"] == str(TIP))


# Checkpoints.

OFFSET_BITS: Final = 20
MAX_OFFSET: Final = (1 << OFFSET_BITS) - 1
MAX_EPOCH: Final = (1 << 43) - 1
"""The sign bit of an int64 stays clear."""

_TEXT: Final = re.compile(r"(\d{1,13})@(\d{1,7})|(\d{1,19})", re.ASCII)
_PARTITION: Final = re.compile(r"\d{1,9}", re.ASCII)
_DAY: Final = re.compile(r"\d{4}-", re.ASCII)


class Checkpoint(int):
    """A position in a partition's feed: an epoch (section of its index) and an offset in it, as the integer `epoch <<
    20 | offset`. Shown as `epoch@offset`.
    """

    __slots__ = ()

    @classmethod
    def of(cls, epoch: int, offset: int) -> Checkpoint:
        """Build the checkpoint before entry `offset` of epoch `epoch`; raise `ValueError` if out of range.

        Args:
            epoch: number of the epoch of the index, from 0.
            offset: number of the entry in its epoch, from 0.
        """
        if not (0 <= epoch <= MAX_EPOCH and 0 <= offset <= MAX_OFFSET):
            raise ValueError(f"entry {offset:,} of epoch {epoch:,} is out of range for a checkpoint")
        return cls(epoch << OFFSET_BITS | offset)

    @property
    def epoch(self) -> int:
        """Number of the epoch (section of the partition's index) that the position is in."""
        return int(self) >> OFFSET_BITS

    @property
    def offset(self) -> int:
        """Number of index entries in the epoch before this position."""
        return int(self) & MAX_OFFSET

    def __str__(self) -> str:
        return f"{self.epoch}@{self.offset}"

    def __repr__(self) -> str:
        return f"Checkpoint({self})"


BEGINNING: Final = Checkpoint(0)


def parse_checkpoint(text: str, field: str = "from") -> Checkpoint:
    """Parse `epoch@offset` or a plain integer as a checkpoint; raise `InvalidInput` naming `field`.

    Args:
        text: text of the checkpoint.
        field: name of the argument that holds the text, for error messages.
    """
    must_be(str, text, field, "text")
    match = _TEXT.fullmatch(text)
    if match is None:
        raise InvalidInput(field, "must be a checkpoint, such as 3@15 (epoch@offset), or its integer form")
    epoch, offset, whole = match.groups()
    if whole is not None:
        if int(whole) > (MAX_EPOCH << OFFSET_BITS | MAX_OFFSET):
            raise InvalidInput(field, "must be a checkpoint of at most 63 bits")
        return Checkpoint(int(whole))
    if int(epoch) > MAX_EPOCH or int(offset) > MAX_OFFSET:
        raise InvalidInput(field, f"must have an offset of at most {MAX_OFFSET:,}")
    return Checkpoint.of(int(epoch), int(offset))


class FeedPosition(dict[int, Checkpoint]):
    """A position in the whole feed: a checkpoint for each partition.

    A partition that is missing is at its beginning. The text form is `partition:epoch@offset`, separated by commas;
    `parse_position` reads it.
    """

    def covers(self, other: Mapping[int, Checkpoint]) -> bool:
        """Return whether this position is at or after another one in every partition.

        Args:
            other: position to compare with: checkpoints by partition.
        """
        must_be(Mapping, other, "other", "a position")
        for checkpoint in other.values():
            must_be(int, checkpoint, "other", "a position, with a Checkpoint of each partition")
        return all(self.get(partition, BEGINNING) >= checkpoint for partition, checkpoint in other.items())

    def __str__(self) -> str:
        return ",".join(f"{partition}:{checkpoint}" for partition, checkpoint in sorted(self.items()))


def parse_position(text: str, field: str = "position") -> FeedPosition:
    """Parse a position in the whole feed from its text; raise `InvalidInput` naming `field`."""
    must_be(str, text, field, "text")
    position = FeedPosition()
    for part in text.split(",") if text else ():
        partition, _, checkpoint = part.partition(":")
        if not _PARTITION.fullmatch(partition):
            raise InvalidInput(field, "must be partition:epoch@offset, or several separated by commas")
        if int(partition) in position:
            raise InvalidInput(field, "must not name a partition twice")
        position[int(partition)] = parse_checkpoint(checkpoint, field)
    return position


FeedStart = Checkpoint | Moment | datetime | str
"""Where a reader of a partition begins: a checkpoint, `beginning`, `tail`, or a moment.

A moment is a datetime or ISO 8601 text, with a time zone."""

FeedPlace = Checkpoint | Moment | Literal["beginning", "tail"]
"""A starting point as `read_start` returns it."""


def read_start(start: object, field: str = "start") -> FeedPlace:
    """Return a starting point unchanged, a time as a `Moment`; raise `InvalidInput` for anything else.

    No event is skipped that was appended or indexed at or after a moment, as long as no clock of a writer or indexer
    is wrong by half a minute. Events of about the minute before come too.

    A moment before the first event is the beginning; one after the last is the tail when reading begins. In a rebuilt
    index, all events that existed then were indexed at that time.

    Args:
        start: a checkpoint, `beginning`, `tail`, or a moment: a datetime or ISO 8601 text, with a time zone.
        field: name of the argument, for error messages.

    Raises:
        InvalidInput: it is none of these, or has no time zone.
    """
    match start:
        case Checkpoint() | Moment():
            return start
        case "beginning":
            return "beginning"
        case "tail":
            return "tail"
        case datetime():
            return Moment(read_moment(start, field))
        case str() if _DAY.match(start):
            return Moment(read_moment(start, field))
        case _:
            rule = (
                "must be beginning, tail, a Checkpoint (parse_checkpoint makes one of text), or a moment:"
                " a datetime or ISO 8601 text, with a time zone"
            )
            raise InvalidInput(field, f"{rule}; got {start!r:.64}")


def parse_place(text: str, field: str = "from") -> FeedPlace:
    """Parse a feed's start (`beginning`, `tail`, checkpoint, ISO 8601 moment); else raise `InvalidInput`.

    The error names `field`.
    """
    must_be(str, text, field, "text")
    if text == "beginning":
        return "beginning"
    if text == "tail":
        return "tail"
    if _DAY.match(text):
        return Moment(read_moment(text, field))
    if not _TEXT.fullmatch(text):
        rule = "must be a checkpoint (epoch@offset, or its integer), a moment, beginning or tail"
        raise InvalidInput(field, rule)
    return parse_checkpoint(text, field)


def parse_places(text: str, field: str = "from") -> FeedPosition | FeedPlace:
    """Parse a position in the whole feed, or one starting point for every partition."""
    return parse_position(text, field) if ":" in text and "@" in text else parse_place(text, field)
