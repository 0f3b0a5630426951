"""Opens the histories of a deployment's layouts, and finds the history of a store.

A layout's history is in the module that its plug-in names (`plugins`).
"""

from __future__ import annotations

from epochal.errors import InvalidInput
from epochal.feed.history import History
from epochal.feed.stream_history import DeployedHistory, StreamHistory
from epochal.layout.registry import layouts_in
from epochal.plugins import Layout, layouts
from epochal.settings import Settings
from epochal.store.driver import Driver
from epochal.store.encoding import BodyCodec
from epochal.store.streams import Streams


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
