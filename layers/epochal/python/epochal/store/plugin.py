"""Registers the pages layout, Epochal's own, which new stores use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from epochal.deferred import DeferredModule
from epochal.plugins import Plugin

if TYPE_CHECKING:
    from epochal.layout.port import Port
    from epochal.store import streams
else:
    streams = DeferredModule("epochal.store.streams")


def _port() -> Port:
    """Import the port of pages."""
    from epochal.pages.port import PORT

    return PORT


PLUGIN: Final = Plugin(port=_port, open_streams=streams.streams_of, streams="streams", tagged="tagged")
