"""docs/guide/failover.md: its commands are those there are, and tables that were replicated at different paces are
mended by them. Replication itself, and recovery, are played: what a table had been sent is what it has.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from botocore.session import Session
from botocore.validate import ParamValidator

from epochal import Appended, Delivery, Event, StreamAppend, reaction
from epochal.cdk.stages import RULES
from epochal.cli import main as command_line
from epochal.cli.main import epochal
from epochal.cli.target import OpenedStore
from epochal.contrib.event_store_adapter import AggregateEvent, aggregate_id
from epochal.deployment import Deployment
from epochal.errors import CorruptData
from epochal.layout.tables import INDEX, READ_MODELS, store_tables
from epochal.plan.ops import Put
from epochal.plan.values import Item
from epochal.reactions.definition import Reaction
from epochal.testing.feeds import MemoryStore
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import MemoryBucket, memory_settings
from tests.docs.console import examples
from tests.docs.shell import commands, exported, request_of

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "failover.md"
TEXT = GUIDE.read_text()
KINDS = [spec.kind for spec in (*store_tables(), READ_MODELS)]
ORDER = aggregate_id("order", "1")
Sent = Mapping[str, Sequence[Item]]


def sent(feed: MemoryStore) -> Sent:
    """What tables have been sent by now."""
    return {kind: list(feed.tables.items(kind)) for kind in KINDS}


def replicated(**tables: Sequence[Item]) -> MemoryStore:
    """The second region's tables, each as far as it had been sent."""
    found = MemoryTables({spec.kind: spec for spec in (*store_tables(), READ_MODELS)})
    for kind, items in tables.items():
        for item in items:
            found.execute(Put(table=kind.replace("_", "-"), item=item))
    return MemoryStore(tables=found)


def happen(feed: MemoryStore, number: int) -> None:
    """Something in every layout."""
    feed.tips.append("Cart-1", [Event(type=f"Cart{number}")])
    feed.aggregates.append(ORDER, [AggregateEvent(type=f"Order{number}", data=b"{}")], snapshot=b"{}")
    feed.dcb.append([Event(type=f"Room{number}", data=b"1", tags=("room:1",))])


def told_to(told: list[str]) -> Reaction:
    @reaction(name="board", categories=["Cart", "order", "room"], start="beginning")
    def board(delivery: Delivery) -> None:
        told.extend(event.type for event in delivery.events)

    return board


