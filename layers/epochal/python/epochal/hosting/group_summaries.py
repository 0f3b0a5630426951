"""Summaries of groups over all partitions: how far each is behind, and why it makes no progress.

All interfaces show the same words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from epochal.errors import GroupMissing
from epochal.hosting.indexer_state import IndexerState
from epochal.index.failed_runs import FailedRun
from epochal.layout.registry import source_of
from epochal.lazy_dataclasses import dataclass
from epochal.model.quantities import quantity
from epochal.reactions.steering import GroupFigures, Groups, blocked_view


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """A group in all partitions where it has begun.

    Attributes:
        group: name of the group.
        figures: figures of the group in each of these partitions.
        states: states of the indexers that feed these partitions.
    """

    group: str
    figures: Sequence[GroupFigures]
    states: Sequence[IndexerState]

    @property
    def events(self) -> int | None:
        """Number of events that the group is behind; None if a checkpoint is of another index."""
        counts = [figures.events for figures in self.figures]
        return None if None in counts else sum(count or 0 for count in counts)

    @property
    def of_all(self) -> bool:
        """Whether the number of events includes events that the group does not read."""
        return any(figures.of_all for figures in self.figures)

    @property
    def parked(self) -> int:
        """Number of parked streams."""
        return sum(figures.parked for figures in self.figures)

    @property
    def paused(self) -> str:
        """Time since which the group is paused; empty if it is not."""
        return min((figures.paused for figures in self.figures if figures.paused), default="")

    @property
    def failure(self) -> str:
        """The latest failed run in words; empty if no run has failed since the group last made progress."""
        return "" if self._latest is None else self._latest.words

    @property
    def remedy(self) -> str:
        """What to do about the latest failed run; empty if there is none."""
        return "" if self._latest is None else self._latest.remedy

    @property
    def _latest(self) -> FailedRun | None:
        """The latest failed run of all partitions."""
        return latest_failure(run for figures in self.figures for run in figures.blocked)

    @property
    def indexer(self) -> IndexerState:
        """The worst of the states of the indexers that feed the group."""
        return min(self.states, key=lambda state: (not state.failure, not state.missing, not state.unknown))

    @property
    def view(self) -> dict[str, Any]:
        """The summary as JSON, without the name."""
        return {
            "events": self.events,
            "ofAllEvents": self.of_all,
            "parked": self.parked,
            "paused": self.paused or None,
            "blocked": [
                {"partition": figures.partition, **blocked_view(run)}
                for figures in self.figures
                for run in figures.blocked
            ],
            "indexer": self.indexer.view,
        }

    @property
    def words(self) -> str:
        """The summary in one line."""
        seconds = max((figures.seconds for figures in self.figures), default=0.0)
        parts = [
            lag_words(self.events, seconds, self.indexer, of_all=self.of_all),
            f"{self.parked:,} parked",
        ]
        if self.paused:
            parts.append(f"paused since {self.paused}")
        if self.failure:
            parts.append(" ".join(self.failure.splitlines()))
        if not self.indexer.works:
            parts.append(self.indexer.text)
        return "  ".join(parts)


def latest_failure(runs: Iterable[FailedRun]) -> FailedRun | None:
    """Return the latest of these failed runs; None if there is none."""
    return max(runs, key=lambda run: run.last, default=None)


def summaries_of(
    groups: Groups, names: Iterable[str], states: Mapping[str, IndexerState]
) -> Iterator[GroupSummary]:
    """Yield a summary for each of the named groups; leave out those that do not exist.

    Args:
        states: of indexers, by source.
    """
    for name, figures in _figures_of_each(groups, names):
        indexers = [state_of(standing.partition, states) for standing in figures]
        yield GroupSummary(group=name, figures=figures, states=indexers)


def figures_of(groups: Groups, names: Iterable[str]) -> dict[tuple[str, int], GroupFigures]:
    """Read the figures of groups, by group and partition; a group that was deleted meanwhile has none."""
    return {
        (name, figure.partition): figure
        for name, figures in _figures_of_each(groups, names)
        for figure in figures
    }


def _figures_of_each(groups: Groups, names: Iterable[str]) -> Iterator[tuple[str, list[GroupFigures]]]:
    """Yield each named group and its figures, read one after another; leave out those that do not exist."""
    for name in names:
        try:
            figures = groups.standing(name)
        except GroupMissing:
            continue
        yield name, figures


def state_of(partition: int, states: Mapping[str, IndexerState]) -> IndexerState:
    """The state of the indexer of a partition."""
    source = source_of(partition)
    return states.get(source, IndexerState(unknown=f"no table of {source} is named"))


def lag_words(events: int | None, seconds: float, indexer: IndexerState, *, of_all: bool) -> str:
    """Return words for how far a group is behind: up to date only if the indexer is known to work.

    Args:
        events: that it is behind; None where a checkpoint is of another index.
        seconds: since the oldest of them was indexed.
        of_all: all events are counted, and not those alone that the group reads.
    """
    if events is None:
        return "beyond the end"
    if events:
        return f"{quantity(events)} behind{', of all events' if of_all else ''}, {seconds:,.0f} s"
    if indexer.works:
        return "up to date"
    return "at the end of an index that gets no events" if indexer.failure else "at the end of the index"
