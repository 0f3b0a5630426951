"""Categories: which streams belong together for readers of the feed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from epochal.lazy_dataclasses import dataclass


class Categories(Protocol):
    """Decides which streams belong to a category."""

    @property
    def declared(self) -> frozenset[str]:
        """Categories whose names contain `-`, as they were declared to the store."""

    def of(self, stream: str) -> str:
        """Return the category of a stream."""

    def hold(self, stream: str, categories: Collection[str]) -> bool:
        """Whether a stream is in one of these categories."""


@dataclass(frozen=True, slots=True)
class CategoriesBy:
    """Puts each stream in the one category that a function of its name returns."""

    name: Callable[[str], str]

    @property
    def declared(self) -> frozenset[str]:
        """Empty, since the function alone decides."""
        return frozenset()

    def of(self, stream: str) -> str:
        """Return the category of a stream."""
        return self.name(stream)

    def hold(self, stream: str, categories: Collection[str]) -> bool:
        """Whether a stream is in one of these categories."""
        return self.name(stream) in categories
