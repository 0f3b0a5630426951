"""How many ranges a batch has: it grows while guesses are right, and there is none where it does not pay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from epochal.feed.batch_reading import FEWEST, FIRST, SECONDS, BatchReader, Range
from epochal.feed.events import FeedEvent
from epochal.feed.hydration import events_of
from epochal.layout.changes import Span
from epochal.plan.limits import BATCH_KEYS


@dataclass
class Hydrating:
    """A function that reads events, and finds in a batch those of all streams but the `missed`."""

    missed: set[str] = field(default_factory=set)
    batches: list[int] = field(default_factory=list)
    singles: list[str] = field(default_factory=list)

    def __call__(self, stream: str, first: int, end: int) -> Iterator[FeedEvent]:
        self.singles.append(stream)
        return iter(_events(stream, first, end))

    def is_batched(self, stream: str, first: int) -> bool:
        return first == 0 and not stream.startswith("tag")

    def read_batch(self, ranges: Sequence[Range]) -> dict[Range, Iterable[FeedEvent]]:
        self.batches.append(len(ranges))
        return {range_: _events(*range_) for range_ in ranges if range_[0] not in self.missed}


def _events(stream: str, first: int, end: int) -> list[FeedEvent]:
    return [FeedEvent(stream=stream, index=index, type="x") for index in range(first, end)]


def ranges_of(count: int, first: int = 0) -> list[Range]:
    return [(f"Cart-{number}", first, first + 1) for number in range(count)]


def read_all(reader: BatchReader[FeedEvent], ranges: Sequence[Range]) -> set[Range]:
    """The ranges that batches find."""
    found: set[Range] = set()
    candidates = reader.candidates(ranges)
    while candidates:
        events, candidates = reader.read(candidates)
        found |= events.keys()
    return found


def test_batches_grow_up_to_what_a_request_may_have() -> None:
    hydrate = Hydrating()
    reader = BatchReader[FeedEvent](hydrate)
    assert read_all(reader, ranges_of(300)) == set(ranges_of(300))
    assert hydrate.batches == [2, 8, 32, 100, 100, 58]
    assert max(hydrate.batches) == BATCH_KEYS


def test_a_wrong_guess_of_the_first_batch_ends_batches_until_the_next_ranges() -> None:
    hydrate = Hydrating(missed={"Cart-1"})
    reader = BatchReader[FeedEvent](hydrate)
    assert read_all(reader, ranges_of(300)) == {("Cart-0", 0, 1)}
    assert read_all(reader, ranges_of(300)) == {("Cart-0", 0, 1)}
    assert hydrate.batches == [FIRST, FIRST]


def test_a_few_wrong_guesses_of_a_large_batch_are_tolerated() -> None:
    hydrate = Hydrating(missed={f"Cart-{number}" for number in range(42, 48)})
    assert len(read_all(BatchReader[FeedEvent](hydrate), ranges_of(300))) == 294
    assert hydrate.batches == [2, 8, 32, 100, 100, 58]


def test_too_many_wrong_guesses_of_a_large_batch_are_not() -> None:
    hydrate = Hydrating(missed={f"Cart-{number}" for number in range(42, 49)})
    assert len(read_all(BatchReader[FeedEvent](hydrate), ranges_of(300))) == 142 - 7
    assert hydrate.batches == [2, 8, 32, 100]


def test_a_slow_consumer_gets_small_batches() -> None:
    now = [0.0]
    hydrate = Hydrating()
    reader = BatchReader[FeedEvent](hydrate, lambda: now[0])
    candidates = reader.candidates(ranges_of(100))
    while candidates:
        _, candidates = reader.read(candidates)
        now[0] += 2 * SECONDS if len(hydrate.batches) > 2 else 0
    assert hydrate.batches[:6] == [2, 8, 32, 6, 2, 2]


@pytest.mark.parametrize(
    "ranges",
    [
        ranges_of(FEWEST - 1),
        [*ranges_of(FEWEST - 1), *ranges_of(20, first=1)],
        [(f"tag{number}", 0, 1) for number in range(20)],
        [],
    ],
    ids=["few", "few at their beginning", "tags", "none"],
)
def test_there_is_no_batch_where_it_does_not_pay(ranges: Sequence[Range]) -> None:
    assert not BatchReader[FeedEvent](Hydrating()).candidates(ranges)


def test_a_function_without_batches_reads_all_by_itself() -> None:
    assert not BatchReader[FeedEvent](_events).candidates(ranges_of(100))


def test_what_batches_miss_is_read_by_itself_and_all_comes_in_order() -> None:
    hydrate = Hydrating(missed={"Cart-9", "Cart-30", "Cart-31"})
    spans = [Span(stream, first, ("x",) * 2) for stream, first, _ in ranges_of(100)]
    events = list(events_of(spans, hydrate, lambda: 80))
    assert [(event.stream, event.index) for event in events] == [
        (span.stream, index) for span in spans for index in (0, 1)
    ]
    assert sorted(hydrate.singles) == sorted({f"Cart-{number}" for number in range(100)} - BATCHED)


BATCHED = {f"Cart-{number}" for number in [*range(9), *range(40, 100)]}
"""Streams that the batches of windows of 40 streams find: the second batch of the first window has a wrong guess."""
