"""The command that serves a store to an agent."""

from __future__ import annotations

from typing import Final

import click

from epochal.cli.target import OpenedStore, pass_store
from epochal.errors import InvalidInput


@click.command()
@pass_store
def mcp(store: OpenedStore) -> None:
    """Let an agent read the store, as an MCP server.

    It speaks on standard input and output, and an agent's settings name the command. Nothing can be written through it.
    """
    try:
        from epochal.contrib.mcp.server import server  # noqa: PLC0415  an extra, that no other command needs
    except ModuleNotFoundError as error:
        raise InvalidInput("mcp", f"needs {error.name}: pip install 'epochal[mcp]'") from error
    server(store.deployment).run()


COMMANDS: Final = (mcp,)
