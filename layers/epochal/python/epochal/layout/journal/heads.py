"""What a head tells the feed: the events that its latest append added.

Numbers begin at 1 and indices at 0. A head that another library wrote last tells nothing but that something
happened: what there is must be looked up in the journal.
"""

from __future__ import annotations

from epochal.errors import CorruptData
from epochal.layout.journal.items import head_types, is_head, read_event
from epochal.layout.journal.keys import HEAD
from epochal.model.ends import End
from epochal.model.spans import Span
from epochal.plan.conditions import Condition, equals
from epochal.plan.values import Item, number, read_number

WHERE: Condition = equals("seq_nr", number(HEAD))
"""A scan's condition that only heads meet."""


def appended(item: Item) -> Span | None:
    """The span that a head's latest append added; None for kept copies and for writes of other libraries.

    Raises:
        CorruptData: the item looks like a head of ours, but its counters do not fit each other.
    """
    if not is_head(item) or _is_foreign(item):
        return None
    last, types = read_number(item, "last_seq_nr"), head_types(item)
    if last is None or not 0 < len(types) <= last:
        raise CorruptData(f"{item['aid']['S']}: a head whose last_seq_nr and last_event_types do not fit")
    return Span(item["aid"]["S"], last - len(types), types)


def touched(item: Item) -> str | None:
    """The id of an aggregate whose head another library wrote last; None for kept copies and heads of ours."""
    aggregate: str = item["aid"]["S"]
    return aggregate if is_head(item) and _is_foreign(item) else None


def end(item: Item) -> End | None:
    """Where the aggregate ends, if we wrote its head last; None for kept copies.

    Raises:
        CorruptData: the item looks like a head of ours, but has no last number.
    """
    if not is_head(item):
        return None
    aggregate: str = item["aid"]["S"]
    last = None if _is_foreign(item) else read_number(item, "last_seq_nr")
    if last is None and not _is_foreign(item):
        raise CorruptData(f"{aggregate}: a head without last_seq_nr")
    return End(aggregate, last)


def stored(item: Item) -> Span:
    """The event that an item of the journal is."""
    event = read_event(item)
    return Span(item["aid"]["S"], event.seq_nr - 1, (event.event_type or "",))


def _is_foreign(head: Item) -> bool:
    return read_number(head, "head_version") != read_number(head, "version")
