"""Counts what rules of retention would prune now; nothing is written.

Every head is read, and what the index has of the streams that have more than they keep: an auditor prunes no more.
What an archive lacks is counted too, which a prune would copy first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from epochal.care.heads import heads, read_heads, streams_by_partition
from epochal.care.mender import Mender
from epochal.care.retention import Overdue, Rule
from epochal.layout.registry import layout_named
from epochal.layout.source import Source
from epochal.lazy_dataclasses import dataclass
from epochal.model.moments import from_unix_nanoseconds
from epochal.store.streams import Streams


@dataclass(slots=True, kw_only=True)
class Prunable:
    """How many streams and events of a category the rules would prune now."""

    category: str
    streams: int = 0
    events: int = 0


def prunable(mender: Mender, sources: Iterable[Source], rules: Mapping[str, Rule]) -> list[Prunable]:
    """Count the streams and events that rules of retention would prune now, by category."""
    counts = {category: Prunable(category=category) for category in rules}
    for source in sources:
        overdue = Overdue(rules=dict(rules), streams=_never)
        for page in heads(mender.driver, source):
            overdue.take(source, read_heads(source, page), from_unix_nanoseconds(mender.now()))
        due, category_of = dict(overdue.all()), layout_named(source.name).port.categories.of
        for partition, streams in streams_by_partition(source, due).items():
            indexed = mender.reached(partition, streams)
            for stream in streams:
                events = min(due[stream], indexed[stream]) - overdue.gone[stream]
                if events > 0:
                    count = counts[category_of(stream)]
                    count.streams, count.events = count.streams + 1, count.events + events
    return list(counts.values())


def _never() -> Streams:
    raise AssertionError("nothing is pruned here")
