"""The commands on streams, on those that are stored as tips."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import click

from epochal.cli.feed import tail
from epochal.cli.stats import stats
from epochal.cli.streams import append, delete, prune, read, state
from epochal.cli.target import OpenedStore


@click.group()
@click.pass_context
def tips(context: click.Context) -> None:
    """The same on streams that are stored as tips."""
    opener: Callable[[], OpenedStore] = context.obj

    def opened() -> OpenedStore:
        store = opener()
        return replace(store, streams=store.deployment.tips)

    context.obj = opened


for command in (append, read, tail, state, prune, delete, stats):
    tips.add_command(command)

COMMANDS = (tips,)