def printed(feed: MemoryStore, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[str, int]:
    """What a command prints on these tables, and how it ends."""
    driver = feed.tips.driver
    store = OpenedStore.of(
        Deployment(settings=memory_settings(), driver=driver, bucket=MemoryBucket()), list, str
    )
    monkeypatch.setattr(command_line, "open_store", lambda _: store)
    shown = io.StringIO()
    try:
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
            command_line.main(list(arguments))
    except SystemExit as ended:
        return shown.getvalue(), int(ended.code or 0)
    return shown.getvalue(), 0


def indexed(feed: MemoryStore) -> list[str]:
    """Types of the events that the feed has, sorted."""
    return sorted(
        item.event.type
        for tail in feed.feed.partitions()
        for page in feed.feed.read(tail.partition, data=True)
        for item in page.items
        if item.event
    )


def test_what_was_sent_is_there_after_the_guides_commands_and_groups_go_on_where_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = MemoryStore()
    happen(first, 1)
    first.react(told_to([]))
    a_minute_before = sent(first)
    happen(first, 2)
    first.react(told_to([]))
    some = sent(first)
    happen(first, 3)  # of this only the tables of tagged events are sent
    more = sent(first)
    second = replicated(
        **{
            kind.replace("-", "_"): {"index": a_minute_before, "read-models": a_minute_before}.get(
                kind, more if kind in ("events", "tags") else some
            )[kind]
            for kind in KINDS
        }
    )

    for example in examples(GUIDE):
        now = ("--settle", "0") if example.arguments[0] == "index" else ()
        shown, status = printed(second, monkeypatch, *example.arguments, *now)
        assert (example.printed(shown), status) == (True, 0), shown

    kept = ["Cart1", "Cart2", "Order1", "Order2", "Room1", "Room2", "Room3"]
    assert indexed(second) == kept
    told: list[str] = []
    second.react(told_to(told))
    assert {kind: [each for each in told if each.startswith(kind)] for kind in ("Cart", "Order", "Room")} == {
        "Cart": ["Cart2"],
        "Order": ["Order2"],
        "Room": ["Room2", "Room3"],
    }
    happen(second, 4)
    second.react(told_to(told))
    assert [each for each in told if each.startswith("Cart")] == ["Cart2", "Cart4"]
    first.index()
    assert "Cart3" in indexed(first), "what was lost is in the first region still"


def test_an_index_that_was_sent_earlier_than_events_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    first = MemoryStore()
    happen(first, 1)
    stores = sent(first)
    happen(first, 2)
    first.index()
    second = replicated(
        **{**{kind.replace("-", "_"): stores[kind] for kind in KINDS}, "index": sent(first)["index"]}
    )
    shown, status = printed(second, monkeypatch, "index", "verify", "--settle", "0")
    assert status == 1
    assert "Cart-1" in shown


def test_a_tip_that_was_sent_earlier_than_its_calf_is_told_by_reads() -> None:
    first = MemoryStore()
    happen(first, 1)
    first.index()
    before = sent(first)
    for _ in range(4):
        first.tips.append("Long-1", [Event(type="Long", data=os.urandom(100_000))])
    after = sent(first)
    torn = [item for item in after["tips"] if item["i"] != {"N": "2"}]  # the calf below the Tip
    assert len(torn) == len(after["tips"]) - 1
    second = replicated(tips=torn, index=before["index"])

    with pytest.raises(CorruptData):
        list(second.tips.read("Long-1"))


@pytest.mark.parametrize("tagged", [False, True])
def test_a_record_of_a_key_that_was_sent_earlier_than_its_append_is_told_by_a_repeat(tagged: bool) -> None:
    def again(feed: MemoryStore) -> Appended:
        if tagged:
            return feed.tagged.append([Event(type="Paid", tags=("cart:1",))], idempotency_key="k")
        both = [StreamAppend(stream=name, events=[Event(type="Paid")]) for name in ("Cart-1", "Cart-2")]
        return feed.streams.append_all(both, idempotency_key="k")

    first = MemoryStore()
    again(first)
    records = [item for item in sent(first)["streams"] if item["p"]["S"].startswith(("$event", "$Idemp"))]
    second = replicated(streams=records)
    with pytest.raises(CorruptData):
        again(second)
    assert list(second.streams.read("Cart-1")) == []


def test_every_table_is_restored_from_its_replica_and_the_index_of_an_earlier_moment() -> None:
    found: dict[str, dict[str, Any]] = {}
    for command in commands(GUIDE):
        if command[:3] == ["aws", "dynamodb", "restore-table-to-point-in-time"]:
            parameters = in_region(command, "eu-central-1")
            found[str(parameters["SourceTableName"])] = parameters
    assert found.keys() == {f"epochal-prod-{kind}" for kind in KINDS}
    for name, parameters in found.items():
        assert parameters["TargetTableName"] == f"{name}-2"
    moments = {name: each["RestoreDateTime"] for name, each in found.items()}
    earlier = {f"epochal-prod-{kind}" for kind in (INDEX.kind, READ_MODELS.kind)}
    assert max(moments[name] for name in earlier) < min(moments[name] for name in moments.keys() - earlier)
    read = {parameter.envvar for parameter in epochal.params}
    named = {name: value for name, value in exported(GUIDE).items() if name.startswith("EPOCHAL")}
    assert named.keys() <= read
    assert set(named.values()) == {f"{name}-2" for name in found if "read-models" not in name}


def test_replicas_the_other_way_around_and_the_bucket_are_asked_for_as_the_services_want_it() -> None:
    back = [in_region(each, "eu-central-1") for each in commands(GUIDE) if each[2:3] == ["update-table"]]
    assert [each["TableName"] for each in back] == [
        f"epochal-prod-{kind}-2" for kind in sorted(KINDS, key=order)
    ]
    assert all(each["ReplicaUpdates"] == [{"Create": {"RegionName": "eu-west-1"}}] for each in back)
    first, *_, last = re.findall(r"^```json\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    for name, value in json.loads("{" + first + "}")["prod"].items():
        assert RULES[name](value) == value
    operation = Session().get_service_model("s3").operation_model("PutBucketReplication")
    asked = {
        "Bucket": "epochal-prod-bodies-123456789012-eu-west-1",
        "ReplicationConfiguration": json.loads(last),
    }
    assert operation.input_shape is not None
    report = ParamValidator().validate(asked, operation.input_shape)
    assert not report.has_errors(), report.generate_report()
    for command in commands(GUIDE):
        if command[:2] == ["aws", "s3api"] and command[2] != "put-bucket-replication":
            in_region(["aws", "s3", *command[2:]], "eu-central-1")


def order(kind: str) -> int:
    """Where the guide has a table in its loops."""
    return TEXT.rpartition("for table in ")[2].split(";")[0].split().index(kind)


def in_region(command: list[str], region: str) -> dict[str, Any]:
    """The parameters of a request that is made in `region`."""
    at = command.index("--region")
    assert command[at + 1] == region
    return request_of(command[:at] + command[at + 2 :]).parameters
