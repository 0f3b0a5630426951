"""The sources of the feed's events: the history of each layout, which reads events from the layout's store.

An event that cannot be read comes with its fault, and the events beside it are read. A layout's history is in the
module that its plug-in names (`plugins`).
"""

from __future__ import annotations

from typing import Protocol

from epochal.errors import InvalidInput
from epochal.feed.hydration import Hydrate
from epochal.feed.stream_history import DeployedHistory, StreamHistory
from epochal.layout.registry import layouts_in
from epochal.plugins import Layout, layouts
from epochal.settings import Settings
from epochal.store.driver import Driver
from epochal.store.encoding import BodyCodec
from epochal.store.streams import Streams


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


def histories_of(settings: Settings, driver: Driver, codec: BodyCodec) -> tuple[History, ...]:
    """Return the histories of a deployment's layouts; `codec` decodes the bodies of streams."""
    return tuple(_open_history(layout, settings, driver, codec) for layout in layouts_in(settings))


def _open_history(layout: Layout, settings: Settings, driver: Driver, codec: BodyCodec) -> History:
    """Return the history of one layout of a deployment."""
    plugin = layout.plugin
    if plugin.open_streams is not None:
        return DeployedHistory(layout.name, plugin.open_streams, settings, driver, codec)
    assert plugin.open_history is not None  # noqa: S101  a layout has one or the other
    history: History = plugin.open_history(settings, driver, codec)
    return history


def history_of(store: object) -> History:
    """Return the history of a store's layout; raise `InvalidInput` if it is not a store of any layout."""
    if isinstance(store, Streams):
        return StreamHistory(store)
    for layout in layouts():
        own = layout.plugin.history_of
        if own is not None and (history := own(store)) is not None:
            opened: History = history
            return opened
    raise InvalidInput("store", f"must be a store of events, not {type(store).__name__}")
