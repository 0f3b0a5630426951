"""The auditor trains dictionaries on what it scans: where there is enough, for one category at a time, once a week."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from epochal.care.auditor import CATEGORIES, ENOUGH, KEPT, Audit, Auditor, Sample
from epochal.care.checking import kind_of
from epochal.deployment import Deployment
from epochal.errors import Refused
from epochal.layout.pages.port import pages_source
from epochal.model.events import Event
from epochal.plan.ops import Op, Put, Reply, Scan
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import MemoryBucket, memory_settings, memory_streams, memory_tables

WEEK = 7 * 86_400 * 10**9


class Audited:
    """A deployment in memory whose auditor goes by a clock of ours."""

    def __init__(self) -> None:
        self.tables: MemoryTables = memory_tables()
        self.now = 1_700_000_000_000_000_000
        self.ops: list[Op] = []

    def execute(self, op: Op) -> Reply:
        self.ops.append(op)
        return self.tables.execute(op)

    def fill(self, category: str, streams: int) -> None:
        store = memory_streams(self.tables)
        for number in range(streams):
            data = {"order": number * 7919 % 9973, "currency": "EUR", "country": "Germany"}
            store.append(f"{category}-{number}", [Event(type="Ordered", data=json.dumps(data).encode())])

    def audit(self) -> Audit:
        driver = Driver(execute=self.execute, meter=Meter(), sleep=lambda _: None)
        opened = Deployment(settings=memory_settings(), driver=driver, bucket=MemoryBucket())
        opened.indexer.register()
        auditor = opened.auditor
        found = Auditor(
            mender=replace(auditor.mender, now=lambda: self.now), sources=auditor.sources, settle=0
        ).audit(60)
        assert found.troubles == []
        return found

    def trained(self) -> list[tuple[str, bool]]:
        return [(each.category, each.in_use) for each in self.audit().trained]


@pytest.fixture
def audited() -> Audited:
    return Audited()


def test_a_category_gets_its_dictionary_from_an_audit(audited: Audited) -> None:
    audited.fill("Order", ENOUGH)
    (trained,) = audited.audit().trained
    assert trained.in_use
    assert trained.after < 0.7 * trained.before
    audited.fill("Order", 1)
    assert trained.dictionary is not None
    assert trained.dictionary in str(
        [item["f"]["L"][-1]["B"].hex() for item in audited.tables.items("streams") if "f" in item]
    )


def test_few_streams_are_not_tried(audited: Audited) -> None:
    audited.fill("Order", ENOUGH - 1)
    assert audited.trained() == []
    assert not [item for item in audited.tables.items("streams") if item["p"]["S"].startswith("$")]


@pytest.mark.slow
def test_each_audit_trains_for_one_category_and_for_each_once_a_week(audited: Audited) -> None:
    audited.fill("Order", ENOUGH + 1)
    audited.fill("Return", ENOUGH)
    assert audited.trained() == [("Order", True)]
    assert audited.trained() == [("Return", True)]
    audited.now += WEEK - 1
    assert audited.trained() == []
    audited.now += 1
    assert audited.trained() == [("Order", False)], "it would be the same again"
    assert audited.trained() == [("Return", False)]


def test_an_audit_pays_for_no_scan_besides_its_own(audited: Audited) -> None:
    audited.fill("Order", ENOUGH)
    audited.audit()
    assert len([op for op in audited.ops if isinstance(op, Scan) and op.table == "streams"]) == 1


def test_the_note_of_when_it_was_trained_is_of_the_table_of_pages_and_tells_the_feed_nothing(
    audited: Audited,
) -> None:
    audited.fill("Order", ENOUGH)
    audited.audit()
    (note,) = (item for item in audited.tables.items("streams") if item["i"]["N"] == "-1")
    source = pages_source("streams")
    assert kind_of(note) == "streams"
    assert (source.appended(note), source.end(note), source.told(note), source.stored(note)) == (None,) * 4
    assert source.learn is not None
    source.learn(note)


def test_what_is_refused_is_told_and_the_audit_is_done_all_the_same(audited: Audited) -> None:
    audited.fill("Order", ENOUGH)

    def execute(op: Op) -> Reply:
        if isinstance(op, Put) and op.table == "streams":
            raise Refused("PutItem", "no permission")
        return audited.tables.execute(op)

    driver = Driver(execute=execute, meter=Meter(), sleep=lambda _: None)
    opened = Deployment(settings=memory_settings(), driver=driver, bucket=MemoryBucket())
    opened.indexer.register()
    found = replace(opened.auditor, settle=0).audit(60)
    assert found.trained == []
    assert found.checked == ENOUGH
    assert [trouble for trouble in found.troubles if "no dictionary for Order" in trouble]


def test_streams_of_tags_are_no_category(audited: Audited) -> None:
    audited.fill("Order", 1)
    (page,) = audited.tables.items("streams")
    for number in range(ENOUGH):
        audited.tables.execute(Put(table="streams", item={**page, "p": {"S": f"$tag-order:{number}-1"}}))
    sample = Sample(pages_source("streams"))
    sample.take(audited.tables.items("streams"))
    assert sample.met == {"Order": 1}


def test_what_is_held_of_a_large_table_is_bounded(audited: Audited) -> None:
    audited.fill("Order", KEPT + 10)
    for number in range(CATEGORIES):
        audited.fill(f"C{number}", 1)
    sample = Sample(pages_source("streams"))
    images = sorted(audited.tables.items("streams"), key=lambda item: item["p"]["S"], reverse=True)
    sample.take(images)
    assert (sample.met["Order"], len(sample.kept["Order"])) == (KEPT + 10, KEPT)
    assert len(sample.kept) == len(sample.met) == CATEGORIES
