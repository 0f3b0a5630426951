"""Which layouts a deployment has, with which settings, and to which of them each partition of the feed belongs.

Partitions and names of layouts outlive the code: stored checkpoints and entries of the index contain them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from epochal.declaration import Setting
from epochal.plan.values import Item, Key
from epochal.plugins import Layout, entries, layouts, own_settings
from epochal.settings import DECLARED, Settings, partitions_setting, table_setting


def layout_names() -> tuple[str, ...]:
    """Return the names of all layouts, in the order of their partitions."""
    return tuple(layout.name for layout in layouts())


def layouts_in(settings: Settings) -> tuple[Layout, ...]:
    """Return the layouts of a deployment: those whose head table the settings name.

    Their plug-ins need not be installed.
    """
    return tuple(layout for layout in entries() if settings.value(layout.table))


def declared() -> Mapping[str, Setting]:
    """Return every setting of a deployment by name, including those of its layouts."""
    tables = [table_setting(spec.kind, spec.help) for layout in layouts() for spec in layout.port.tables]
    partitions = [partitions_setting(layout.partitions) for layout in layouts()]
    layout_settings = [setting for layout in layouts() for setting in own_settings(layout).values()]
    return {setting.name: setting for setting in (*tables, *partitions, *layout_settings, *DECLARED.values())}


def layout_of(partition: int) -> Layout:
    """Return the layout that a partition of the feed belongs to."""
    return next(layout for layout in reversed(entries()) if partition >= layout.base)


def source_of(partition: int) -> str:
    """Return the name of the layout, or source, that a partition of the feed belongs to."""
    return layout_of(partition).name


def layout_named(name: str) -> Layout:
    """Return the layout of a name; `KeyError` if there is none."""
    return {layout.name: layout for layout in entries()}[name]


def base_of(name: str) -> int:
    """Return the first partition of a layout."""
    return layout_named(name).base


def head_key(name: str, image: Item) -> Key:
    """Return the primary key of an item of a layout's table of heads."""
    return {
        attribute: image[attribute] for attribute in layout_named(name).port.heads.keys if attribute in image
    }


def partitions_of(settings: Settings) -> tuple[int, ...]:
    """Return the partitions of a deployment's feed, whether anything was indexed in them or not."""
    counts = [(layout.base, settings.partitions(layout.partitions)) for layout in layouts_in(settings)]
    return tuple(base + number for base, count in counts for number in range(count))


def partition_of(stream: str, partitions: int, base: int = 0) -> int:
    """Compute the partition of a stream from the SHA-256 of its name.

    It is the base plus the first four bytes of the hash, big-endian, modulo `partitions`.
    """
    digest = hashlib.sha256(stream.encode()).digest()
    return base + int.from_bytes(digest[:4], "big") % partitions
