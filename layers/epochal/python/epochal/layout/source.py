"""The source of a layout: what the indexer, the auditor and care need to index its streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from epochal.layout.changes import Change, Removal, RemovalKind, Span
from epochal.layout.healing import Heal
from epochal.layout.registry import base_of, partition_of
from epochal.lazy_dataclasses import dataclass
from epochal.plan.conditions import Condition
from epochal.plan.values import Item, decodes

if TYPE_CHECKING:
    from epochal.model.moments import Ticks


@dataclass(frozen=True, slots=True)
class End:
    """The end of a stream, as its head shows it.

    Attributes:
        stream: name of the stream.
        next: index after its last event; None if the head does not show it, and the store must be read.
        pruned: index below which every event is gone.
        since: index below which other heads of the stream have the events.
        left: kind of the removal, if events are gone.
    """

    stream: str
    next: int | None
    pruned: int = 0
    since: int = 0
    left: RemovalKind = "pruned"

    @property
    def removal(self) -> Removal | None:
        """The removal of the stream's events; None where nothing is gone."""
        if not self.pruned and self.left == "pruned":
            return None
        return Removal(self.stream, self.pruned, self.left, self.next or self.pruned)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The part of the feed that is indexed from one layout.

    Attributes:
        name: name of the layout, as registered.
        table: name of the table of heads, whose stream carries their new images.
        partitions: number of its partitions; recorded on first use, and any other number is refused afterwards.
        setting: name of the setting with that number.
        appended: function that returns the change in the image of an item; None if it is no append. Raises
            `CorruptData`.
        heal: reads events that stream records do not contain.
        end: function that returns the end of the stream of a head; None for an item that is no head of the feed. Raises
            `CorruptData`.
        change_up_to: function that returns the change that brings the index up to a head, whatever its latest write
            was; None as for `end`.
        where: condition that only heads of the feed meet: for scans, and for the filter that wakes the indexer. Like
            `moved` it is made of conditions that a filter of the stream has a form for (`cdk.parts.head_filters`): `=`,
            `Present` with its `kind`, `BeginsWith`, `Not` of `=`, and `All` of these.
        moved: further condition of a head whose latest write may have appended; None where every write appends.
        pruned: further condition of a head whose latest write may have removed events, where `moved` does not hold;
            None where `moved` always holds then, or where nothing is ever removed.
        stored: function that returns the events that an item of an exported table holds (`care.rebuild`).
        aged: function that returns the index below which a head's events are older than a moment; None where nothing of
            the layout is pruned by age or count (`care.retention`).
        written: function that returns the time of the append in an image; None where the layout does not tell.
        append_id: function that returns the id of the append in an image that `appended` takes, which images of several
            streams may share; None where the latest write is no append. None where the layout does not tell.
        numbers: function that returns the number of each event of the append in an image within that append, in order;
            None where the image does not tell. None where the layout does not.
    """

    name: str
    table: str
    partitions: int
    setting: str
    appended: Callable[[Item], Change | None]
    heal: Heal
    end: Callable[[Item], End | None]
    change_up_to: Callable[[Item], Change | None]
    where: Condition
    moved: Condition | None
    stored: Callable[[Item], Span | None]
    pruned: Condition | None = None
    aged: Callable[[Item, Ticks], int] | None = None
    written: Callable[[Item], Ticks | None] = lambda _: None
    append_id: Callable[[Item], bytes | None] | None = None
    numbers: Callable[[Item], Sequence[int] | None] | None = None

    def __post_init__(self) -> None:
        """Make the readers raise `CorruptData`, and nothing else, for an item of another layout."""
        for reader in ("appended", "end", "change_up_to", "stored"):
            object.__setattr__(self, reader, decodes(self.name)(getattr(self, reader)))

    @property
    def base(self) -> int:
        """The first partition of the layout."""
        return base_of(self.name)

    def partition_of(self, stream: str) -> int:
        """Return the partition of a stream."""
        return partition_of(stream, self.partitions, self.base)
