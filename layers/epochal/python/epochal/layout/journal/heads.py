"""What a head tells the feed: the events that its latest append added.

Numbers begin at 1 and indices at 0. A head that another library wrote last tells nothing but that something
happened: the gap is then healed from the journal.
"""

from __future__ import annotations

from epochal.errors import CorruptData
from epochal.layout.journal.items import head_types, is_head
from epochal.model.spans import Span
from epochal.plan.values import Item, read_number


def appended(item: Item) -> Span | None:
    """The span that a head's latest append added; None for kept copies and for writes of other libraries.

    Raises:
        CorruptData: the item looks like a head of ours, but its counters do not fit each other.
    """
    if not is_head(item) or read_number(item, "head_version") != read_number(item, "version"):
        return None
    last, types = read_number(item, "last_seq_nr"), head_types(item)
    if last is None or not 0 < len(types) <= last:
        raise CorruptData(f"{item['aid']['S']}: a head whose last_seq_nr and last_event_types do not fit")
    return Span(item["aid"]["S"], last - len(types), types)
