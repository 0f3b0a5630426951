"""Pruning and deleting: the Tip first says what is gone, then the calves go.

One Update raises the low-water mark `l`, trims the Tip and sets `a` to 0, so that nobody takes it for an
append. From then on readers skip what lies below `l`, wherever a copy turns up, so the calves can be deleted
at leisure: oldest first, each only if all of it lies below the mark. Deleting a stream prunes all of it and
leaves a tombstone, or, by choice, an open stream that goes on at its next index.
"""

from __future__ import annotations

from typing import Final

from epochal.contrib.equinox.port import removing
from epochal.index.checkpoints import calf_key, tip_key
from epochal.index.tip import (
    StoredSpan,
    Tip,
    events_attributes,
    load_tip,
    query_calves,
    read_span,
    read_tip,
    write_unfold,
)
from epochal.index.tip_writes import retry_etag, unchanged_condition
from epochal.layout.outcomes import conflict_at
from epochal.layout.streams import Batch, PruneProgress, accepts
from epochal.lazy_dataclasses import replace
from epochal.model.expected_version import ExpectedVersion
from epochal.model.outcomes import Conflict
from epochal.plan.conditions import Absent, Compare
from epochal.plan.ops import Delete, Done, Put, Set, Steps, Update
from epochal.plan.values import number, sequence, text

DELETES: Final = 500
"""Most calves that one call deletes: some seconds of requests, well inside a bounded request (DESIGN §5.16)."""


def prune(
    table: str, stream: str, before: int, etag: str, *, deletes: int = DELETES
) -> Steps[PruneProgress | None]:
    """Prune events below `before`, deleting up to `deletes` calves; return progress, None if no stream.

    The progress says how many calves were deleted and whether some are left.

    Args:
        before: index of the first event to keep; one beyond the stream's version prunes all events.
        etag: fresh etag, from which the Tip's new one is derived.
        deletes: most calves to delete.
    """
    tip = yield from load_tip(table, stream)
    while tip is not None and tip.low_water < min(before, tip.version):
        mark = min(before, tip.version)
        raised = replace(tip, low_water=mark, span=tip.span.since(mark))
        tip, settled = yield from _replace(table, tip, raised, etag)
        if settled:
            break
    if tip is None:
        return None
    return (yield from _delete_calves(table, stream, tip.low_water, deletes))


def delete(
    table: str, stream: str, expected: ExpectedVersion, etag: str, *, leave_open: bool, deletes: int = DELETES
) -> Steps[PruneProgress | Conflict]:
    """Prune all of a stream; leave a tombstone unless `leave_open`. Return the progress, or a conflict.

    Deleting a deleted stream goes on with the calves that are left. Returns the progress, or a conflict if the stream
    does not exist or is not at the expected version.

    Args:
        etag: fresh etag, from which the Tip's new one is derived.
        leave_open: whether the stream stays open for appends, without a tombstone.
        deletes: most calves to delete.
    """
    tip = yield from load_tip(table, stream)
    while tip is not None and not _is_emptied(tip, leave_open=leave_open):
        if not accepts(expected, tip):
            return conflict_at(tip)
        empty = StoredSpan(base=tip.version)
        tombstone = replace(tip, low_water=tip.version, span=empty, unfolds=(), deleted=not leave_open)
        tip, settled = yield from _replace(table, tip, tombstone, etag)
        if settled:
            break
    if tip is None:
        return conflict_at(None)
    return (yield from _delete_calves(table, stream, tip.low_water, deletes))


def begin_pruned(table: str, batch: Batch, index: int) -> Steps[None]:
    """Put a new stream's Tip as if all events below an index were pruned; an existing Tip stays as it is.

    Args:
        batch: unfolds of the stream, with their version; its events are not used.
        index: index of the next event of the stream; all events below it count as pruned.
    """
    counters = {"n": number(index), "a": number(0), "l": number(index)}
    unfolds = {"u": sequence(map(write_unfold, batch.unfolds))} if batch.unfolds else {}
    item = {**tip_key(batch.stream), **counters, **unfolds, "etag": text(removing(batch.etag))}
    yield Put(table=table, item=item, condition=Absent("i"))


def _is_emptied(tip: Tip, *, leave_open: bool) -> bool:
    """Whether a Tip is deleted already, or has no events and unfolds if it is to stay open."""
    return tip.deleted or (leave_open and tip.low_water == tip.version and not tip.unfolds)


def _replace(table: str, tip: Tip, target: Tip, etag: str) -> Steps[tuple[Tip | None, bool]]:
    """Update a Tip to its pruned state; return the Tip that is stored then, and whether it is pruned.

    The Tip is None if there is none any more. After a response was lost, a Tip that follows the pruned one counts as
    pruned too.
    """
    target = replace(target, etag=removing(retry_etag(etag, tip)))
    reply = yield _update(table, tip, target)
    if isinstance(reply, Done):
        return target, True
    if reply.item is None:
        return None, False
    present = read_tip(reply.item)
    return present, reply.ambiguous and _follows(present, target)


def _follows(tip: Tip, target: Tip) -> bool:
    """Whether a Tip that others have written lacks at least what the wanted one lacks."""
    unfolds_gone = bool(target.unfolds) or not tip.unfolds
    return tip.low_water >= target.low_water and tip.deleted >= target.deleted and unfolds_gone


def _update(table: str, tip: Tip, target: Tip) -> Update:
    """Return the update that prunes a Tip as wanted, on condition that nobody has changed the Tip."""
    events = events_attributes(target.span)
    sets = [Set("l", number(target.low_water)), Set("a", number(0)), Set("etag", text(target.etag or ""))]
    sets += [Set(name, value) for name, value in events.items()]
    if target.deleted:
        sets.append(Set("z", number(1)))
    return Update(
        table=table,
        key=tip_key(tip.stream),
        sets=tuple(sets),
        removes=tuple(name for name in ("e", "c") if name not in events) + (() if target.unfolds else ("u",)),
        condition=unchanged_condition(tip.etag, tip.version),
    )


def _delete_calves(table: str, stream: str, mark: int, deletes: int) -> Steps[PruneProgress]:
    """Delete up to `deletes` calves wholly below a low-water mark, oldest first; return the progress.

    Args:
        mark: index of the first event that is left.
        deletes: most calves to delete.
    """
    deleted = 0
    while mark > 0:
        room = deletes - deleted
        reply = yield query_calves(table, stream, 0, mark - 1, limit=min(room, 100) + 1)
        below = [span for span in map(read_span, reply.items) if span.next <= mark]
        for span in below[:room]:
            condition = Compare("n", "<=", number(mark))
            yield Delete(table=table, key=calf_key(stream, span.base), condition=condition)
        deleted += len(below[:room])
        if len(below) > room:
            return PruneProgress(low_water=mark, deleted=deleted, done=False)
        if len(below) < len(reply.items) or reply.last is None:
            break
    return PruneProgress(low_water=mark, deleted=deleted, done=True)
