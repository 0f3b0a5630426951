"""The number of an aggregate's last event, where no head tells: searched in the journal, by key, consistently.

Events are numbered from 1 without holes, so existence is monotonic: a few batches of probes, each narrowing
the bounds 26-fold, find the last among millions. Plain reads may not find an event whose append is being carried out,
so the last read is one that waits for it.
"""

from __future__ import annotations

from typing import Final

from epochal.layout.journal.writes import JournalSite
from epochal.model.aggregates import AggregateId
from epochal.plan.ops import BatchGet, Steps, TransactGet

PROBES: Final = 25
_POWERS: Final = tuple(1 << exponent for exponent in range(PROBES))


def last_number(site: JournalSite, aggregate: AggregateId) -> Steps[int]:
    """The greatest number in the journal; 0 where there is none."""
    found = yield from _present(site, aggregate, _POWERS)
    low = max(found, default=0)
    high = min((probe for probe in _POWERS if probe > low), default=1 << PROBES)
    while high - low > 1:
        step = max(1, (high - low) // (PROBES + 1))
        probes = tuple(range(low + step, high, step))[:PROBES]
        found = yield from _present(site, aggregate, probes)
        low = max(found, default=low)
        high = min((probe for probe in probes if probe > low), default=high)
    while (yield from _follows(site, aggregate, low)):
        low += 1
    return low


def _follows(site: JournalSite, aggregate: AggregateId, number: int) -> Steps[bool]:
    """Whether there is an event after this one, once no append of it is under way."""
    (found,) = (yield TransactGet(keys=((site.journal, site.keys.key(aggregate, number + 1)),))).items
    return found is not None


def _present(site: JournalSite, aggregate: AggregateId, numbers: tuple[int, ...]) -> Steps[list[int]]:
    keys = tuple(site.keys.key(aggregate, probe) for probe in numbers)
    reply = yield BatchGet(table=site.journal, keys=keys)
    return [int(item["seq_nr"]["N"]) for item in reply.items]
