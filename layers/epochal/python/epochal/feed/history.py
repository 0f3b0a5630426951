"""The sources of the feed's events: the history of each layout, which reads events from the layout's store.

An event that cannot be read comes with its fault, and the events beside it are read.
"""

from __future__ import annotations

from typing import Protocol

from epochal.feed.hydration import Hydrate
from epochal.store.driver import Driver


class History(Protocol):
    """Reads the events of a layout's streams from its store.

    A history also has `categories` if its store knows more about categories than the layout's port does.
    """

    @property
    def name(self) -> str:
        """Name of the layout, as registered."""

    def on(self, driver: Driver) -> History:
        """Return the same history with all requests through another driver."""

    def events(self, *, fetch: bool = True) -> Hydrate:
        """Return a function that reads events; without `fetch`, it leaves bodies in the bucket as claims."""

    def end_of(self, stream: str, since: int) -> int:
        """Return the index after the last event of a stream, at least `since`, which the caller knows."""
