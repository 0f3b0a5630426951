"""The command `epochal`.

Exit status: 0 done, 1 an error on standard error, 2 a command that makes no sense, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final

import click
from botocore.exceptions import BotoCoreError, ClientError
from click.core import ParameterSource
from click.shell_completion import get_completion_class

from epochal import extensions, plugins
from epochal.cli import output
from epochal.cli.appends import append, append_all, append_each
from epochal.cli.doctor import doctor
from epochal.cli.feed import feed, newest, tail, wait
from epochal.cli.groups import groups
from epochal.cli.index import index
from epochal.cli.lookups import search, streams, trace
from epochal.cli.models import models
from epochal.cli.parked import parked
from epochal.cli.poison import poison
from epochal.cli.react import react
from epochal.cli.rebuild import rebuild
from epochal.cli.removals import delete, prune
from epochal.cli.stats import keep, stats, tables
from epochal.cli.streams import read, state
from epochal.cli.tagged import tagged
from epochal.cli.target import (
    Choice,
    OpenedStore,
    open_store,
    store_options,
    without_inherited_places,
)
from epochal.cli.versions import versions
from epochal.cli.watch import watch
from epochal.errors import EpochalError, InvalidInput
from epochal.lazy_dataclasses import replace
from epochal.model.kinds import must_be_text
from epochal.settings import Settings

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, *, shell: str) -> None:
    """Print a script that completes commands and options in SHELL.

    For bash: eval "$(epochal completion bash)"
    """
    script = get_completion_class(shell)
    assert script is not None  # noqa: S101  the choice is of those that click has
    click.echo(script(context.find_root().command, {}, "epochal", "_EPOCHAL_COMPLETE").source())


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
def epochal(context: click.Context, /, *, stack: str, endpoint: str, region: str, **options: Any) -> None:
    """An event store on DynamoDB: append to streams, read them, follow the feed.

    Commands use the store that `epochal local up` deployed here, unless --stack or the tables name another.
    """
    if context.get_parameter_source("stack") is ParameterSource.COMMANDLINE:
        options = without_inherited_places(context, options)
    choice = Choice(settings=Settings.of(**options), stack=stack, endpoint=endpoint, region=region)
    context.meta[Choice.__name__] = choice
    # Whoever invokes the command from Python may bring a store of its own.
    context.obj = context.obj or partial(open_store, choice)


def _streams_in(name: str) -> click.Group:
    """Return a group of the commands on streams, for the streams of another store of the deployment."""

    @click.group(name, help=f"The same commands for streams that are stored as {name}.")
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
    tagged,
    feed,
    react,
    parked,
    groups,
    models,
    index,
    stats,
    doctor,
    streams,
    newest,
    wait,
    search,
    trace,
    watch,
    completion,
    versions,
    tables,
    keep,
    *(
        _streams_in(layout.plugin.streams)
        for layout in plugins.layouts()
        if layout.plugin.streams and layout.name != plugins.NATIVE
    ),
    *chain.from_iterable(extensions.parts("commands")),
    *chain.from_iterable(
        own() for layout in plugins.layouts() if (own := layout.plugin.commands) is not None
    ),
):
    epochal.add_command(command)

index.add_command(poison)
index.add_command(rebuild)


_GIVEN_AS: Final = {"idempotency_key": "--key"}
"""What arguments of the library are called here, where that is another name."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; print errors to standard error and exit with their status."""
    output.prepare_streams()
    try:
        for argument in sys.argv[1:] if arguments is None else arguments:
            must_be_text(f"'{argument}'", sys.maxsize, f"argument {argument!r}")
        epochal.main(arguments, prog_name="epochal", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        if isinstance(error, click.NoSuchOption) and any(
            error.option_name in param.opts for param in epochal.params
        ):
            click.echo(f"{error.option_name} selects the store and must come before the command.", err=True)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has had enough, `head` for one; closing it again would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
    except (EpochalError, BotoCoreError, ClientError, OSError) as error:
        output.complain(_words(error), has_lines=getattr(error, "has_lines", False))
        sys.exit(FAILED)


def _words(error: Exception) -> str:
    if isinstance(error, InvalidInput) and error.field in _GIVEN_AS:
        return f"{_GIVEN_AS[error.field]}: {error.rule}"
    return str(error)


if __name__ == "__main__":
    main()
