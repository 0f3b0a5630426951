"""What tables send to Kinesis, as Lambda hands it to the indexer: now and then twice, and after a later change."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from epochal.feed.indexer import Report
from epochal.feed.stream_records import read_records
from epochal.plan.values import Item, binary
from tests.core.feed.events import event, kinesis_record, sent_change
from tests.layouts.stores import ALICE, HEADS, START, Layouts
from tests.support.examples import seeds


def images(*sent: dict[str, Any]) -> list[Item]:
    return [each.image for each in read(sent)]


def read(sent: Any) -> list[Any]:
    return list(read_records(event(kinesis_record(at, each) for at, each in enumerate(sent))["Records"]))


def head(number: int) -> Item:
    return {"p": {"S": "Order-1"}, "i": {"N": "2147483647"}, "n": {"N": str(number)}}


def test_a_record_has_the_new_image_its_table_and_its_place_in_kinesis() -> None:
    image = {**head(1), "d": binary(b"\x00\xffbody"), "l": {"L": [{"M": {"b": binary(b"deep")}}]}}
    (found,) = read([sent_change(image, 7, "INSERT", "shop-tips")])
    assert (found.table, found.image, found.sequence_number) == ("shop-tips", image, "0" * 56)


def test_deletions_and_what_expires_are_passed_over() -> None:
    expired = {"userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"}}
    assert images(sent_change(None, 1, "REMOVE"), {**sent_change(None, 2, "REMOVE"), **expired}) == []


@pytest.mark.parametrize("unit", ["MICROSECOND", "MILLISECOND", ""], ids=lambda unit: unit or "unsaid")
def test_a_batch_is_put_into_the_order_of_its_changes(unit: str) -> None:
    """One without a unit is from when there were milliseconds alone."""
    sent = [sent_change(head(at), at * 2_000, unit=unit) for at in (3, 1, 2)]
    assert images(*sent) == [head(1), head(2), head(3)]


def test_times_of_both_units_are_of_one_order() -> None:
    """While a table is changed from one to the other."""
    sent = [sent_change(head(2), 4_000, unit="MICROSECOND"), sent_change(head(1), 2_000, unit="MILLISECOND")]
    assert images(*sent) == [head(1), head(2)]


def test_a_change_that_comes_twice_is_known_by_its_item_and_its_time() -> None:
    one, again, later, other = read(
        [
            sent_change(head(1), 1),
            {**sent_change(head(1), 1), "eventID": "another"},
            sent_change(head(1), 2),
            sent_change({**head(1), "p": {"S": "Order-2"}}, 1),
        ]
    )
    known = [each.change for each in (one, again, later, other)]
    assert len(set(known)) == 3
    assert len({each.sequence_number for each in (one, again, later, other)}) == 4


def test_a_poison_record_that_comes_twice_is_set_aside_once() -> None:
    layouts = Layouts()
    layouts.append("Order-2", "a")
    broken = {"p": {"S": "Order-1"}, "i": {"N": "2147483647"}, "a": {"N": "1"}}
    records = read([sent_change(broken, 1), *sent_by(layouts, "tips"), sent_change(broken, 1)])
    indexer = layouts.indexer()
    assert (indexer.index(records).set_aside, indexer.index(records).set_aside) == (1, 0)
    assert layouts.feed("tips") == [("Order-2", 0, "a")]


def sent_by(layouts: Layouts, table: str) -> list[dict[str, Any]]:
    """All changes of a table, a millisecond apart."""
    return [
        sent_change(image, at * 1_000, table=table) for at, image in enumerate(layouts.tables.changes(table))
    ]


def delivered(sent: list[dict[str, Any]], rng: random.Random) -> Iterator[list[dict[str, Any]]]:
    """Each change once or twice, and anywhere, in batches."""
    copies = sent + [each for each in sent if rng.random() < 0.3]
    rng.shuffle(copies)
    records = [kinesis_record(at, each) for at, each in enumerate(copies)]
    while records:
        size = rng.randint(1, 8)
        yield records[:size]
        records = records[size:]


@pytest.mark.slow
@seeds(20, 6)
def test_the_feed_is_complete_in_order_and_without_doubles_however_changes_come(seed: int) -> None:
    """Of tables of several layouts in one stream, by several processes."""
    rng, layouts = random.Random(seed), Layouts()
    for at in range(12):
        layouts.append(f"Order-{rng.randrange(3)}", *(f"s{at}.{k}" for k in range(rng.randint(1, 3))))
        layouts.persist(ALICE, f"a{at}")
        layouts.tag(f"t{at}", *rng.sample(["x", "y", "z"], 2))
    expected = Layouts(tables=layouts.tables.copy())
    expected.index()
    processes = [layouts.indexer() for _ in range(3)]
    for process in processes:
        process.register()
    sent = [each for table in HEADS for each in sent_by(layouts, table)]
    for batch in delivered(sent, rng):
        report: Report = rng.choice(processes).index(read_records(event(batch)["Records"]))
        assert (report.failed, report.set_aside) == ((), 0)
    for source in START:
        assert sorted(layouts.feed(source)) == sorted(expected.feed(source))
        for stream in {stream for stream, _, _ in layouts.feed(source)}:
            indices = [index for name, index, _ in layouts.feed(source) if name == stream]
            assert indices == list(range(len(indices)))


def test_order_within_a_batch_is_worth_its_sorting() -> None:
    """Changes that came in the wrong order are no gaps, so the store is not read."""
    layouts = Layouts()
    for at in range(9):
        layouts.append("Order-1", f"e{at}")
    indexer = layouts.indexer()
    indexer.register()
    report = indexer.index(read(list(reversed(sent_by(layouts, "tips")))))
    (ingested,) = report.by_partition.values()
    assert (ingested.events, ingested.healed) == (9, 0)
