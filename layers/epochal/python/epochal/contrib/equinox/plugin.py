"""The parts of the layout of Equinox's streams, for the rest of the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from epochal.contrib.equinox import EquinoxOptions, check_options
from epochal.deferred import DeferredModule
from epochal.plugins import Plugin

if TYPE_CHECKING:
    from epochal.contrib.equinox import streams
    from epochal.layout.port import Port
else:
    streams = DeferredModule("epochal.contrib.equinox.streams")


def _port() -> Port:
    """Import the port."""
    from epochal.contrib.equinox.port import PORT

    return PORT


PLUGIN: Final = Plugin(
    port=_port,
    open_streams=streams.tips_of,
    options=EquinoxOptions,
    check_options=check_options,
    stores={"tips": streams.opened},
    streams="tips",
)
