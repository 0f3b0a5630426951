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
from dataclasses import dataclass, replace

from epochal.errors import TooLarge
from epochal.layout.expectations import UNREAD, accepts, told
from epochal.layout.pages.attempt import head_from, next_write
from epochal.layout.pages.batch import Packed
from epochal.layout.pages.fences import Fence, StreamRead, confirm, fence
from epochal.layout.pages.find import Earlier, absent_from
from epochal.layout.pages.frames import time_of
from epochal.layout.pages.items import Page, read_page
from epochal.layout.pages.reading import query
from epochal.layout.pages.writes import Planned, can_be_left, version_of
from epochal.layout.streams import Known, Rejected, Results, Unknown, Written
from epochal.model.versions import MAX_VERSION, NO_STREAM, ExpectedVersion, Token
from epochal.plan.batches import settled, side_by_side
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import (
    Done,
    Overflow,
    Put,
    Refusal,
    Steps,
    Together,
    Transact,
    TransactGet,
    TransactionWrite,
    Update,
)
from epochal.plan.values import Item, Key


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """What one stream gets.

    Attributes:
        known: the last page, as far as the writer knows.
        extending: that may be extended; False once one of the pages has turned out to be too small.
    """

    batch: Packed
    expected: ExpectedVersion
    known: Known[Page]
    extending: bool = True

    def on(self, head: Page | None) -> _Share | Rejected[Page]:
        """The same on a last page that was read, if that is what is expected."""
        if accepts(self.expected, head):
            return replace(self, known=head, extending=True)
        return Rejected(head=head)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    """A share with the write that goes out."""

    share: _Share
    planned: Planned

    @property
    def stream(self) -> str:
        """That it is to."""
        return self.share.batch.stream

    def on(self, head: Page | None) -> _Share | Rejected[Page]:
        """The share on what stood in the way."""
        return self.share.on(head)

    @property
    def key(self) -> Key:
        """Of the page that is written."""
        write = self.planned.write
        return {name: (write.item if isinstance(write, Put) else write.key)[name] for name in ("p", "i")}

    @property
    def written(self) -> Written:
        """What is told once it is there."""
        token = self.planned.token
        return Written(first=token.version - self.share.batch.count, version=token.version, token=token)


_State = _Share | _Ready | Fence | Rejected[Page]
"""How far one of the streams has come."""


def append_all(table: str, appends: Sequence[tuple[Packed, ExpectedVersion]]) -> Steps[Results[Page]]:
    """Append to every stream, or to none. The batches are of one append: their stamps differ by time alone.

    Raises:
        TooLarge: the events of a stream do not fit an item, or all of them a transaction.
        InvalidInput: a stream is full.
    """
    return (yield from _append(table, (yield from _begun(table, appends))))


def append_all_on(
    table: str, appends: Sequence[tuple[Packed, Known[Page]]], reads: Sequence[StreamRead]
) -> Steps[Results[Page]]:
    """`append_all` on exactly the last pages that are known, where those of `reads` are as known, too.

    Where nothing is appended, that is all that is asked. Results are of the appends, and then of the reads; None where
    a stream that was only read is in nobody's way.
    """
    if not appends:
        return (yield from confirm(table, reads))
    states: list[_State] = [
        _Share(batch=batch, expected=_exactly(known), known=known) for batch, known in appends
    ]
    for read in reads:
        states.append((yield from fence(table, read)))  # noqa: PERF401  a generator cannot be listed
    return (yield from _append(table, states))


def _append(table: str, states: Sequence[_State]) -> Steps[Results[Page]]:
    while not any(isinstance(state, Rejected) for state in states):
        states = yield from _made_ready(table, states)
        ready = [state for state in states if isinstance(state, _Ready | Fence)]
        if len(ready) < len(states):
            break
        reply: Done | Overflow | Refusal = yield Transact(writes=tuple(map(_write_of, ready)))
        match reply:
            case Done():
                return tuple(map(_written, ready))
            case Overflow():
                states = _without_extending(ready)
            case Refusal():
                made = yield from _was_made(table, ready, reply)
                if made:
                    return tuple(map(_written, ready))
                if made is None:
                    return tuple(map(_unknown, ready))
                states = yield from _moved(table, ready, reply)
    return tuple(state if isinstance(state, Rejected) else None for state in states)


def _write_of(ready: _Ready | Fence) -> TransactionWrite:
    return ready.check if isinstance(ready, Fence) else ready.planned.write


def _written(ready: _Ready | Fence) -> Written | None:
    return None if isinstance(ready, Fence) else ready.written


