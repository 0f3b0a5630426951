"""What a head tells the feed: the events that its latest append added.

Numbers begin at 1 and indices at 0. A head that another library wrote last tells nothing but that something
happened: what there is must be looked up in the journal.
"""

from __future__ import annotations

from epochal.errors import CorruptData
from epochal.layout.journal.items import head_types, is_head, read_event
from epochal.layout.journal.keys import HEAD
from epochal.layout.journal.writes import JournalSite
from epochal.model.ends import End
from epochal.model.spans import Span
from epochal.plan.conditions import Condition, equals
from epochal.plan.values import Item, number, read_number

WHERE: Condition = equals("seq_nr", number(HEAD))
"""The condition that only heads meet. Every library writes a head with events; kept copies have an event's number."""


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
    if not is_head(item) or not _is_foreign(item):
        return None
    aggregate: str = item["aid"]["S"]
    return aggregate


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


def stored(site: JournalSite, item: Item) -> Span:
    """The event that an item of the journal is."""
    event = read_event(item)
    kind = event.event_type or site.serializer.type_of(event.payload)
    return Span(item["aid"]["S"], event.seq_nr - 1, (kind,))


def check_place(site: JournalSite, item: Item) -> None:
    """Raise `CorruptData` where the aggregate of an item is not the one that its id stands for, or is under another
    key: readers of the feed have the id alone, and would find another aggregate by it, or none.
    """
    aid, partition = item["aid"]["S"], item["pkey"]["S"]
    found = site.types.read(aid)
    if found is None:
        raise CorruptData(f"{aid!r} is no id of an aggregate")
    key = site.keys.key(found, HEAD)["pkey"]["S"]
    if partition == key:
        return
    kind, other = partition.rpartition("-")[0], key.rpartition("-")[0]
    if kind != other:
        raise CorruptData(
            f"{aid} is stored as of type {kind!r}, and stands for an aggregate of type {other!r}: a type that holds - "
            "must be among the types declared for these tables, and none of them may begin another's ids"
        )
    raise CorruptData(
        f"{aid} is stored under {partition}, and looked for under {key}: other shards, or other keys"
    )


def _is_foreign(head: Item) -> bool:
    return read_number(head, "head_version") != read_number(head, "version")
