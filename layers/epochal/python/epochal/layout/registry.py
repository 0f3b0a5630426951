"""The layouts that there are, one entry each, and which partitions of the feed are whose.

This outlives the code: names and partitions are stored (FORMATS §4). A port is imported when it is first asked for, so
a function loads only the layouts that its settings name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final

from epochal.declaration import Setting
from epochal.plan.values import Item, Key
from epochal.settings import DECLARED, Settings, partitions_setting, table_setting

if TYPE_CHECKING:
    from epochal.layout.port import Port

BASE_DISTANCE: Final = 10_000
"""From the first partition of a layout to that of the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """An entry of the registry.

    Attributes:
        name: what its part of the feed is called.
        base: its first partition; the others follow, up to `base + BASE_DISTANCE - 1`.
        table: the setting that names the table of its heads; a deployment without one has no such layout.
        partitions: the setting that says how many partitions it has.
        module: where its `PORT` is.
        history: where `open_history` is, which reads its events for the feed (`feed.history`); and `history_of`, where
            its store is a class of its own.
    """

    name: str
    base: int
    table: str
    partitions: str
    module: str
    history: str

    @property
    def port(self) -> Port:
        """What it can do."""
        found: Port = import_module(self.module).PORT
        return found


LAYOUTS: tuple[Layout, ...] = (
    Layout(
        name="tips",
        base=0,
        table="tips_table",
        partitions="partitions",
        module="epochal.layout.tips.port",
        history="epochal.feed.histories.tips",
    ),
    Layout(
        name="journal",
        base=BASE_DISTANCE,
        table="snapshot_table",
        partitions="journal_partitions",
        module="epochal.layout.journal.port",
        history="epochal.feed.histories.journal",
    ),
    Layout(
        name="dcb",
        base=2 * BASE_DISTANCE,
        table="tags_table",
        partitions="dcb_partitions",
        module="epochal.layout.dcb.port",
        history="epochal.feed.histories.dcb",
    ),
    Layout(
        name="pages",
        base=3 * BASE_DISTANCE,
        table="streams_table",
        partitions="pages_partitions",
        module="epochal.layout.pages.port",
        history="epochal.feed.histories.pages",
    ),
)


def layouts() -> tuple[Layout, ...]:
    """All of them, in the order of their partitions."""
    return tuple(sorted(LAYOUTS, key=lambda each: each.base))


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
    return {each.name: each for each in (*tables, *partitions, *DECLARED.values())}


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
