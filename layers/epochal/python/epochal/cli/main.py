"""The command `epochal`.

Exit status: 0 done, 1 an error said in one line on standard error, 2 a command that makes no sense, 130 interrupted.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from secrets import token_urlsafe
from typing import Any, Final

import click
from botocore.exceptions import BotoCoreError, ClientError
from click.shell_completion import get_completion_class

from epochal.cli import inputs, output
from epochal.cli.feed import feed, newest, search, streams, tail, trace, wait, watch
from epochal.cli.index import index
from epochal.cli.models import models
from epochal.cli.react import by_name, groups, load_reactions, parked, react
from epochal.cli.stats import keep, stats, tables
from epochal.cli.streams import append, append_all, append_each, delete, prune, read, state, versions
from epochal.cli.tagged import tagged
from epochal.cli.target import Choice, OpenedStore, open_store, pass_store, store_options
from epochal.contrib.local.commands import local, new
from epochal.contrib.proving.commands import prove
from epochal.contrib.schemas.asyncapi import asyncapi, bundle, event_schemas
from epochal.contrib.timers.commands import timers
from epochal.contrib.transfer.export.commands import export, sql
from epochal.contrib.transfer.importing.commands import copy, import_
from epochal.deciders.codecs import EventCodec
from epochal.errors import EpochalError, InvalidInput
from epochal.hosting.indexer_state import indexer_states
from epochal.hosting.services import invoker, measuring, reactions_of
from epochal.hosting.wakeups import wake_group
from epochal.lazy_dataclasses import replace
from epochal.model.kinds import must_be_text
from epochal.plugins import NATIVE, layouts, parts
from epochal.settings import Settings

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, *, shell: str) -> None:
    """Print what makes SHELL complete commands and options.

    For bash: eval "$(epochal completion bash)"
    """
    script = get_completion_class(shell)
    assert script is not None  # noqa: S101  the choice is of those that click has
    click.echo(script(context.find_root().command, {}, "epochal", "_EPOCHAL_COMPLETE").source())


@click.command()
@click.option(
    "--port", type=click.IntRange(min=0, max=65535), default=0, help="0, the default, is a free one."
)
@click.option(
    "--reaction",
    "targets",
    metavar="MODULE:REACTION",
    multiple=True,
    help="Replays here what it has parked; others are replayed by their deployed functions.",
)
@pass_store
def console(store: OpenedStore, *, port: int, targets: tuple[str, ...]) -> None:
    """Show the store in a browser, until interrupted.

    The page is served on 127.0.0.1, and uses the credentials of this command for all that it does. Whoever has the
    address that is printed, with the key in it, sees what they see.
    """
    try:
        from epochal.contrib.console.page import Services  # noqa: PLC0415  an extra, that no other command needs
        from epochal.contrib.console.server import Guard, address, server  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise InvalidInput("console", f"needs {error.name}: pip install 'epochal[console]'") from error

    reactions = [reaction for each in targets for reaction in load_reactions(store, each)]
    name = store.deployment.settings.index_table.removesuffix("-index")
    queues = store.client("sqs")
    services = Services(
        prefix=name,
        reactions=by_name(reactions),
        deployed=lambda: reactions_of(queues, name),
        invoke=invoker(store.client("lambda")),
        wake=partial(wake_group, queues, name),
        sizes=lambda: {each.name: each.bytes for each in store.sizes()},
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


@click.command()
@click.option(
    "--codec",
    "codecs",
    metavar="[CATEGORY=]MODULE:NAME",
    multiple=True,
    required=True,
    help="A codec of json_codec's, and the category that it is of; may be repeated.",
)
@click.option(
    "--asyncapi", "as_asyncapi", is_flag=True, help="An AsyncAPI 3.0 document: channels and messages."
)
@click.option(
    "--cloudevents", is_flag=True, help="With --asyncapi: as Publish sends events, not as the feed has them."
)
@click.option("--title", default="Events", show_default=True, help="Of the AsyncAPI document.")
@output.with_json
def schema(*, codecs: Sequence[str], as_asyncapi: bool, cloudevents: bool, title: str) -> None:
    """Print the JSON Schemas of a codec's events.

    They are one document. No store is needed.
    """
    if cloudevents and not as_asyncapi:
        raise click.UsageError("--cloudevents is of --asyncapi.")
    opened = [_opened(each) for each in codecs]
    if as_asyncapi:
        if len(dict(opened)) < len(opened):
            raise click.UsageError("Each category has one codec.")
        found = asyncapi(dict(opened), title=title, cloud_events=cloudevents)
    else:
        schemas = [(name, each) for _, codec in opened for name, each in event_schemas(codec).items()]
        found = bundle(dict(schemas))
        if twice := next((name for name, each in schemas if found["$defs"][name] != each), None):
            raise InvalidInput("--codec", f"two have a type {twice}, of which each says otherwise")
    click.echo(json.dumps(found, indent=None if output.as_json() else 2, ensure_ascii=False))


def _opened(target: str) -> tuple[str, EventCodec[object]]:
    category, _, place = target.rpartition("=")
    return category, inputs.codec_of(place)


FAILED = 1
INTERRUPTED = 130


class _CommandsFirst(click.Group):
    """Its help begins with the commands: the options, most of them of other libraries' tables, fill a screen."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As click's, the other way round."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)


