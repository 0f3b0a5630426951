"""What each stream gets of an append to several: its write made ready as in an append to it alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from epochal.errors import TooLarge
from epochal.layout.expectations import UNREAD, accepts, told
from epochal.layout.pages.attempt import head_from, next_write
from epochal.layout.pages.batch import Packed
from epochal.layout.pages.fences import StreamFence
from epochal.layout.pages.items import Page, read_page
from epochal.layout.pages.reading import query
from epochal.layout.pages.writes import Planned, can_be_left
from epochal.layout.streams import Known, Rejected, Written
from epochal.model.versions import MAX_VERSION, ExpectedVersion
from epochal.plan.batches import side_by_side
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import Put, Refusal, Steps, Update
from epochal.plan.values import Item, Key


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamShare:
    """What one stream gets.

    Attributes:
        known: the last page, as far as the writer knows.
        extending: that may be extended; False once one of the pages has turned out to be too small.
    """

    batch: Packed
    expected: ExpectedVersion
    known: Known[Page]
    extending: bool = True

    def on(self, head: Page | None) -> StreamShare | Rejected[Page]:
        """The same on a last page that was read, if that is what is expected."""
        if accepts(self.expected, head):
            return replace(self, known=head, extending=True)
        return Rejected(head=head)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A share with the write that goes out."""

    share: StreamShare
    planned: Planned

    @property
    def stream(self) -> str:
        """That it is to."""
        return self.share.batch.stream

    def on(self, head: Page | None) -> StreamShare | Rejected[Page]:
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


State = StreamShare | Ready | StreamFence | Rejected[Page]
"""How far one of the streams has come."""


def begun(table: str, appends: Sequence[tuple[Packed, ExpectedVersion]]) -> Steps[Sequence[State]]:
    """What each expectation tells of the last page; where that is nothing, the page is read."""
    unread = [batch.stream for batch, expected in appends if told(expected) is UNREAD]
    replies = yield from side_by_side(
        query(table, stream, 0, MAX_VERSION, forward=False, limit=1) for stream in unread
    )
    heads = {
        stream: page_of(reply.items[0], table) if reply.items else None
        for stream, reply in zip(unread, replies, strict=True)
    }
    states: list[State] = []
    for batch, expected in appends:
        known = told(expected)
        share = StreamShare(batch=batch, expected=expected, known=None if known is UNREAD else known)
        states.append(share.on(heads[batch.stream]) if known is UNREAD else share)
    return states


def made_ready(table: str, states: Sequence[State]) -> Steps[Sequence[State]]:
    """The write of each, up to the first that turns out not to be as expected: pages may be closed for these writes."""
    made = list(states)
    for place, state in enumerate(states):
        while isinstance(state := made[place], StreamShare):
            planned = yield from next_write(table, state.batch, state.known, extending=state.extending)
            if isinstance(planned, Planned):
                made[place] = Ready(share=state, planned=planned)
            else:
                made[place] = state.on((yield from head_from(table, state.batch.stream, planned.page)))
        if isinstance(state, Rejected):
            break
    return made


def without_extending(ready: Sequence[Ready | StreamFence]) -> Sequence[State]:
    """Which page is too small is not told, so each that is extended is left. Raises `TooLarge` where none can be."""
    left: list[State] = [
        replace(each.share, extending=False)
        if isinstance(each, Ready)
        and isinstance(each.planned.write, Update)
        and can_be_left(each.share.known)
        else each
        for each in ready
    ]
    if not any(isinstance(state, StreamShare) for state in left):
        sizes = (each.planned.token.size for each in ready if isinstance(each, Ready))
        raise TooLarge("events", max(sizes), ITEM_BYTES)
    return left


def moved(table: str, ready: Sequence[Ready | StreamFence], refusal: Refusal) -> Steps[Sequence[State]]:
    """Those that something stood in the way of, on what is there now; the others as they are.

    Args:
        refusal: of their writes, and of others that may follow them.
    """
    states: list[State] = list(ready)
    for place, (each, item, failed) in enumerate(zip(ready, refusal.items, refusal.failed, strict=False)):
        if failed:
            head = yield from head_from(table, each.stream, page_of(item, table))
            states[place] = each.on(head)
    return states


def page_of(item: Item | None, table: str) -> Page | None:
    """The page that stood in the way, if one did."""
    return None if item is None else read_page(item, table)
