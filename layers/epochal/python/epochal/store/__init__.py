"""The stores that programs call. A store runs the steps of its layout on an interpreter, with retries.

Programs use these modules:

    streams            appends to named streams, and loads, reads, prunes and deletes them
    tagged             appends tagged events, also under a condition, and reads them by queries
    tagged_pages       does so in the layout pages, where each tag is a stream
    bulk, joined       makes many appends in one call; joins concurrent appends of one process in one write
    listings           lists all events, tags and groups of a store of tagged events
    tagged_importer    imports a history into tagged events
    context            adds metadata to all events that are appended within a block; makes idempotency keys

These are built on:

    appending          appends to several streams, of tagged events, under a condition, or with writes to other tables
    also               makes and checks writes to the caller's own tables in the transaction of an append
    answers, outcomes  converts a layout's answers to outcomes, and outcomes to errors
    reading, earlier   reads the current events of a stream; loads its state at an earlier version or moment
    unopened           holds the head of a stream, whose bodies are decoded when a caller asks for them
    encoding           encodes events and unfolds for storage, and decodes them
    seals              signs tokens, so that one from outside can begin a page without a read
    any_version        appends that expect no version, one after another in a process
    refusals           waits before a load whose caller was refused repeatedly
    queueing           lets callers of one process that write to the same stream take turns
    tag_turns          lets appends of one process under the same tags take turns
    backing_off        delays a writer that was refused, so that others can finish
    driver             performs operations with retries, and remembers writes whose outcome is unknown
    plugin             registers the pages layout
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from epochal.deferred import deferred_names

if TYPE_CHECKING:
    from epochal.store.bulk import Bulk as Bulk
    from epochal.store.bulk import BulkAppend as BulkAppend
    from epochal.store.context import metadata as metadata
    from epochal.store.context import new_key as new_key
    from epochal.store.driver import Meter as Meter
    from epochal.store.driver import Patience as Patience
    from epochal.store.joined import JoinedAppends as JoinedAppends
    from epochal.store.listings import GroupCount as GroupCount
    from epochal.store.listings import Listings as Listings
    from epochal.store.listings import Progress as Progress
    from epochal.store.listings import listings_of as listings_of
    from epochal.store.reading import Direction as Direction
    from epochal.store.reading import Hole as Hole
    from epochal.store.reading import Pruned as Pruned
    from epochal.store.reading import StreamPage as StreamPage
    from epochal.store.reading import StreamState as StreamState
    from epochal.store.streams import Streams as Streams
    from epochal.store.tagged import TaggedStore as TaggedStore
    from epochal.store.tagged_importer import ImportedEvent as ImportedEvent
    from epochal.store.tagged_importer import TaggedImporter as TaggedImporter
    from epochal.store.tagged_pages import TaggedEvents as TaggedEvents

_NAMES = {
    "bulk": (
        "Bulk",
        "BulkAppend",
    ),
    "context": (
        "metadata",
        "new_key",
    ),
    "driver": (
        "Meter",
        "Patience",
    ),
    "joined": ("JoinedAppends",),
    "listings": (
        "GroupCount",
        "Listings",
        "Progress",
        "listings_of",
    ),
    "reading": (
        "Direction",
        "Hole",
        "Pruned",
        "StreamPage",
        "StreamState",
    ),
    "streams": ("Streams",),
    "tagged": ("TaggedStore",),
    "tagged_importer": (
        "ImportedEvent",
        "TaggedImporter",
    ),
    "tagged_pages": ("TaggedEvents",),
}

__all__ = [*chain.from_iterable(_NAMES.values())]  # noqa: PLE0604  every element is a string: the keys of the table above

__getattr__ = deferred_names(__name__, _NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)
