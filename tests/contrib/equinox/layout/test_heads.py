"""What a Tip tells the feed: the events of its latest write, and nothing that is not an append."""

from __future__ import annotations

import pytest

from epochal.contrib.equinox.port import appended
from epochal.errors import CorruptData
from epochal.index.checkpoints import TIP
from epochal.layout.changes import Span
from epochal.plan.values import Item, number, sequence, text
from tests.contrib.equinox.layout.items import STREAM, calf, item, numbered, tip


def typed(following: int, types: list[str], latest: int) -> Item:
    return {
        **tip(following, numbered(following - len(types), following), a=number(latest)),
        "c": sequence(map(text, types)),
    }


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (typed(1, ["A"], 1), Span(STREAM, 0, ("A",))),
        (typed(9, ["A", "B", "C"], 2), Span(STREAM, 7, ("B", "C"))),
        (typed(9, ["A", "B"], 2), Span(STREAM, 7, ("A", "B"))),
        (typed(9, ["A", "B"], 5), Span(STREAM, 7, ("A", "B"))),
    ],
    ids=["a new stream", "the last two", "after calving", "trimmed by Equinox, which leaves a as it was"],
)
def test_a_tip_tells_what_its_latest_write_appended(head: Item, expected: Span) -> None:
    assert appended(head) == expected


@pytest.mark.parametrize(
    "image",
    [
        calf(0, numbered(0, 3)),
        tip(3, numbered(0, 3), a=number(0)),
        tip(3, a=number(2)),
        item(0, 7, [], ttl=number(1)),
    ],
    ids=["a calf", "a prune or unfolds", "all calved", "a key's record"],
)
def test_what_appends_nothing_tells_nothing(image: Item) -> None:
    assert appended(image) is None


@pytest.mark.parametrize(
    "broken",
    [
        {name: value for name, value in typed(2, ["A"], 1).items() if name != "n"},
        {name: value for name, value in typed(2, ["A"], 1).items() if name != "a"},
        {**typed(2, ["A"], 1), "a": number(-1)},
        {**typed(2, ["A", "B", "C"], 3), "n": number(2)},
    ],
    ids=["no n", "no a", "a below 0", "n below a"],
)
def test_a_tip_whose_counters_do_not_fit_is_corrupt(broken: Item) -> None:
    assert broken["i"] == number(TIP)
    with pytest.raises(CorruptData, match="n and a"):
        appended(broken)


def test_a_span_is_cut_by_index() -> None:
    span = Span(STREAM, 5, ("A", "B", "C"))

    assert span.next == 8
    assert span.since(4) == span
    assert span.since(6) == Span(STREAM, 6, ("B", "C"))
    assert span.since(8) == Span(STREAM, 8, ())
