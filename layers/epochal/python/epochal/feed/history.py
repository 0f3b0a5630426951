"""Events of a layout in the shape that the feed has for all of them, and where their streams end.

What cannot be read comes with its fault, and whatever can be is read beside it. A layout's history is in the module
that its plug-in names (`plugins`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from epochal.errors import CorruptData, InvalidInput
from epochal.feed.hydration import Hydrate
from epochal.feed.results import FeedEvent
from epochal.layout.registry import layouts_in
from epochal.plugins import parts
from epochal.settings import Settings
from epochal.store.bodies import BodyCodec
from epochal.store.driver import Driver


class History(Protocol):
    """The events of a layout's streams, as its store has them.

    One whose store knows more of categories than the layout's port has them too, as `categories`.
    """

    @property
    def name(self) -> str:
        """The layout, as registered."""

    def on(self, driver: Driver) -> History:
        """The same, with all its requests through another driver."""

    def events(self, *, fetch: bool = True) -> Hydrate:
        """Reads events; without `fetch`, bodies in the bucket stay claims."""

    def end_of(self, stream: str, since: int) -> int:
        """The index after the last event that a stream has by now; the caller knows of those below `since`."""


def histories_of(settings: Settings, driver: Driver, codec: BodyCodec) -> tuple[History, ...]:
    """The histories of a deployment; `codec` decodes the bodies of streams."""
    return tuple(each.part("history").open_history(settings, driver, codec) for each in layouts_in(settings))


def history_of(store: object) -> History:
    """The history of what a store holds; raises `InvalidInput` where it is of no layout."""
    made = (getattr(each, "history_of", None) for each in parts("history"))
    found = (history_of(store) for history_of in made if history_of is not None)
    for history in found:
        if history is not None:
            opened: History = history
            return opened
    raise InvalidInput("store", f"must be a store of a layout's events, not {type(store).__name__}")


def faulty(stream: str, first: int, end: int, fault: CorruptData) -> Iterator[FeedEvent]:
    """Events of a stream, none of which can be read."""
    return (FeedEvent(stream=stream, index=index, type="", fault=fault) for index in range(first, end))
