"""How far a reaction has got: the place of a stream's events in the feed, and whether a group has reached it."""

from __future__ import annotations

from collections.abc import Mapping

from epochal.care.status import GroupStanding, standings
from epochal.contrib.proving.proof import ProofRun
from epochal.index.checkpoints import BEGINNING, Checkpoint
from epochal.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPlace:
    """A place in the feed: a partition, and the checkpoint after the events in question."""

    partition: int
    checkpoint: Checkpoint


def ends_of_feed(proof: ProofRun) -> Mapping[int, Checkpoint]:
    """Return the checkpoint after the last entry of each partition, for `find_place` to begin at."""
    return {partition.partition: partition.tail for partition in proof.store.feed.partitions()}


def find_place(proof: ProofRun, stream: str, begins: Mapping[int, Checkpoint]) -> FeedPlace | None:
    """Return the end of the first feed page with an event of the stream as a place; None if there is none.

    Args:
        begins: checkpoints to read from, by partition; a partition that is new since is read from its beginning.
    """
    for tail in proof.store.feed.partitions():
        for page in proof.store.feed.read(tail.partition, start=begins.get(tail.partition, BEGINNING)):
            if any(item.stream == stream for item in page.items):
                return FeedPlace(partition=tail.partition, checkpoint=page.next)
    return None


def standing_at(proof: ProofRun, group: str, place: FeedPlace) -> GroupStanding | None:
    """Return how far a group is in the partition of a place; None before it has handled anything there."""
    for partition in standings(proof.store.driver, proof.store.settings.index_table, (group,)):
        if partition.partition == place.partition:
            return next(iter(partition.groups), None)
    return None


def has_reached(proof: ProofRun, group: str, place: FeedPlace) -> bool:
    """Whether the checkpoint of a group is at a place or beyond it."""
    standing = standing_at(proof, group, place)
    return standing is not None and standing.checkpoint >= place.checkpoint
