"""The commands on tagged events, on those in Sekiban's tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import click

from epochal.cli.tagged import append, event, query
from epochal.cli.tagged_import import import_
from epochal.cli.tagged_listings import count, read, tag, tags
from epochal.cli.target import OpenedStore


@click.group()
@click.pass_context
def dcb(context: click.Context) -> None:
    """The same on tagged events in Sekiban's tables."""
    opener: Callable[[], OpenedStore] = context.obj

    def opened() -> OpenedStore:
        store = opener()
        return replace(store, tagged=store.deployment.dcb, tagged_in=("events", "tags"))

    context.obj = opened


for command in (append, query, event, read, tags, tag, count, import_):
    dcb.add_command(command)
