"""Records set aside: listed, retried, given up."""

from __future__ import annotations

import random

import pytest

from epochal.care.quarantined import PoisonRecords
from epochal.errors import CorruptData, InvalidInput
from epochal.feed.stream_records import Record
from epochal.model.events import Event
from epochal.plan.ops import Delete, Put
from epochal.plan.values import binary, number, text
from epochal.testing.stores import memory_deployment, memory_tables
from tests.layouts.stores import ALICE, HEADS, JOURNAL, START, Layouts


@pytest.fixture
def layouts() -> Layouts:
    return Layouts()


def records(layouts: Layouts) -> PoisonRecords:
    return PoisonRecords(indexer=layouts.indexer())


def test_nothing_is_listed_where_nothing_was_set_aside(layouts: Layouts) -> None:
    assert list(records(layouts).all()) == []


def test_what_was_set_aside_is_listed_by_source_with_its_cause_and_its_image(layouts: Layouts) -> None:
    image = {
        "p": text("Order-1"),
        "i": number(2_147_483_647),
        "a": number(1),
        "e": {"L": [{"M": {"d": binary(b"\x00\xff"), "s": {"BS": [b"\x01"]}}}]},
    }
    tag = {"pk": text("TAG#course:1"), "sk": text("#"), "n": number(1), "a": number(3)}
    layouts.indexer().index(
        [
            Record(table="tags", sequence_number="1", image=tag),
            Record(table="tips", sequence_number="1", image=image),
            Record(table="tips", sequence_number="2", image={**image, "p": text("Order-2")}),
        ]
    )
    first, second, third = records(layouts).waiting()
    assert (first.source, first.index, first.image, first.omitted) == ("tips", 0, image, None)
    assert "n and a" in first.cause
    assert (second.index, second.key) == (1, {"p": text("Order-2"), "i": number(2_147_483_647)})
    assert (third.source, third.index, third.image) == ("dcb", 0, tag)


@pytest.mark.parametrize("source", START)
def test_a_record_is_indexed_by_a_retry_once_its_head_is_sound(layouts: Layouts, source: str) -> None:
    table = dict(zip(START, HEADS, strict=True))[source]
    layouts.append("Order-1", "a", "b")
    layouts.persist(ALICE, "a", "b")
    layouts.tag("a", "course:1")
    layouts.tag("b", "course:1")
    broken = {
        "tips": {"n": number(1)},
        "journal": {"last_seq_nr": number(1)},
        "dcb": {"n": number(0)},
    }
    heads = layouts.records(table)
    sound = heads[-1].image
    record = Record(table=table, sequence_number="7", image={**sound, **broken[source]})
    assert layouts.indexer().index([record]).set_aside == 1
    assert layouts.feed(source) == []
    assert records(layouts).retry(source, 0).events == 2
    assert [kind for _, _, kind in layouts.feed(source)] == ["a", "b"]
    (done,) = records(layouts).all()
    assert done.outcome == "retried"
    assert list(records(layouts).waiting()) == []


def test_a_retry_that_fails_says_why_and_leaves_the_record_waiting(layouts: Layouts) -> None:
    layouts.append("Order-1", "a", "b")
    (sound,) = layouts.tables.items("tips")
    layouts.tables.execute(Put(table="tips", item={**sound, "n": number(1)}))
    layouts.indexer().index(layouts.records("tips")[-1:])
    with pytest.raises(CorruptData, match="Order-1"):
        records(layouts).retry("tips", 0)
    assert [record.outcome for record in records(layouts).all()] == [None]


def test_events_of_a_stream_that_could_not_be_healed_are_indexed_once_it_can(layouts: Layouts) -> None:
    layouts.persist(ALICE, *"abc")
    (second,) = [item for item in layouts.tables.items("journal") if item["seq_nr"] == number(2)]
    layouts.tables.execute(Delete(table="journal", key={name: second[name] for name in ("pkey", "skey")}))
    layouts.records("snapshot")
    layouts.persist(ALICE, "d")
    assert layouts.indexer().index(layouts.records("snapshot")).set_aside == 1
    with pytest.raises(CorruptData, match="event 2 is missing"):
        records(layouts).retry("journal", 0)
    layouts.tables.execute(Put(table="journal", item=second))
    assert records(layouts).retry("journal", 0).events == 4
    assert [kind for _, _, kind in layouts.feed("journal")] == list("abcd")


