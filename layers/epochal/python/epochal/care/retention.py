"""Retention: how much streams of a category keep, by count and by age. Off unless a stage asks for it.

    keep("Visit", count=100)     the last 100 events of each stream
    keep("Log", days=30)         those of the last 30 days
    keep("Trace", count=100, days=30)    the last 100, and of these those of the last 30 days

The auditor meets every head anyway. What its page tells to be beyond a rule is pruned, some streams in each run: what
is left comes with the next pass over the table. State and versions stay. Nothing is pruned that the index lacks, so the
feed has had it; nor what an archive has not got, where there is one. The feed tells a prune as any other.

The age of an event is the time since its append, whatever its own timestamp says: an imported history is as old as its
import. A full page and the last one tell their own times, so no stream is read for this. Streams that are no pages tell
none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from epochal.errors import InvalidInput
from epochal.layout.registry import layout_named
from epochal.layout.source import Source
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.kinds import must_be_text, must_be_whole
from epochal.model.moments import PER_SECOND, Ticks
from epochal.store.streams import Streams

if TYPE_CHECKING:
    from epochal.care.heads import ScannedHead
    from epochal.store.reading import Pruned


STREAMS: Final = 200
"""Streams pruned in a run at most."""

MOST_COUNT: Final = 1_000_000_000
MOST_DAYS: Final = 36_500
_RULE: Final = re.compile(
    r"(?P<category>[^\s,$][^\s,]*?)(?::(?P<count>[0-9]+))?(?::(?P<days>[0-9]+)d)?", re.ASCII
)
_DAY: Final = 24 * 3_600 * PER_SECOND


def keep(category: str, *, count: int | None = None, days: int | None = None) -> str:
    """Return a retention rule as text for the setting `keep`: `Visit:100`, `Log:30d`, `Trace:100:30d`.

    Args:
        category: category of the streams.
        count: number of the latest events that each stream keeps; None for all.
        days: days since their append for which events are kept, whatever their own timestamps say; None for ever.

    Raises:
        InvalidInput: neither `count` nor `days` is given, or one is not a whole number of 1 or more.
    """
    must_be_text(category, 512, "category")
    for name, value, most in (("count", count, MOST_COUNT), ("days", days, MOST_DAYS)):
        if value is not None:
            must_be_whole(value, name, 1, most)
    text = category + (f":{count}" if count else "") + (f":{days}d" if days else "")
    if rule_of(text).category != category:
        raise InvalidInput("category", "must not end like a rule, in :100 or :30d")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What streams of a category keep: events that are among the last `count`, and not older than `days`."""

    category: str
    count: int | None
    days: int | None

    def before(self, source: Source, head: ScannedHead, now: Ticks) -> int:
        """Return the index below which a stream's events are beyond the rule, as far as `head` tells."""
        bounds = [0]
        if self.count is not None and head.end.next is not None:
            bounds.append(head.end.next - self.count)
        if self.days is not None and source.aged is not None:
            bounds.append(source.aged(head.image, Ticks(max(0, now - self.days * _DAY))))
        return max(bounds)


def rule_of(text: str) -> Rule:
    """Parse a retention rule such as `Visit:100:30d`; raise `InvalidInput` if it is none.

    Raises:
        InvalidInput: the text is not a rule, or a number is out of bounds.
    """
    parsed = _RULE.fullmatch(text)
    count, days = (None, None) if parsed is None else (parsed["count"], parsed["days"])
    if parsed is None or not (count or days):
        raise InvalidInput("keep", f"must be Category:100, Category:30d or Category:100:30d, not {text!r}")
    for value, most in ((count, MOST_COUNT), (days, MOST_DAYS)):
        if value is not None and not 1 <= int(value) <= most:
            raise InvalidInput("keep", f"must have numbers from 1 to {most:,}, not {text!r}")
    return Rule(
        category=parsed["category"],
        count=None if count is None else int(count),
        days=None if days is None else int(days),
    )


def rules_of(texts: Iterable[str]) -> dict[str, Rule]:
    """Parse retention rules; return them by category; raise `InvalidInput` if a category has two.

    Raises:
        InvalidInput: a text is not a rule, or a category has two.
    """
    rules: dict[str, Rule] = {}
    for rule in map(rule_of, texts):
        if rule.category in rules:
            raise InvalidInput("keep", f"must be one rule for each category, not two for {rule.category}")
        rules[rule.category] = rule
    return rules


@dataclass(slots=True, kw_only=True)
class Overdue:
    """Collects streams that hold more than their rule keeps, and prunes them.

    Attributes:
        streams: opens the store that prunes the streams.
        due: by stream, the index below which its events are beyond the rule.
        gone: by stream, the index below which its events are pruned already.
    """

    rules: dict[str, Rule]
    streams: Callable[[], Streams]
    due: dict[str, int] = field(default_factory=dict)
    gone: dict[str, int] = field(default_factory=dict)

    def take(self, source: Source, heads: Iterable[ScannedHead], now: Ticks) -> None:
        """Note up to where each stream with a rule is to be pruned, and up to where it already is."""
        if source.aged is None:
            return
        category_of = layout_named(source.name).port.categories.of
        for head in heads:
            stream = head.end.stream
            rule = self.rules.get(category_of(stream))
            if rule is None or head.end.left == "deleted":
                continue
            self.due[stream] = max(rule.before(source, head, now), self.due.get(stream, 0))
            self.gone[stream] = max(head.end.pruned, self.gone.get(stream, 0))

    def all(self) -> Iterator[tuple[str, int]]:
        """Yield each stream that is beyond its rule, and the index below which it has to be pruned."""
        return ((stream, before) for stream, before in self.due.items() if before > self.gone[stream])

    def some(self) -> dict[str, int]:
        """As many of the streams beyond their rules as one run prunes."""
        return dict(islice(self.all(), STREAMS))

    def prune(self, stream: str, before: int) -> Pruned | None:
        """Prune a stream below an index; where the stage has an archive, the events are copied there first."""
        return self.streams().archive_and_prune(stream, before)
