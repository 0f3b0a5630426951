"""The sources of the feed's events: the history of each layout, which reads events from the layout's store.

An event that cannot be read comes with its fault, and the events beside it are read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from epochal.feed.hydration import Hydrate, HydrateUnopened
from epochal.layout.categories import Categories
from epochal.layout.changes import Removal
from epochal.store.driver import Driver


class History(ABC):
    """Reads the events of a layout's streams from its store.

    `categories`, `unopened` and `removal_of` have defaults, for layouts that have nothing to add to them.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the layout, as registered."""

    @property
    def categories(self) -> Categories | None:
        """The rule for categories of a store that knows more than the layout's port; by default None."""
        return None

    @abstractmethod
    def on(self, driver: Driver) -> History:
        """Return the same history with all requests through another driver."""

    @abstractmethod
    def events(self, *, fetch: bool = True) -> Hydrate:
        """Return a function that reads events; without `fetch`, it leaves bodies in the bucket as claims."""

    def unopened(self, *, fetch: bool = False) -> HydrateUnopened:
        """Return a function that reads events and may leave large ones unopened; by default, it opens them all."""
        return self.events(fetch=fetch)

    @abstractmethod
    def end_of(self, stream: str, since: int) -> int:
        """Return the index after the last event of a stream, at least `since`, which the caller knows."""

    def removal_of(self, stream: str) -> Removal | None:  # noqa: ARG002  the default records no removals
        """Return all that was removed from a stream, as one removal; None if nothing was, and by default."""
        return None
