"""Events of a layout in the shape that the feed has for all of them, and where their streams end.

What cannot be read comes with its fault, and whatever can be is read beside it. A layout's history is found by the
registry (`layout.registry`), in the module that its entry names.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Protocol

from epochal.errors import CorruptData
from epochal.feed.hydration import Hydrate
from epochal.feed.results import FeedEvent
from epochal.layout.registry import layouts, layouts_in
from epochal.settings import Settings
from epochal.store.bodies import BodyCodec
from epochal.store.driver import Driver


class History(Protocol):
    """The events of a layout's streams, as its store has them."""

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
    return tuple(
        import_module(each.history).open_history(settings, driver, codec) for each in layouts_in(settings)
    )


def history_of(store: object) -> History:
    """The history of what a store holds."""
    made = (getattr(import_module(each.history), "history_of", None) for each in layouts())
    found = (history_of(store) for history_of in made if history_of is not None)
    history: History = next(history for history in found if history is not None)
    return history


def faulty(stream: str, first: int, end: int, fault: CorruptData) -> Iterator[FeedEvent]:
    """Events of a stream, none of which can be read."""
    return (FeedEvent(stream=stream, index=index, type="", fault=fault) for index in range(first, end))
