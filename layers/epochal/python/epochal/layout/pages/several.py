"""Appends to several streams at once: the writes of all of them are one transaction.

    each stream     as in an append to it alone: its last page is extended, or another is begun, once it is closed
    what was read   and is not written: a fence, which holds as long as nobody has written to that stream
    all of them     one transaction, all or nothing

    refused         the pages that stood in the way come back
      ├ one of them holds our stamp                    all was appended: a response was lost
      ├ a response was lost, and no page can tell      undetermined
      └ none of these                                  conflicts; or, where each is still as expected, again on these

All is written or nothing, so what one page tells is true of all. Stamps increase along a stream, so a page whose latest
stamp is below ours has never had ours. A write that nothing stood in the way of is sent again as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from epochal.layout.expectations import version_of
from epochal.layout.pages.batch import Packed
from epochal.layout.pages.fences import StreamFence, StreamRead, confirm, fence
from epochal.layout.pages.find import Earlier, absent_from
from epochal.layout.pages.frames import time_of
from epochal.layout.pages.items import Page
from epochal.layout.pages.several_once import SeveralKey
from epochal.layout.pages.shares import (
    Ready,
    State,
    StreamShare,
    begun,
    made_ready,
    moved,
    page_of,
    without_extending,
)
from epochal.layout.streams import DecidedBefore, Known, Rejected, Results, Unknown, Written
from epochal.model.versions import NO_STREAM, ExpectedVersion, Token
from epochal.plan.batches import settled
from epochal.plan.ops import Done, Overflow, Refusal, Steps, Together, Transact, TransactGet, TransactionWrite


def append_all(table: str, appends: Sequence[tuple[Packed, ExpectedVersion]]) -> Steps[Results[Page]]:
    """Append to every stream, or to none. The batches are of one append: their stamps differ by time alone.

    Raises:
        TooLarge: the events of a stream do not fit an item, or all of them a transaction.
        InvalidInput: a stream is full.
    """
    states = yield from begun(table, appends)
    results = yield from _append(table, states)
    return () if isinstance(results, DecidedBefore) else results


def append_all_on(
    table: str,
    appends: Sequence[tuple[Packed, Known[Page]]],
    reads: Sequence[StreamRead],
    key: SeveralKey | None = None,
) -> Steps[Results[Page] | DecidedBefore]:
    """`append_all` on exactly the last pages that are known, where those of `reads` are as known, too.

    Where nothing is appended, that is all that is asked. Results are of the appends, and then of the reads; None where
    a stream that was only read is in nobody's way. Under a key they may be those of an earlier call.
    """
    if not appends:
        return (yield from confirm(table, reads))
    states: list[State] = [
        StreamShare(batch=batch, expected=_exactly(known), known=known) for batch, known in appends
    ]
    for read in reads:
        states.append((yield from fence(table, read)))  # noqa: PERF401  a generator cannot be listed
    return (yield from _append(table, states, key, reads))


def _append(
    table: str, states: Sequence[State], key: SeveralKey | None = None, reads: Sequence[StreamRead] = ()
) -> Steps[Results[Page] | DecidedBefore]:
    while not any(isinstance(state, Rejected) for state in states):
        states = yield from made_ready(table, states)
        ready = [state for state in states if isinstance(state, Ready | StreamFence)]
        if len(ready) < len(states):
            break
        note = () if key is None else (key.note(table, ready, reads),)
        reply: Done | Overflow | Refusal = yield Transact(writes=(*map(_write_of, ready), *note))
        match reply:
            case Done():
                return tuple(map(_written, ready))
            case Overflow():
                states = without_extending(ready)
            case Refusal() if key is not None:
                # What the record says is all there is to know: it is there if and only if the append is.
                before = yield from key.told(table, reply.items[-1])
                if before is not None:
                    return before
                states = yield from moved(table, ready, reply)
            case Refusal():
                made = yield from _was_made(table, ready, reply)
                if made:
                    return tuple(map(_written, ready))
                if made is None:
                    return tuple(map(_unknown, ready))
                states = yield from moved(table, ready, reply)
    before = None if key is None else (yield from key.before(table))
    return before or tuple(state if isinstance(state, Rejected) else None for state in states)


def _write_of(ready: Ready | StreamFence) -> TransactionWrite:
    return ready.check if isinstance(ready, StreamFence) else ready.planned.write


def _written(ready: Ready | StreamFence) -> Written | None:
    return None if isinstance(ready, StreamFence) else ready.written


def _unknown(ready: Ready | StreamFence) -> Unknown | None:
    return None if isinstance(ready, StreamFence) else Unknown(first=version_of(ready.share.known))


def _exactly(known: Known[Page]) -> ExpectedVersion:
    return NO_STREAM if known is None else Token(version=known.version, etag=known.etag)


def _was_made(table: str, ready: Sequence[Ready | StreamFence], refusal: Refusal) -> Steps[bool | None]:
    """Whether an earlier try of the refused transaction was applied; None where no page can tell.

    A refusal may leave out pages that another transaction was at, and what a fence met tells nothing; pages are asked
    for where the others do not tell.
    """
    came = zip(ready, refusal.items, refusal.failed, strict=True)
    writes = [(each, item, failed) for each, item, failed in came if isinstance(each, Ready)]
    tells = {_tells(each, page_of(item, table)) for each, item, failed in writes if failed}
    others = [each for each, _, failed in writes if not failed]
    if refusal.ambiguous and tells <= {None} and others:
        found: Together = yield TransactGet(keys=tuple((table, each.key) for each in others))
        tells |= {_tells(each, page_of(item, table)) for each, item in zip(others, found.items, strict=True)}
    if True in tells:
        # DynamoDB may still be at it: whoever is told that it was made shall find it in every stream.
        yield from settled((table, each.key) for each, _, _ in writes)
        return True
    return None if refusal.ambiguous and tells <= {None} else False


def _tells(ready: Ready, page: Page | None) -> bool | None:
    """Whether the write was made, by the page that it is to: None where events are pruned, or unfolds replaced."""
    stamp, batch = ready.planned.stamp, ready.share.batch
    if page is None or page.time < time_of(stamp):
        return False
    if page.stamp == stamp or any(frame.stamp == stamp for frame in page.frames):
        return True
    kept = batch.count and absent_from(page, version_of(ready.share.known)) is Earlier.ABSENT
    return False if kept else None
