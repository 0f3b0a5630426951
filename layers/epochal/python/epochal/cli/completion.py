"""`completion`: what makes a shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

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