def _unknown(ready: _Ready | Fence) -> Unknown | None:
    return None if isinstance(ready, Fence) else Unknown(first=version_of(ready.share.known))


def _exactly(known: Known[Page]) -> ExpectedVersion:
    return NO_STREAM if known is None else Token(version=known.version, etag=known.etag)


def _begun(table: str, appends: Sequence[tuple[Packed, ExpectedVersion]]) -> Steps[Sequence[_State]]:
    """What each expectation tells of the last page; where that is nothing, the page is read."""
    unread = [batch.stream for batch, expected in appends if told(expected) is UNREAD]
    replies = yield from side_by_side(
        query(table, stream, 0, MAX_VERSION, forward=False, limit=1) for stream in unread
    )
    heads = {
        stream: _page(reply.items[0], table) if reply.items else None
        for stream, reply in zip(unread, replies, strict=True)
    }
    states: list[_State] = []
    for batch, expected in appends:
        known = told(expected)
        share = _Share(batch=batch, expected=expected, known=None if known is UNREAD else known)
        states.append(share.on(heads[batch.stream]) if known is UNREAD else share)
    return states


def _made_ready(table: str, states: Sequence[_State]) -> Steps[Sequence[_State]]:
    """The write of each, up to the first that turns out not to be as expected: pages may be closed for these writes."""
    made = list(states)
    for place, state in enumerate(states):
        while isinstance(state := made[place], _Share):
            planned = yield from next_write(table, state.batch, state.known, extending=state.extending)
            if isinstance(planned, Planned):
                made[place] = _Ready(share=state, planned=planned)
            else:
                made[place] = state.on((yield from head_from(table, state.batch.stream, planned.page)))
        if isinstance(state, Rejected):
            break
    return made


def _without_extending(ready: Sequence[_Ready | Fence]) -> Sequence[_State]:
    """Which page is too small is not told, so each that is extended is left. Raises `TooLarge` where none can be."""
    left: list[_State] = [
        replace(each.share, extending=False)
        if isinstance(each, _Ready)
        and isinstance(each.planned.write, Update)
        and can_be_left(each.share.known)
        else each
        for each in ready
    ]
    if not any(isinstance(state, _Share) for state in left):
        sizes = (each.planned.token.size for each in ready if isinstance(each, _Ready))
        raise TooLarge("events", max(sizes), ITEM_BYTES)
    return left


def _moved(table: str, ready: Sequence[_Ready | Fence], refusal: Refusal) -> Steps[Sequence[_State]]:
    """Those that something stood in the way of, on what is there now; the others as they are."""
    states: list[_State] = list(ready)
    for place, (each, item, failed) in enumerate(zip(ready, refusal.items, refusal.failed, strict=True)):
        if failed:
            head = yield from head_from(table, each.stream, _page(item, table))
            states[place] = each.on(head)
    return states


def _was_made(table: str, ready: Sequence[_Ready | Fence], refusal: Refusal) -> Steps[bool | None]:
    """Whether an earlier try of the refused transaction was applied; None where no page can tell.

    A refusal may leave out pages that another transaction was at, and what a fence met tells nothing; pages are asked
    for where the others do not tell.
    """
    came = zip(ready, refusal.items, refusal.failed, strict=True)
    writes = [(each, item, failed) for each, item, failed in came if isinstance(each, _Ready)]
    tells = {_tells(each, _page(item, table)) for each, item, failed in writes if failed}
    others = [each for each, _, failed in writes if not failed]
    if refusal.ambiguous and tells <= {None} and others:
        found: Together = yield TransactGet(keys=tuple((table, each.key) for each in others))
        tells |= {_tells(each, _page(item, table)) for each, item in zip(others, found.items, strict=True)}
    if True in tells:
        # DynamoDB may still be at it: whoever is told that it was made shall find it in every stream.
        yield from settled((table, each.key) for each, _, _ in writes)
        return True
    return None if refusal.ambiguous and tells <= {None} else False


def _tells(ready: _Ready, page: Page | None) -> bool | None:
    """Whether the write was made, by the page that it is to: None where events are pruned, or unfolds replaced."""
    stamp, batch = ready.planned.stamp, ready.share.batch
    if page is None or page.time < time_of(stamp):
        return False
    if page.stamp == stamp or any(frame.stamp == stamp for frame in page.frames):
        return True
    kept = batch.count and absent_from(page, version_of(ready.share.known)) is Earlier.ABSENT
    return False if kept else None


def _page(item: Item | None, table: str) -> Page | None:
    return None if item is None else read_page(item, table)
