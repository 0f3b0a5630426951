"""The parts of the layout of Sekiban's tagged events, for the rest of the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from epochal.contrib.sekiban import SekibanOptions
from epochal.deferred import DeferredModule
from epochal.plugins import Plugin

if TYPE_CHECKING:
    from click import Command

    from epochal.contrib.sekiban import history, projections, store
    from epochal.http.operation import Operation
    from epochal.layout.port import Port
else:
    history = DeferredModule("epochal.contrib.sekiban.history")
    projections = DeferredModule("epochal.contrib.sekiban.projections")
    store = DeferredModule("epochal.contrib.sekiban.store")


def _port() -> Port:
    """Import the port."""
    from epochal.contrib.sekiban.port import PORT

    return PORT


def _operations() -> tuple[Operation, ...]:
    """Import the records of HTTP operations."""
    from epochal.contrib.sekiban.http.routes import OPERATIONS

    return OPERATIONS


def _commands() -> tuple[Command, ...]:
    """Import the commands."""
    from epochal.contrib.sekiban.commands import COMMANDS

    return COMMANDS


PLUGIN: Final = Plugin(
    port=_port,
    open_history=history.open_history,
    history_of=history.history_of,
    options=SekibanOptions,
    stores={"dcb": store.opened, "states": projections.states_of},
    tagged="dcb",
    states="states",
    operations=_operations,
    commands=_commands,
)