@click.group(cls=_CommandsFirst)
@click.version_option(package_name="epochal")
@store_options
@click.pass_context
def epochal(context: click.Context, /, *, stack: str, endpoint: str, region: str, **named: Any) -> None:
    """An event store on DynamoDB: append to streams, read them, follow the feed.

    Commands are about the store that `epochal local up` deployed here, unless --stack or the tables say otherwise.
    """
    choice = Choice(settings=Settings.of(**named), stack=stack, endpoint=endpoint, region=region)
    context.meta[Choice.__name__] = choice
    # Whoever invokes the command from Python may bring a store of its own.
    context.obj = context.obj or partial(open_store, choice)


def _streams_in(name: str) -> click.Group:
    """The commands on streams, on those of another store of the deployment."""

    @click.group(name, help=f"The same on streams that are stored as {name}.")
    @click.pass_context
    def group(context: click.Context) -> None:
        opener: Callable[[], OpenedStore] = context.obj

        def opened() -> OpenedStore:
            store = opener()
            return replace(store, streams=getattr(store.deployment, name))

        context.obj = opened

    for command in (append, read, tail, state, prune, delete, stats):
        group.add_command(command)
    return group


for command in (
    append,
    append_all,
    append_each,
    read,
    tail,
    state,
    prune,
    delete,
    copy,
    import_,
    export,
    sql,
    tagged,
    feed,
    react,
    parked,
    groups,
    timers,
    models,
    index,
    stats,
    streams,
    newest,
    wait,
    search,
    trace,
    watch,
    completion,
    console,
    mcp,
    versions,
    schema,
    prove,
    local,
    new,
    tables,
    keep,
    *(_streams_in(each.plugin.streams) for each in layouts() if each.plugin.streams and each.name != NATIVE),
    *chain.from_iterable(parts("commands")),
):
    epochal.add_command(command)


_GIVEN_AS: Final = {"idempotency_key": "--key"}
"""What arguments of the library are called here, where that is another name."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its status."""
    output.prepare_streams()
    try:
        for each in sys.argv[1:] if arguments is None else arguments:
            must_be_text(f"'{each}'", sys.maxsize, f"argument {each!r}")
        epochal.main(arguments, prog_name="epochal", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        if isinstance(error, click.NoSuchOption) and any(
            error.option_name in each.opts for each in epochal.params
        ):
            click.echo(
                f"{error.option_name} says which store is meant, and stands before the command.", err=True
            )
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has had enough, `head` for one; closing it again would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
    except (EpochalError, BotoCoreError, ClientError, OSError) as error:
        output.complain(_words(error))
        sys.exit(FAILED)


def _words(error: Exception) -> str:
    if isinstance(error, InvalidInput) and error.field in _GIVEN_AS:
        return f"{_GIVEN_AS[error.field]}: {error.rule}"
    return str(error)


if __name__ == "__main__":
    main()
