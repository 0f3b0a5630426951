"""What a tag's head tells the feed: the events that its latest append added.

A stream of the feed is a tag, named by what follows `TAG#`; an event of several tags is in the stream of each.

    tags of users, and the reserved tag of events without any      fed: every event is in at least one of them
    heads by type and of everything                                not fed: each of their events would appear twice
    heads of another tenant                                        not fed: its tags may have the same names

Entries share the table with the heads; the original library's tables hold nothing else, and feed nothing.
"""

from __future__ import annotations

from epochal.contrib.sekiban.items import HEAD, Keys, is_head
from epochal.errors import CorruptData
from epochal.model.dcb import UNTAGGED, is_reserved
from epochal.model.spans import End, Span
from epochal.plan.ops import All, BeginsWith, Condition, equals
from epochal.plan.values import Item, read_list, read_number, text


def where(keys: Keys) -> Condition:
    """What heads of the tenant's tags meet.

    Heads by type meet it, too, where there are any, since their keys begin alike. No append moves them without a
    tag's head.
    """
    return All((BeginsWith("pk", keys.tag("")), equals("sk", text(HEAD))))


def appended(item: Item, service: str = "") -> Span | None:
    """The span that a head's latest append added; None for entries, for heads by type, for other tenants.

    Args:
        item: of the tags table.
        service: the tenant whose feed it is; empty for tables of one tenant.

    Raises:
        CorruptData: the item is a head of ours, but its counters do not fit each other.
    """
    tag = _tag_of(item, service)
    if not is_head(item) or tag is None:
        return None
    following, latest = read_number(item, "n"), read_number(item, "a")
    types = tuple(kind["S"] for kind in read_list(item, "c"))
    if following is None or latest != len(types) or not 0 < latest <= following:
        raise CorruptData(f"{item['pk']['S']}: a head whose n, a and c do not fit each other")
    return Span(tag, following - latest, types)


def end(item: Item, service: str = "") -> End | None:
    """Where the tag ends; None where `appended` is. Raises `CorruptData` as it does."""
    span = appended(item, service)
    return None if span is None else End(span.stream, span.next)


def stored(item: Item, service: str = "") -> Span | None:
    """The event that an entry stands for; None for whatever else the table holds."""
    tag, index = _tag_of(item, service), read_number(item, "tagIndex")
    if tag is None or index is None or is_head(item):
        return None
    return Span(tag, index, (item["eventType"]["S"],))


def _tag_of(item: Item, service: str) -> str | None:
    """The tag that an item is of, if the feed has it."""
    tag = Keys(service=service).tag_of(item["pk"]["S"])
    return None if tag is None or (is_reserved(tag) and tag != UNTAGGED) else tag
