"""The command that serves the console."""

from __future__ import annotations

from functools import partial
from secrets import token_urlsafe
from typing import Final

import click

from epochal.cli.reactions import by_name, load_reactions
from epochal.cli.target import OpenedStore, pass_store
from epochal.errors import InvalidInput
from epochal.hosting.group_wakeups import wake_group
from epochal.hosting.indexer_state import indexer_states
from epochal.hosting.services import invoker, measuring, reactions_of


@click.command(short_help="Show the store in a browser, until the command is interrupted.")
@click.option(
    "--port",
    type=click.IntRange(min=0, max=65535),
    default=0,
    help="Port to listen on. The default, 0, chooses a free one.",
)
@click.option(
    "--reaction",
    "targets",
    metavar="MODULE:REACTION",
    multiple=True,
    help="Reaction whose parked streams are replayed here; other reactions are replayed by their deployed "
    "functions. May be repeated.",
)
@pass_store
def console(store: OpenedStore, *, port: int, targets: tuple[str, ...]) -> None:
    """Serve web pages on the store, and print their address, until the command is interrupted.

    The pages are served on 127.0.0.1, and use the credentials of this command for everything. Anyone who has the
    printed address, which contains a key, can see what these credentials can see.
    """
    try:
        from epochal.contrib.console.page import Services  # noqa: PLC0415  an extra, that no other command needs
        from epochal.contrib.console.server import Guard, address, server  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise InvalidInput("console", f"needs {error.name}: pip install 'epochal[console]'") from error

    reactions = [reaction for target in targets for reaction in load_reactions(store, target)]
    name = store.deployment.settings.index_table.removesuffix("-index")
    queues = store.client("sqs")
    services = Services(
        prefix=name,
        reactions=by_name(reactions),
        deployed=lambda: reactions_of(queues, name),
        invoke=invoker(store.client("lambda")),
        wake=partial(wake_group, queues, name),
        sizes=lambda: {size.name: size.bytes for size in store.sizes()},
        measure=measuring(store.client("cloudwatch")),
        indexer=lambda: indexer_states(store.deployment, partial(store.client, "lambda")),
    )
    guard = Guard(key=token_urlsafe(16))
    serving = server(store.deployment, name, port, services=services, guard=guard)
    click.echo(f"The console is at {address(serving.server_port, guard.key)} (Ctrl-C ends it)")
    try:
        serving.serve_forever()
    finally:
        serving.server_close()


COMMANDS: Final = (console,)
