from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.index.entries import Entry
from epochal.index.epochs import STANDARD, Epoch, EpochLimits, decide, unknown_streams
from epochal.index.tip import StoredSpan, Tip
from epochal.layout.changes import Span
from epochal.layout.healing import Gap
from tests.core.feed.feeds import spans_of

STREAMS = ("A", "B", "C")
nexts = st.fixed_dictionaries({stream: st.integers(0, 12) for stream in STREAMS})


@st.composite
def batches(draw: st.DrawFn) -> list[Span]:
    """Spans in any order, of any length, doubled, overlapping, and with holes. An event's type is its index."""
    starts = st.lists(st.tuples(st.sampled_from(STREAMS), st.integers(0, 15), st.integers(1, 5)), max_size=12)
    return [
        Span(stream, index, tuple(str(index + k) for k in range(count)))
        for stream, index, count in draw(starts)
    ]


@given(batches(), nexts)
def test_whatever_a_batch_holds_each_stream_goes_on_from_its_next_without_hole_or_overlap(
    batch: list[Span], following: dict[str, int]
) -> None:
    reached = dict(following)
    for step in decide(batch, following.__getitem__):
        assert step.index == reached[step.stream]
        reached[step.stream] = step.end if isinstance(step, Gap) else step.next
        assert reached[step.stream] > step.index


@given(batches(), nexts)
def test_whatever_a_batch_holds_all_of_it_is_reached(batch: list[Span], following: dict[str, int]) -> None:
    reached = dict(following)
    for step in decide(batch, following.__getitem__):
        reached[step.stream] = step.end if isinstance(step, Gap) else step.next
    for stream in STREAMS:
        last = max((span.next for span in batch if span.stream == stream), default=0)
        assert reached[stream] == max(last, following[stream])


@given(batches(), nexts)
def test_a_gap_holds_exactly_the_events_that_neither_index_nor_batch_has_up_to_there(
    batch: list[Span], following: dict[str, int]
) -> None:
    gaps = [step for step in decide(batch, following.__getitem__) if isinstance(step, Gap)]
    for gap in gaps:
        # The record before which the gap lies is the first of its stream to reach beyond it.
        beyond = next(span for span in batch if span.stream == gap.stream and span.next > gap.end)
        assert beyond.index == gap.end
        earlier = batch[: batch.index(beyond)]
        before = [span.next for span in earlier if span.stream == gap.stream]
        assert gap.index == max([following[gap.stream], *before])


@given(batches(), nexts)
def test_what_is_kept_keeps_its_types_and_its_order(batch: list[Span], following: dict[str, int]) -> None:
    kept = [step for step in decide(batch, following.__getitem__) if isinstance(step, Span)]
    for span in kept:
        assert span.types == tuple(str(index) for index in range(span.index, span.next))
    places = [
        next(k for k, span in enumerate(batch) if span.stream == step.stream and span.next == step.next)
        for step in kept
    ]
    assert places == sorted(places)


@given(batches(), nexts)
def test_a_batch_decided_on_its_own_outcome_is_empty(batch: list[Span], following: dict[str, int]) -> None:
    reached = dict(following)
    for step in decide(batch, following.__getitem__):
        reached[step.stream] = step.end if isinstance(step, Gap) else step.next
    assert decide(batch, reached.__getitem__) == []


def test_a_duplicate_is_dropped_an_overlap_is_cut_and_a_hole_is_a_gap() -> None:
    batch = spans_of(["A:0:ab", "A:0:ab", "A:1:bc", "A:5:f", "B:3:x"])
    assert decide(batch, {"A": 1, "B": 3}.__getitem__) == [
        Span("A", 1, ("b",)),
        Span("A", 2, ("c",)),
        Gap(stream="A", index=3, end=5),
        Span("A", 5, ("f",)),
        Span("B", 3, ("x",)),
    ]


def test_streams_to_be_looked_up_are_those_that_neither_epoch_knows_each_once() -> None:
    batch = spans_of(["A:9:a", "B:9:a", "C:9:a", "D:9:a", "C:9:a"])
    active, previous = Epoch(number=1, next={"A": 3}), Epoch(number=0, next={"B": 4})
    assert unknown_streams(batch, active, previous) == ["C", "D"]
    assert unknown_streams(batch, active, None) == ["B", "C", "D"]


def test_folding_takes_every_stream_to_its_next_index_and_ends_with_closed() -> None:
    epoch = Epoch(number=0)
    epoch.fold(Entry(tuple(spans_of(["A:0:ab", "B:4:c", "A:2:c"]))))
    assert epoch.next == {"A": 3, "B": 5}
    assert (epoch.version, epoch.closed) == (1, False)
    epoch.fold(None)
    assert (epoch.version, epoch.closed) == (2, True)


def test_an_entry_just_written_counts_as_one_read_back() -> None:
    epoch, tip = Epoch(number=0, size=100), Tip(stream="$AppendsEpoch-0_0", span=StoredSpan(base=0))
    epoch.add(Entry(tuple(spans_of(["A:0:ab"])), marked=3), 50, tip)
    assert (epoch.next, epoch.version, epoch.size, epoch.tip) == ({"A": 2}, 1, 150, tip)
    assert epoch.marked == 3


def test_an_entry_that_says_nothing_of_marks_or_less_than_one_before_takes_nothing_back() -> None:
    epoch = Epoch(number=1)
    for marked in (0, 7, 0, 5):
        epoch.fold(Entry((), marked=marked))
    assert epoch.marked == 7


@pytest.mark.parametrize(
    ("epoch", "fullness"),
    [
        (Epoch(number=0), 0.2),
        (Epoch(number=0, size=450), 0.5),
        (Epoch(number=0, version=7), 0.8),
        (Epoch(number=0, next=dict.fromkeys("CDEFGH", 1)), 0.8),
        (Epoch(number=0, next=dict.fromkeys("ACDEFGH", 1)), 0.8),
        (Epoch(number=0, size=950), 1.0),
        (Epoch(number=0, version=9), 1.0),
        (Epoch(number=0, next=dict.fromkeys("CDEFGHIJ", 1)), 1.0),
    ],
)
def test_an_epoch_is_full_when_bytes_entries_or_streams_reach_their_limit(
    epoch: Epoch, fullness: float
) -> None:
    limits = EpochLimits(bytes=1_000, entries=10, streams=10)
    assert epoch.fullness(limits, 50, spans_of(["A:0:a", "B:0:b", "A:1:c"])) == pytest.approx(fullness)


def test_epochs_close_at_2_mib_5000_entries_or_200000_streams() -> None:
    assert EpochLimits(bytes=2_097_152, entries=5_000, streams=200_000) == STANDARD


@pytest.mark.parametrize(
    "limits", [{"bytes": 0}, {"entries": 0}, {"streams": 0}, {"entries": 1_000_001}, {"bytes": -1}]
)
def test_limits_that_no_epoch_could_keep_are_refused(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(limits))):
        EpochLimits(**limits)
