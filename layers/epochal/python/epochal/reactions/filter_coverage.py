"""Tracks which categories and types of a reaction have had events.

A misspelt name matches nothing and raises no error.

A new group has all the names that it asks for as `unmet`, in each partition. A run that moves the checkpoint removes
the names that it has passed: a category once it has a stream, a type once it has an event in the categories asked for.
Once the group has reached the end of every partition, a name that is unmet in all of them is not in the feed. A group
that began before `unmet` was stored, or that asks for more since, is not reported: nothing shows that it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from difflib import get_close_matches
from typing import Final, Literal

from epochal.feed.filters import Predicate
from epochal.index.group_state import GroupState
from epochal.layout.categories import Categories
from epochal.layout.changes import Span
from epochal.layout.registry import source_of
from epochal.lazy_dataclasses import dataclass, field
from epochal.reactions.group_member import Member

MOST: Final = 100
"""Largest number of categories and types to watch for, and of names to remember as suggestions."""

Name = tuple[Literal["category", "type"], str]
"""Whether a name is of a category or an event type, and the name."""

_NOUNS: Final = {"category": "stream of the category", "type": "event of the type"}


def initial_unmet(names: Collection[str] | None) -> tuple[str, ...]:
    """Return the categories or types that a new group waits for: all it asks for, up to a limit."""
    return tuple(sorted(names or ())[:MOST])


@dataclass(slots=True, kw_only=True)
class FilterCoverage:
    """Tracks which requested categories and types have matched an event of a partition so far.

    Attributes:
        known: returns which streams of the partition belong to a category.
        categories: categories that the reaction asks for; None for all.
        unmet: those of which no stream has come.
        unmet_types: types that the reaction asks for, of which no event has come.
        seen: categories and types that came while something was unmet, as suggestions.
    """

    known: Callable[[], Categories]
    categories: Collection[str] | None = None
    unmet: tuple[str, ...] = ()
    unmet_types: tuple[str, ...] = ()
    seen: set[Name] = field(default_factory=set)

    def watched(self, predicate: Predicate) -> Predicate:
        """Return a predicate like `predicate` that also notes what it is called with, while anything is unmet."""
        if not (self.unmet or self.unmet_types):
            return predicate

        def noting(span: Span) -> bool:
            """Note a span's category and types, and return whether the span is wanted."""
            if self.unmet:
                self._note_category(span.stream)
            if self.unmet_types and self._asks_for(span.stream, self.categories):
                self._note_types(span.types)
            return predicate(span)

        return noting

    def _note_category(self, stream: str) -> None:
        """Remove the categories of a stream from those that are unmet."""
        self.unmet = tuple(name for name in self.unmet if not self._asks_for(stream, (name,)))
        self._remember("category", self.known().of(stream))

    def _note_types(self, types: tuple[str, ...]) -> None:
        """Remove types from those that are unmet."""
        self.unmet_types = tuple(name for name in self.unmet_types if name not in types)
        for name in types:
            self._remember("type", name)

    def _asks_for(self, stream: str, categories: Collection[str] | None) -> bool:
        """Return whether a stream belongs to one of these categories; None for all."""
        return categories is None or self.known().hold(stream, categories)

    def _remember(self, kind: Literal["category", "type"], name: str) -> None:
        """Remember a name that came, as a suggestion for misspelt ones."""
        if len(self.seen) < 2 * MOST:
            self.seen.add((kind, name))


def unmet_filters(member: Member) -> tuple[Name, ...]:
    """Return a reaction's categories and types that no event has; empty before its group is at the end.

    Nothing if the group has not come to the end of every partition.
    """
    missing: set[Name] = {("category", name) for name in member.reaction.categories or ()}
    missing |= {("type", name) for name in member.reaction.types or ()}
    missing = {item for item in missing if item[1] not in member.reaction.early}
    for item in member.reader.partitions():
        if source_of(item.partition) not in member.reaction.sources:
            continue
        state = member.load(item.partition).state
        if state is None or state.checkpoint < item.tail:
            return ()
        missing.intersection_update(_unmet_names(state))
        if not missing:
            return ()
    return tuple(sorted(missing))


def _unmet_names(state: GroupState) -> Iterator[Name]:
    """Iterate over the unmet categories and types of a group's state."""
    for name in state.unmet:
        yield "category", name
    for name in state.unmet_types:
        yield "type", name


def describe_unmet(names: Collection[Name], seen: Collection[Name]) -> Iterator[str]:
    """Yield a sentence for each name without events, suggesting names that it may have been meant for."""
    for kind, name in names:
        names_seen = sorted(other for other_kind, other in seen if other_kind == kind)
        similar = get_close_matches(name, names_seen, cutoff=0.5)
        instead = f"; did you mean {similar[0]!r}?" if similar else ""
        others = f" Seen so far: {', '.join(names_seen)}." if names_seen else ""
        yield f"no {_NOUNS[kind]} {name!r} has been seen since the group began{instead or '.'}{others}"
