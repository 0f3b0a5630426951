"""The parts of the layout of event-store-adapter's aggregates, for the rest of the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from epochal.contrib.event_store_adapter import AdapterOptions
from epochal.deferred import DeferredModule
from epochal.plugins import Plugin

if TYPE_CHECKING:
    from collections.abc import Iterable

    from click import Command

    from epochal.contrib.event_store_adapter import copies, history, port, proofs, store
    from epochal.http.operation import Operation
    from epochal.layout.port import Port
else:
    copies = DeferredModule("epochal.contrib.event_store_adapter.copies")
    history = DeferredModule("epochal.contrib.event_store_adapter.history")
    port = DeferredModule("epochal.contrib.event_store_adapter.port")
    proofs = DeferredModule("epochal.contrib.event_store_adapter.proofs")
    store = DeferredModule("epochal.contrib.event_store_adapter.store")


def _port() -> Port:
    """Import the port."""
    from epochal.contrib.event_store_adapter.port import PORT

    return PORT


def _operations() -> tuple[Operation, ...]:
    """Import the records of HTTP operations."""
    from epochal.contrib.event_store_adapter.http.routes import OPERATIONS

    return OPERATIONS


def _commands() -> tuple[Command, ...]:
    """Import the commands."""
    from epochal.contrib.event_store_adapter.commands import COMMANDS

    return COMMANDS


def _spans() -> Iterable[tuple[str, type, tuple[str, ...]]]:
    """Import the calls that get a span."""
    from epochal.contrib.event_store_adapter.deciders import SPANS

    return SPANS


PLUGIN: Final = Plugin(
    port=_port,
    open_history=history.open_history,
    history_of=history.history_of,
    options=AdapterOptions,
    check_options=port.check_options,
    stores={"aggregates": store.opened},
    operations=_operations,
    commands=_commands,
    open_source=copies.open_source,
    open_writers=proofs.open_writers,
    spans=_spans,
)
