"""The names that the command line has: commands, their arguments and their options."""

from __future__ import annotations

from collections.abc import Iterator

import click

from epochal.cli.main import epochal


def names() -> list[str]:
    """All of them, each after the command that it is of."""
    return sorted(set(_names("epochal", epochal)))


def _names(title: str, command: click.Command) -> Iterator[str]:
    yield title
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            yield f"{title} {parameter.human_readable_name}"
        else:
            yield from (f"{title} {name}" for name in (*parameter.opts, *parameter.secondary_opts))
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from _names(f"{title} {name}", below)
