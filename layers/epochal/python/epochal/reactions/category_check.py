"""Which categories of a reaction's have come: one that is misspelt handles nothing, for ever, and nothing fails of it.

A group begins with all that it asks for as `unmet`, in each partition; whoever moves its checkpoint takes out what he
has passed. Once the group has come to the end everywhere, what is left in every partition has no stream in the feed.
A group that began before this was kept, or was asked for more since, is not told of: nothing is wrong that is known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from epochal.feed.categories import Predicate, category_in, in_categories
from epochal.layout.registry import source_of
from epochal.model.aggregates import AggregateTypes
from epochal.model.spans import Span
from epochal.reactions.group_member import Member

MOST: Final = 100
"""Categories that are looked out for, and that are remembered to be offered instead."""


def at_first(categories: Collection[str] | None) -> tuple[str, ...]:
    """What a group that begins has not met."""
    return tuple(sorted(categories or ())[:MOST])


@dataclass(slots=True, kw_only=True)
class Meeting:
    """What comes of a partition.

    Attributes:
        types: of aggregates, as they are declared.
        unmet: of the categories that are asked for.
        seen: categories that came while some were unmet.
    """

    partition: int
    types: AggregateTypes | None = None
    unmet: tuple[str, ...] = ()
    seen: set[str] = field(default_factory=set)

    def watched(self, wanted: Predicate) -> Predicate:
        """The same predicate, and what it is asked about is taken note of for as long as anything is unmet."""
        if not self.unmet:
            return wanted

        def noting(span: Span) -> bool:
            if self.unmet:
                self._note(span.stream)
            return wanted(span)

        return noting

    def _note(self, stream: str) -> None:
        met = [name for name in self.unmet if in_categories(self.partition, stream, (name,), self.types)]
        if met:
            self.unmet = tuple(name for name in self.unmet if name not in met)
        if len(self.seen) < MOST:
            self.seen.add(category_in(self.partition, stream, self.types))


def unmet(member: Member) -> tuple[str, ...]:
    """Categories that a reaction asks for and that have no stream, as far as its group has come; none where it has not
    come to the end of every partition.
    """
    left = set(member.reaction.categories or ())
    for each in member.reader.partitions():
        if source_of(each.partition) not in member.reaction.sources:
            continue
        state = member.load(each.partition).state
        if state is None or state.checkpoint < each.tail:
            return ()
        left &= set(state.unmet)
        if not left:
            return ()
    return tuple(sorted(left))


def told_of(names: Collection[str], seen: Collection[str]) -> Iterator[str]:
    """A sentence for each of the categories that are unmet, with those that it may have been meant for."""
    for name in names:
        similar = get_close_matches(name, seen, cutoff=0.5)
        instead = f"; did you mean {similar[0]!r}?" if similar else ""
        others = f" What has come: {', '.join(sorted(seen))}." if seen else ""
        yield f"no stream of the category {name!r} has come since the group began{instead or '.'}{others}"
