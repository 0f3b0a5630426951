"""The sources of the feed: for each layout the table of its heads, what an image of it tells, how gaps are healed.

    tips        streams by name        the Tips
    journal     aggregates             the snapshots with number 0; one that another library wrote tells nothing but
                                       that something happened
    dcb         tags                   their heads; an event stands in the stream of each of its tags

Names that begin with `$` are the system's, and are no part of the feed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from epochal.index.epochs import Change, Touched
from epochal.index.healing import Heal, heal_dcb, heal_journal, heal_tips
from epochal.index.names import BASES, partition_of
from epochal.layout.dcb import heads as dcb_heads
from epochal.layout.dcb.reading import Site as TagSite
from epochal.layout.journal import heads as journal_heads
from epochal.layout.journal.writes import Site as JournalSite
from epochal.layout.tips import heads as tips_heads
from epochal.model.ends import End
from epochal.model.spans import Span
from epochal.plan.conditions import Condition
from epochal.plan.values import Item

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One layout's part of the feed.

    Attributes:
        name: of `names.BASES`.
        table: where its heads are; its stream carries their new images.
        partitions: how many it has; recorded on first use, and any other number is refused afterwards.
        appended: what an image tells; None for one that is no append. Raises `CorruptData`, or what comes of reading
            an item of another shape.
        heal: reads events that stream records have not told.
        end: where the stream of a head ends; None for an item that is no head of the feed. Raises as `appended` does.
        told: the change that brings the index up to a head, whatever its latest write was; None as for `end`.
        where: a scan's condition that only heads meet.
        stored: the events that an item of an exported table holds (`care.rebuild`).
    """

    name: str
    table: str
    partitions: int
    appended: Callable[[Item], Change | None]
    heal: Heal
    end: Callable[[Item], End | None]
    told: Callable[[Item], Change | None]
    where: Condition
    stored: Callable[[Item], Span | None]

    @property
    def base(self) -> int:
        """Its first partition."""
        return BASES[self.name]

    def partition_of(self, stream: str) -> int:
        """The partition of a stream."""
        return partition_of(stream, self.partitions, self.name)


def tips_source(table: str, partitions: int = 1) -> Source:
    """Streams by name."""
    return Source(
        name="tips",
        table=table,
        partitions=partitions,
        appended=tips_heads.appended,
        heal=heal_tips(table),
        end=tips_heads.end,
        told=_told_by_tip,
        where=tips_heads.WHERE,
        stored=tips_heads.stored,
    )


def journal_source(site: JournalSite, partitions: int = 1) -> Source:
    """Aggregates that are stored where the site looks for them."""
    told: Callable[[Item], Change | None] = _in_place(site, _appended_to_aggregate)
    return Source(
        name="journal",
        table=site.snapshot,
        partitions=partitions,
        appended=told,
        heal=heal_journal(site),
        end=_in_place(site, journal_heads.end),
        told=told,
        where=journal_heads.WHERE,
        stored=_in_place(site, partial(journal_heads.stored, site)),
    )


def dcb_source(site: TagSite, partitions: int = 1) -> Source:
    """Tags of the site's tenant."""
    return Source(
        name="dcb",
        table=site.tags,
        partitions=partitions,
        appended=lambda item: dcb_heads.appended(item, site.keys.service),
        heal=heal_dcb(site),
        end=lambda item: dcb_heads.end(item, site.keys.service),
        told=lambda item: dcb_heads.appended(item, site.keys.service),
        where=dcb_heads.WHERE,
        stored=lambda item: dcb_heads.stored(item, site.keys.service),
    )


def _in_place(site: JournalSite, read: Callable[[Item], T | None]) -> Callable[[Item], T | None]:
    """What an item tells, of an aggregate that readers of the feed will find by its id."""

    def checked(item: Item) -> T | None:
        told = read(item)
        if told is not None:
            journal_heads.check_place(site, item)
        return told

    return checked


def _appended_to_aggregate(item: Item) -> Change | None:
    aggregate = journal_heads.touched(item)
    return journal_heads.appended(item) if aggregate is None else Touched(stream=aggregate)


def _told_by_tip(item: Item) -> Change | None:
    """All that a Tip carries: of most streams that is everything, and nothing need be read."""
    end = tips_heads.end(item)
    if end is None:
        return None
    carried = tips_heads.stored(item)
    return Touched(stream=end.stream) if carried is None else carried
