"""Calving: the Tip's events into a calf that never changes (DESIGN §5.4).

In two steps, the calf is put before the Tip lets go of its events, so between the steps both hold them, and a
crash leaves an overlap that readers drop by index. Another writer may have calved a part already: the refusal
returns that calf, and only what follows it is still to be put. A calf that reaches beyond the Tip in hand
shows that the Tip is stale. In one transaction there is no overlap, at twice the price.
"""

from __future__ import annotations

from epochal.errors import CorruptData
from epochal.layout.tips.items import StoredSpan, Tip, read_span
from epochal.layout.tips.writes import put_calf
from epochal.plan.ops import Done, Overflow, Refusal, Steps, Transact, Update


def calve(table: str, tip: Tip) -> Steps[bool]:
    """Put what the Tip carries into calves. False: the Tip is stale."""
    rest = tip.span
    while rest.events:
        reply = yield put_calf(table, tip.stream, rest)
        if isinstance(reply, Done):
            return True
        left = _after(reply, rest)
        if left is None:
            return False
        rest = left
    return True


def calve_at_once(table: str, tip: Tip, update: Update) -> Steps[Done | Refusal | Overflow | None]:
    """The calf and the Tip's update in one transaction. None: the Tip is stale."""
    rest, doubtful = tip.span, False
    while True:
        writes = (put_calf(table, tip.stream, rest), update) if rest.events else (update,)
        reply: Done | Refusal | Overflow = yield Transact(writes=writes)
        if not isinstance(reply, Refusal):
            return reply
        # What is calved already may be so by a transaction of ours whose response was lost.
        doubtful = doubtful or reply.ambiguous
        if reply.failed[-1]:
            return Refusal(items=reply.items[-1:], ambiguous=doubtful)
        left = _after(reply, rest)
        if left is None:
            return None
        rest = left


def _after(reply: Refusal, rest: StoredSpan) -> StoredSpan | None:
    """What a calf found in the way leaves to be calved; None where it shows the Tip to be stale."""
    if reply.item is None:
        return None
    found = read_span(reply.item)
    if found.next <= rest.base:
        raise CorruptData(f"{reply.item['p']['S']}: the calf {rest.base} holds no events")
    return None if found.next > rest.next else rest.since(found.next)
