"""The command that serves a store to an agent."""

from __future__ import annotations

from typing import Final

import click

from epochal.cli.target import OpenedStore, pass_store
from epochal.errors import InvalidInput


@click.command()
@pass_store
def mcp(store: OpenedStore) -> None:
    """Serve the store to agents, read-only, as an MCP server.

    The server uses standard input and output; the settings of an agent name this command.
    """
    try:
        from epochal.contrib.mcp.server import server  # noqa: PLC0415  an extra, that no other command needs
    except ModuleNotFoundError as error:
        raise InvalidInput("mcp", f"needs {error.name}: pip install 'epochal[mcp]'") from error
    server(store.deployment).run()


COMMANDS: Final = (mcp,)
