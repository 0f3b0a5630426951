"""Finds the reactions and groups that the arguments of commands name."""

from __future__ import annotations

from collections.abc import Iterable

import click

from epochal.cli import inputs
from epochal.cli.target import OpenedStore
from epochal.errors import GroupMissing, InvalidInput
from epochal.feed.events import FeedEvent
from epochal.index.groups import group_stream, load
from epochal.reactions.composite import composite_of
from epochal.reactions.definition import Reaction, duplicate_name_error

_REACTION = "MODULE:REACTION", "a reaction"


def load_reaction(target: str) -> Reaction:
    """Load the reaction that `module:name` names."""
    loaded = inputs.load_named(target, *_REACTION)
    module, _, name = target.partition(":")
    if not isinstance(loaded, Reaction):
        raise InvalidInput("MODULE:REACTION", f"{name} of {module} is not a reaction")
    return loaded


def load_reactions(store: OpenedStore, target: str) -> list[Reaction]:
    """Load the reaction that `module:name` names, or both reactions of a process."""
    if composite := composite_of(inputs.load_named(target, *_REACTION)):
        return [*composite.reactions(store.deployment.streams, _passed)]
    return [load_reaction(target)]


def by_name(reactions: Iterable[Reaction]) -> dict[str, Reaction]:
    """Return the reactions by their names; raise `InvalidInput` if two handlers have the same name.

    Raises:
        InvalidInput: two handlers have one name.
    """
    reactions_by_name: dict[str, Reaction] = {}
    for reaction in reactions:
        if (
            other := reactions_by_name.setdefault(reaction.name, reaction)
        ).handler_name != reaction.handler_name:
            raise duplicate_name_error(reaction.name, other.handler_name, reaction.handler_name)
    return reactions_by_name


def _passed(why: str, event: FeedEvent) -> None:
    click.echo(f"skipped {event.stream}@{event.index}: {why}", err=True)


def check_group(store: OpenedStore, group: str) -> None:
    """Raise `GroupMissing` unless there is a group of that name, which may be mistyped."""
    driver, table = store.feed.driver, store.feed.table
    for partition in store.feed.partitions():
        if driver.run(load(table, group_stream(partition.partition, group))).state is not None:
            return
    raise GroupMissing(group)
