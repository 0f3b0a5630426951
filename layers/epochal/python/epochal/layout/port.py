"""The port: the interface of a layout to the feed, the indexer, care and a deployment.

A layout has one item for each of its streams, the head, which every append changes in the same write as the events.

    An image of a head says where its stream ends, and what the latest write appended, or at least that it appended.
    Events of a stream have the indices 0, 1, 2 and so on; pruned events precede all events that are left.
    Events that no image reported can be read from the store: healing finds each event of a gap that was not pruned.
    Other items in the table of heads are ignored; an item that looks like a head and is malformed raises.

Names that begin with `$` are reserved for the system, and are no part of the feed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from epochal.layout.categories import Categories, CategoriesBy
from epochal.layout.source import Source
from epochal.layout.stored_items import StoredItem
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.stream_names import category_of
from epochal.plan.ops import Steps
from epochal.plan.tables import TableSpec
from epochal.plan.values import Item
from epochal.settings import Options, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """A permission of a function: actions on a table's items.

    Attributes:
        table: the table.
        actions: DynamoDB actions, as permissions name them: `PutItem`.
        index: name of the secondary index that the actions are on; empty for the table itself.
        keys: patterns of the partition keys of these items, with `*`; none for all items. A `Scan` has no key to
            compare.
    """

    table: TableSpec
    actions: tuple[str, ...]
    index: str = ""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectAccess:
    """The access of functions to a layout's own objects in the bucket.

    Attributes:
        prefix: prefix of the objects' keys.
        actions: S3 actions by the name of the function: `PutObject`.
    """

    prefix: str
    actions: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """The table to which a layout's streams are copied before they are pruned; optional for a store.

    Attributes:
        table: the table.
        copying: DynamoDB actions that copying to the table takes.
        reading: DynamoDB actions that reading from the table takes.
    """

    table: TableSpec
    copying: tuple[str, ...]
    reading: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A layout, as the rest of the library uses it.

    Attributes:
        tables: tables that the layout is stored in.
        kind_of: function that returns the kind of the table that an item is of; None for other layouts' items, which
            may have the same keys, and for items that tell nothing.
        access: function that returns the permissions of each function on these tables, by the function's name.
        heads: table that holds the heads of the layout's streams.
        source: function that returns the layout's part of a deployment's feed.
        categories: categories of its streams; by default the part of the name before the first `-`. A store may know
            better (`feed.history.History`).
        stored_items: steps that return the items of a stream with its events from one index to before another, and the
            cost of each append to them; None if the items do not show it.
        objects: function that returns the access of functions to the layout's objects in the bucket; None if it has
            none there.
        archive: archive of its streams; None if they have none.
    """

    tables: tuple[TableSpec, ...]
    kind_of: Callable[[Item], str | None]
    access: Callable[[Options], Mapping[str, tuple[Permission, ...]]]
    heads: TableSpec
    source: Callable[[Settings], Source]
    categories: Categories = field(default_factory=lambda: CategoriesBy(category_of))
    stored_items: Callable[[str, str, int, int], Steps[tuple[StoredItem, ...]]] | None = None
    objects: Callable[[Options], ObjectAccess] | None = None
    archive: Archive | None = None
