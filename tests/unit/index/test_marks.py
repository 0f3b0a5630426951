from __future__ import annotations

import pytest

from epochal.index.marks import TOGETHER, read_marks, write_marks
from tests.unit.feed.feeds import Feeds


def test_marks_are_read_back_by_stream_and_unknown_streams_have_none() -> None:
    feeds = Feeds()
    feeds.driver.run(write_marks("index", 3, [("A-1", 5), ("B-1", 7)]))
    assert feeds.driver.run(read_marks("index", 3, ["B-1", "C-1", "A-1"])) == {"A-1": 5, "B-1": 7}


def test_marks_belong_to_their_partition() -> None:
    feeds = Feeds()
    feeds.driver.run(write_marks("index", 3, [("A-1", 5)]))
    assert feeds.driver.run(read_marks("index", 0, ["A-1"])) == {}


def test_a_mark_is_raised_and_never_lowered() -> None:
    feeds = Feeds()
    for following, expected in ((5, 5), (9, 9), (10, 10), (9, 10), (5, 10), (100, 100), (11, 100)):
        feeds.driver.run(write_marks("index", 0, [("A-1", following)]))
        assert feeds.driver.run(read_marks("index", 0, ["A-1"])) == {"A-1": expected}


@pytest.mark.parametrize("count", [350, TOGETHER, TOGETHER + 1, 2 * TOGETHER + 1])
def test_more_marks_than_go_out_together_are_all_written_and_read(count: int) -> None:
    feeds = Feeds()
    streams = [f"S-{k}" for k in range(count)]
    feeds.driver.run(write_marks("index", 0, [(stream, k + 1) for k, stream in enumerate(streams)]))
    found = feeds.driver.run(read_marks("index", 0, streams))
    assert found == {stream: k + 1 for k, stream in enumerate(streams)}


def test_a_mark_is_the_item_that_formats_describes() -> None:
    feeds = Feeds()
    feeds.driver.run(write_marks("index", 3, [("A-1", 5)]))
    assert list(feeds.tables.items("index")) == [
        {"p": {"S": "$Indexed-3_A-1"}, "i": {"N": "0"}, "n": {"N": "5"}}
    ]


def test_no_streams_ask_for_nothing() -> None:
    feeds = Feeds()
    assert feeds.driver.run(read_marks("index", 0, [])) == {}
    assert feeds.ops == []
