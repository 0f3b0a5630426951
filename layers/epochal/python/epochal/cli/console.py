"""`console`: a web page on the store, served on this machine."""

from __future__ import annotations

import click

from epochal.cli.target import Store, pass_store
from epochal.errors import InvalidInput


@click.command()
@click.option(
    "--port", type=click.IntRange(min=0, max=65535), default=0, help="0, the default, is a free one."
)
@pass_store
def console(store: Store, *, port: int) -> None:
    """Show the store in a browser, until interrupted.

    The page is served on 127.0.0.1 and only reads, with the credentials that this command has. Whoever can open a
    port of this machine sees what they see.
    """
    try:
        from epochal.console.server import server  # noqa: PLC0415  an extra, that no other command needs
    except ModuleNotFoundError as error:
        raise InvalidInput("console", f"needs {error.name}: pip install 'epochal[console]'") from error
    serving = server(store.deployment, store.deployment.settings.index_table.removesuffix("-index"), port)
    click.echo(f"The console is at http://127.0.0.1:{serving.server_port}/ (Ctrl-C ends it)")
    try:
        serving.serve_forever()
    finally:
        serving.server_close()
