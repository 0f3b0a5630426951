"""The pages layout of named streams, with the methods that a store calls (see `epochal.layout.streams`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from epochal.deferred import DeferredModule
from epochal.layout.streams import Also, Batch, EncodedUnfold, Known
from epochal.lazy_dataclasses import dataclass
from epochal.model.expected_version import ANY, UNREAD, ExpectedVersion
from epochal.model.outcomes import Outcome
from epochal.model.tokens import Token
from epochal.pages.appending import append, append_on, decided, is_new
from epochal.pages.batch import Packed, joined, packed
from epochal.pages.fullness import ROOM
from epochal.pages.items import Page
from epochal.pages.joined import append_whole, outcomes_of_joined
from epochal.pages.reading import (
    advance,
    begin_batch,
    begin_read,
    cursor_at,
    is_batched,
    load_head,
    load_recent,
    load_whole,
)
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import Steps

if TYPE_CHECKING:
    from epochal.layout import key_moments
    from epochal.layout.queries import AppendCondition
    from epochal.layout.tag_streams import TagStreams
    from epochal.layout.tagged_batch import TaggedBatch
    from epochal.pages import keyed_appends, pruning, several
else:
    key_moments = DeferredModule("epochal.layout.key_moments")
    pruning = DeferredModule("epochal.pages.pruning")
    keyed_appends = DeferredModule("epochal.pages.keyed_appends")
    several = DeferredModule("epochal.pages.several")

T = TypeVar("T")

COMPRESS_FROM: Final = 4 * 1024
"""Bytes from which a body is compressed by itself. Smaller ones are compressed together with those of their append."""

_FIELDS: Final = 32
"""Largest number of bytes that an unfold takes besides its type and bodies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The layout that stores each stream as a chain of pages."""

    name = "pages"
    compress_from = COMPRESS_FROM
    keeps_unfolds = True
    keeps_ids = True

    def room(self, unfolds: Sequence[EncodedUnfold]) -> int:
        """Return the bytes that events may take on a new page with these unfolds, all uncompressed."""
        return ITEM_BYTES - ROOM - sum(map(_unfold_size, unfolds))

    def append(
        self, table: str, batch: Batch, expected: ExpectedVersion, key: str | None = None
    ) -> Steps[Outcome]:
        """Append a batch if the stream has the expected version; under a key, append it only once."""
        if key is None:
            return (yield from append(table, packed(batch), expected))
        return (yield from keyed_appends.append_once(table, packed(batch), expected, key))

    def append_on(self, table: str, batch: Batch, known_head: Known[Page]) -> Steps[Outcome]:
        """Append a batch on exactly the known last page; otherwise return a conflict."""
        return (yield from append_on(table, packed(batch), known_head, repeatable=batch.keyed))

    decided = staticmethod(decided)
    moment_of_key = staticmethod(key_moments.moment_of_key)
    is_new = staticmethod(is_new)
    decided_all = staticmethod(several.decided_all)
    prune = staticmethod(pruning.prune)
    delete = staticmethod(pruning.delete)
    begin_pruned = staticmethod(pruning.begin_pruned)
    archive = staticmethod(pruning.archive)

    def append_all(
        self,
        table: str,
        appends: Sequence[tuple[Batch, ExpectedVersion]],
        key: str | None = None,
        also: Also = (),
    ) -> Steps[Outcome]:
        """Append batches to several streams and make the writes of `also`, all or nothing; return the outcome."""
        return (yield from several.append_all(table, _all_packed(appends), key, also))

    def append_all_on(
        self,
        table: str,
        appends: Sequence[tuple[Batch, Known[Page]]],
        read_heads: Sequence[tuple[str, Known[Page]]],
        key: str | None = None,
        also: Also = (),
    ) -> Steps[Outcome]:
        """Append batches, all or nothing, if their streams and `read_heads` are unchanged; return the outcome."""
        return (yield from several.append_all_on(table, _all_packed(appends), read_heads, key, also))

    def append_tagged(
        self,
        site: TagStreams,
        appends: Sequence[tuple[Batch, ExpectedVersion]],
        tagged: TaggedBatch,
        condition: AppendCondition | None,
        key: str | None,
        *,
        read_heads: Mapping[str, Known[Page]] | None = None,
    ) -> Steps[Outcome]:
        """Append to streams and tags, all or nothing, unless new events match `condition`; return the outcome."""
        from epochal.pages.tags.mixed import append_mixed  # noqa: PLC0415  most appends have no tags

        batches = _all_packed(appends)
        return (yield from append_mixed(site, batches, tagged, condition, key, read_heads=read_heads))

    def append_together(
        self, table: str, batches: Sequence[Batch], start: Token | None
    ) -> Steps[tuple[Outcome, ...]]:
        """Append batches to one stream in one write, at any version; return an outcome for each."""
        packs = [packed(batch) for batch in batches]
        outcome = yield from append(table, joined(packs), ANY, UNREAD if start is None else start)
        return tuple(outcomes_of_joined(packs, outcome))

    def append_together_on(
        self, table: str, batches: Sequence[Batch], known_head: Known[Page]
    ) -> Steps[tuple[Outcome, ...]]:
        """Append batches as `append_together` does, on exactly the known last page."""
        packs = [packed(batch) for batch in batches]
        outcome = yield from append_whole(table, joined(packs), known_head)
        return tuple(outcomes_of_joined(packs, outcome))

    def load(
        self, table: str, stream: str, *, consistent: bool = True, whole: bool = False, recent: bool = False
    ) -> Steps[Page | None]:
        """Read the last page of a stream; with `whole` all pages, if they are few, with `recent` the last ones."""
        load = load_whole if whole else load_recent if recent else load_head
        return load(table, stream, consistent=consistent)

    begin = staticmethod(begin_read)
    is_batched = staticmethod(is_batched)
    begin_batch = staticmethod(begin_batch)
    stand = staticmethod(cursor_at)
    advance = staticmethod(advance)


def _all_packed(appends: Sequence[tuple[Batch, T]]) -> list[tuple[Packed, T]]:
    return [(packed(batch), expected) for batch, expected in appends]


def _unfold_size(unfold: EncodedUnfold) -> int:
    bodies = len(unfold.data.data) + len(unfold.meta.data)
    return _FIELDS + len(unfold.type.encode()) + bodies