def test_where_the_head_tells_nothing_any_more_what_it_told_then_is_indexed(layouts: Layouts) -> None:
    layouts.append("Order-1", *"abc")
    told = layouts.records("tips")
    layouts.tables.execute(
        Put(table="tips", item={**told[0].image, "p": text("Order-2"), "n": number(9), "e": {"L": []}})
    )
    corrupt = Record(
        table="tips",
        sequence_number="3",
        image={
            **told[0].image,
            "p": text("Order-2"),
            "n": number(9),
            "c": {"L": [text("z")]},
            "a": number(1),
        },
    )
    assert layouts.indexer().index([corrupt]).set_aside == 1
    layouts.tables.execute(Delete(table="tips", key={"p": text("Order-2"), "i": number(2_147_483_647)}))
    ingested = records(layouts).retry("tips", 0)
    assert (ingested.events, ingested.pruned) == (1, 8)
    assert layouts.feed("tips") == [("Order-2", 8, "z")]


def test_a_record_of_which_only_the_keys_were_kept_is_retried_by_its_head(layouts: Layouts) -> None:
    layouts.append("Order-1", "a")
    (sound,) = layouts.tables.items("tips")
    body = random.Random(1).randbytes(390_000)
    broken = {**sound, "n": number(0), "x": binary(body)}
    layouts.indexer().index([Record(table="tips", sequence_number="7", image=broken)])
    (record,) = records(layouts).waiting()
    assert record.omitted is not None
    assert record.omitted > 390_000
    assert record.key == record.image == {"p": text("Order-1"), "i": number(2_147_483_647)}
    assert records(layouts).retry("tips", 0).events == 1


def test_if_neither_head_nor_record_tells_of_an_event_the_retry_says_so(layouts: Layouts) -> None:
    layouts.append("Order-1", "a")
    (sound,) = layouts.tables.items("tips")
    broken = {**sound, "n": number(0), "x": binary(random.Random(1).randbytes(390_000))}
    layouts.indexer().index([Record(table="tips", sequence_number="7", image=broken)])
    layouts.tables.execute(Delete(table="tips", key={"p": text("Order-1"), "i": number(2_147_483_647)}))
    with pytest.raises(CorruptData, match="neither"):
        records(layouts).retry("tips", 0)


def test_where_the_head_tells_that_the_event_is_gone_that_is_indexed(layouts: Layouts) -> None:
    layouts.append("Order-1", "a")
    (sound,) = layouts.tables.items("tips")
    broken = {**sound, "n": number(0), "x": binary(random.Random(1).randbytes(390_000))}
    layouts.indexer().index([Record(table="tips", sequence_number="7", image=broken)])
    layouts.streams.prune("Order-1", 1)
    ingested = records(layouts).retry("tips", 0)
    assert (ingested.events, ingested.removals) == (0, 1)


def test_a_discarded_record_waits_no_longer_and_stays_on_record(layouts: Layouts) -> None:
    image = {**JOURNAL.keys.key(ALICE, 0), "aid": text(str(ALICE)), "seq_nr": number(0), "version": number(1)}
    broken = {**image, "head_version": number(1)}
    layouts.indexer().index(
        [Record(table="snapshot", sequence_number=str(k), image=broken) for k in range(3)]
    )
    records(layouts).discard("journal", 1)
    assert [record.index for record in records(layouts).waiting()] == [0, 2]
    assert [record.outcome for record in records(layouts).all()] == [None, "discarded", None]
    for again in (records(layouts).discard, records(layouts).retry):
        with pytest.raises(InvalidInput, match="no record 1 of journal is waiting"):
            again("journal", 1)


@pytest.mark.parametrize(("source", "index", "field"), [("tips", 0, "index"), ("tipz", 0, "source")])
def test_what_there_is_not_is_refused_by_name(layouts: Layouts, source: str, index: int, field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        records(layouts).discard(source, index)
    assert refusal.value.field == field


@pytest.mark.parametrize("everything", [False, True])
def test_a_retry_indexes_no_stream_that_the_feed_leaves_out(everything: bool) -> None:
    tables = memory_tables()
    options = {"tagged_everything": True} if everything else {"tagged_types": ("Placed",)}
    place = memory_deployment(tables, **options)
    place.tagged.append([Event(type="Placed", tags=("order:1",))])
    place.indexer.register()
    broken = [
        Record(table="streams", sequence_number=str(at), image={**image, "f": number(1)})
        for at, image in enumerate(tables.changes("streams"))
        if image["p"]["S"].startswith("$tag-")
    ]
    assert place.indexer.index(broken).set_aside == 2
    quarantine = PoisonRecords(indexer=place.indexer)
    for record in list(quarantine.waiting()):
        if record.key["p"] == text("$tag-order:1"):
            assert quarantine.retry(record.source, record.index).events == 1
        else:
            with pytest.raises(CorruptData, match=r"\$tag-\$"):
                quarantine.retry(record.source, record.index)
            quarantine.discard(record.source, record.index)
    assert [item.stream for item in place.feed.page(30_000).items] == ["$tag-order:1"]
