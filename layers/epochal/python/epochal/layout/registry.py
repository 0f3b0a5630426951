"""Which layouts a deployment has, which tables and settings, and which partitions of the feed are whose.

This outlives the code: a change of a table needs a migration (FORMATS).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

from epochal.declaration import Setting
from epochal.plan.ops import KeyAttribute, TableSpec
from epochal.plan.values import Item, Key
from epochal.plugins import Layout, layouts, own_settings
from epochal.settings import DECLARED, Settings, partitions_setting, table_setting


def layout_names() -> tuple[str, ...]:
    """Their names, in the order of their partitions."""
    return tuple(each.name for each in layouts())


def layouts_in(settings: Settings) -> tuple[Layout, ...]:
    """Those of a deployment: the settings name the table of their heads."""
    return tuple(each for each in layouts() if settings.value(each.table))


def declared() -> Mapping[str, Setting]:
    """Every setting of a deployment, those of its layouts among them, by name."""
    tables = [table_setting(spec.kind, spec.help) for each in layouts() for spec in each.port.tables]
    partitions = [partitions_setting(each.partitions) for each in layouts()]
    own = [setting for each in layouts() for setting in own_settings(each).values()]
    return {each.name: each for each in (*tables, *partitions, *own, *DECLARED.values())}


def layout_of(partition: int) -> Layout:
    """The layout that a partition of the feed is of."""
    return next(each for each in reversed(layouts()) if partition >= each.base)


def source_of(partition: int) -> str:
    """The name of that layout: the source that a partition is of."""
    return layout_of(partition).name


def layout_named(name: str) -> Layout:
    """The layout of that name, which is known to be one's."""
    return {each.name: each for each in layouts()}[name]


def base_of(name: str) -> int:
    """The first partition of a layout."""
    return layout_named(name).base


def head_key(name: str, image: Item) -> Key:
    """The primary key of an item of a layout's table of heads."""
    return {each: image[each] for each in layout_named(name).port.heads.keys if each in image}


def partitions_of(settings: Settings) -> tuple[int, ...]:
    """The partitions of a deployment's feed, whether anything was indexed in them yet or not."""
    counts = [(each.base, settings.partitions(each.partitions)) for each in layouts_in(settings)]
    return tuple(base + number for base, count in counts for number in range(count))


def partition_of(stream: str, partitions: int, base: int = 0) -> int:
    """The base, and the first four bytes of the name's SHA-256, big-endian, modulo `partitions`."""
    digest = hashlib.sha256(stream.encode()).digest()
    return base + int.from_bytes(digest[:4], "big") % partitions


# Tables: those of layouts, and those that are no layout's.

_P = KeyAttribute(name="p", type="S")
_I = KeyAttribute(name="i", type="N")

INDEX: Final = TableSpec(kind="index", partition=_P, sort=_I, stream=True)
"""The feed: epochs, marks and reader checkpoints, as Tips (`index.tip`)."""

_PK = KeyAttribute(name="pk", type="S")
_SK = KeyAttribute(name="sk", type="S")

READ_MODELS: Final = TableSpec(kind="read-models", partition=_PK, sort=_SK)
"""Read models of reactions: no part of the store, which any deployment can do without."""

TIMERS: Final = TableSpec(kind="timers", partition=_P, sort=KeyAttribute(name="s", type="S"))
"""Timers that wait, by their time: all of it can be made again of the feed, and deployments may do without."""


def store_tables(of: Iterable[Layout] | None = None) -> tuple[TableSpec, ...]:
    """The tables of a deployment that has these layouts, or all that there are."""
    chosen = layouts() if of is None else of
    return (*(spec for each in chosen for spec in each.port.tables), INDEX)


def archives(of: Iterable[Layout] | None = None) -> tuple[TableSpec, ...]:
    """The tables that these layouts, or all that there are, keep streams in which are to be pruned."""
    found = (each.port.archive for each in (layouts() if of is None else of))
    return tuple(each.table for each in found if each is not None)


def every_table() -> tuple[TableSpec, ...]:
    """All tables that a deployment of this code may have."""
    return (*store_tables(), *archives(), READ_MODELS, TIMERS)
