"""`epochal doctor` finds what is wrong with tables, indexer and reactions, and says what to do."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from epochal import Delivery, reaction
from epochal.care import status
from epochal.care.table_creation import create_table
from epochal.cli import doctor
from epochal.cli.target import TABLES, OpenedStore
from epochal.dynamo.table_kinds import specs
from epochal.hosting import function as hosting
from epochal.named_objects import load_object
from epochal.plan.ops import Put
from tests.support.leases import Visibility
from tests.support.terminal import Terminal
from tests.surfaces.hosting.test_wakeups import Context, message


@dataclass
class Described:
    """DynamoDB as far as it describes tables."""

    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    meta: Any = field(default_factory=lambda: SimpleNamespace(region_name="eu-west-1", endpoint_url=""))
    refused: str = ""

    def create_table(self, *, TableName: str, **request: Any) -> dict[str, Any]:  # noqa: N803  boto3's
        self.tables[TableName] = {**request, "TableStatus": "ACTIVE"}
        return {"TableDescription": self.tables[TableName]}

    def describe_time_to_live(self, *, TableName: str) -> dict[str, Any]:  # noqa: ARG002, N803  boto3's
        return {"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED"}}

    def describe_table(self, *, TableName: str) -> dict[str, Any]:  # noqa: N803  boto3's
        if self.refused or TableName not in self.tables:
            code = self.refused or "ResourceNotFoundException"
            raise ClientError({"Error": {"Code": code, "Message": "no"}}, "DescribeTable")
        return {"Table": self.tables[TableName]}


@dataclass
class Shards:
    """Clients of DynamoDB Streams and CloudWatch: a stream with shards, and how long its indexers have rested.

    Attributes:
        open: number of shards that get changes; half as many have ended.
        rested: milliseconds of the rests in each of two minutes; None where no rest was ever measured.
        asked: services that were asked.
    """

    open: int = 4
    rested: float | None = None
    refused: str = ""
    asked: list[str] = field(default_factory=list)
    meta: Any = field(default_factory=lambda: SimpleNamespace(region_name="eu-west-1", endpoint_url=""))

    def describe_stream(self, *, StreamArn: str, ExclusiveStartShardId: str = "-1") -> dict[str, Any]:  # noqa: N803  boto3's
        assert ":table/streams/stream/" in StreamArn
        self.asked.append("streams")
        shards: list[dict[str, Any]] = [{"SequenceNumberRange": {}}] * self.open
        shards += [{"SequenceNumberRange": {"EndingSequenceNumber": "7"}}] * (self.open // 2)
        page = range(int(ExclusiveStartShardId) + 1, len(shards))[:100]
        last = {"LastEvaluatedShardId": str(page[-1])} if page[-1] + 1 < len(shards) else {}
        return {"StreamDescription": {"Shards": [shards[number] for number in page], **last}}

    def get_metric_data(self, **request: Any) -> dict[str, Any]:
        self.asked.append("metrics")
        if self.refused:
            raise ClientError({"Error": {"Code": self.refused, "Message": "no"}}, "GetMetricData")
        (query,) = request["MetricDataQueries"]
        assert query["MetricStat"]["Metric"] == {
            "Namespace": "Epochal",
            "MetricName": "Indexer.rest",
            "Dimensions": [{"Name": "service", "Value": "index-indexer"}],
        }
        values = [] if self.rested is None else [self.rested] * 2
        moments = [request["EndTime"] - timedelta(minutes=minute) for minute, _ in enumerate(values)]
        return {"MetricDataResults": [{"Id": query["Id"], "Timestamps": moments, "Values": values}]}


@dataclass
class Visited(Terminal):
    """A terminal whose tables are described as they were created."""

    described: Described = field(default_factory=Described)
    shards: Shards = field(default_factory=Shards)

    @property
    def store(self) -> OpenedStore:
        store = super().store
        clients = {
            "dynamodb": self.described,
            "dynamodbstreams": self.shards,
            "cloudwatch": self.shards,
        }
        return replace(store, client=lambda service: clients.get(service) or store.client(service))

    def doctor(self) -> tuple[int, str]:
        result = self.run("doctor")
        return result.exit_code, result.output + str(result.exception or "")


@pytest.fixture
def terminal() -> Visited:
    visited = Visited()
    for setting, kind in TABLES.values():
        if name := visited.deployment.settings.value(setting):
            create_table(visited.described, name, specs()[kind])
    visited.lines("append", "Order-1", "Placed")
    visited.index()
    visited.mappings.bring("streams")
    return visited


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Streams on which the reactions `board:keep` and `board:block` fail."""
    streams = list[str]()

    def handle(delivery: Delivery) -> None:
        if delivery.stream in streams:
            raise ValueError("no such gate")

    board = ModuleType("board")
    options: dict[str, Any] = {"categories": ["Order"], "attempts": 1}
    vars(board)["keep"] = reaction(name="board-1", **options)(handle)
    vars(board)["block"] = reaction(name="block-1", on_failure="block", **options)(handle)
    monkeypatch.setitem(sys.modules, "board", board)
    return streams


def test_nothing_is_wrong_with_a_store_that_works(terminal: Visited, failing: list[str]) -> None:
    terminal.run("react", "board:keep", "--until-done")
    status, said = terminal.doctor()
    assert (status, "WRONG" in said) == (0, False), said
    assert "ok    table streams: ACTIVE" in said
    assert "ok    reaction board-1: 0 events behind, nothing parked" in said
    (view,) = terminal.documents("doctor")
    assert view["wrong"] == 0
    assert {check["ok"] for check in view["checks"]} == {True}


def test_tables_that_are_missing_or_have_no_stream_are_found(terminal: Visited) -> None:
    del terminal.described.tables["index"]
    del terminal.described.tables["streams"]["StreamSpecification"]
    terminal.described.tables["tips"]["TableStatus"] = "CREATING"
    status, said = terminal.doctor()
    assert status == 1
    assert "WRONG table index: " in said
    assert "eu-west-1" in said
    assert "WRONG table streams: has the wrong streams" in said
    assert "WRONG table tips: CREATING" in said
    assert "3 of 9 checks found a problem" in said


def test_what_the_credentials_do_not_allow_is_a_finding(terminal: Visited) -> None:
    terminal.described.refused = "AccessDeniedException"
    terminal.mappings.refused = "AccessDeniedException"
    status, said = terminal.doctor()
    assert status == 1
    assert "See Refused in docs/reference/errors.md." in said


def test_an_indexer_without_changes_is_found(terminal: Visited) -> None:
    terminal.mappings.bring("streams", state="Disabled")
    status, said = terminal.doctor()
    assert status == 1
    assert "WRONG indexer of pages: " in said


def test_of_a_table_with_few_shards_nothing_is_said_and_no_metric_is_read(terminal: Visited) -> None:
    terminal.shards.open, terminal.shards.rested = 20, 1_000.0
    assert "shards write" not in terminal.doctor()[1]
    assert terminal.shards.asked == ["streams"]


def test_many_shards_whose_indexers_do_not_rest_are_as_they_should_be(terminal: Visited) -> None:
    terminal.shards.open = 120
    status, said = terminal.doctor()
    line = "120 shards write to each partition of the index, and no indexer has paused in the last hour"
    assert f"ok    indexer of pages: {line}" in said
    assert status == 0
    assert terminal.shards.asked == ["streams", "streams", "metrics"]


@pytest.mark.parametrize(
    ("window", "advice"),
    [
        (0, "Set `feed_window_seconds` to 11, a twentieth of the number of shards, or send the changes"),
        (10, "Set `feed_window_seconds` to 11, a twentieth of the number of shards, or send the changes"),
        (11, "Send the changes through Kinesis: docs/guide/index-care.md#many-shards."),
    ],
)
def test_indexers_that_rest_are_found_with_the_window_that_their_shards_need(
    terminal: Visited, window: int, advice: str
) -> None:
    terminal.shards.open, terminal.shards.rested = 201, 617_000.0
    terminal.mappings.bring("streams", window=window)
    status, said = terminal.doctor()
    assert status == 1
    assert "WRONG indexer of pages: 201 shards write to each partition of the index too often" in said
    assert "have paused for 1,234 s in the last hour, which Lambda charges for" in said
    assert f"      {advice}" in said


def test_whoever_may_not_read_the_metric_of_many_shards_is_told(terminal: Visited) -> None:
    terminal.shards.open, terminal.shards.refused = 200, "AccessDenied"
    status, said = terminal.doctor()
    assert status == 1
    assert "WRONG pauses of the indexer: GetMetricData was denied: no" in said


def test_changes_that_come_through_kinesis_are_of_no_tables_shards(terminal: Visited) -> None:
    terminal.mappings.mappings.clear()
    terminal.mappings.bring(arn="arn:aws:kinesis:eu-west-1:123456789012:stream/changes")
    terminal.shards.open = 200
    assert terminal.doctor()[0] == 0
    assert terminal.shards.asked == []


def test_reactions_that_parked_pause_or_are_blocked_are_found(terminal: Visited, failing: list[str]) -> None:
    failing.append("Order-1")
    terminal.run("react", "board:keep", "--until-done")
    terminal.run("react", "board:block", "--until-done")
    status, said = terminal.doctor()
    assert status == 1
    assert "WRONG reaction board-1: 1 stream parked" in said
    assert "WRONG reaction block-1: blocked by Order-1 at 0" in said
    terminal.lines("groups", "pause", "board-1")
    assert "WRONG reaction board-1: paused since" in terminal.doctor()[1]


def test_records_that_were_set_aside_are_found(terminal: Visited) -> None:
    terminal.layouts = ("tips", "pages")
    broken = {"p": {"S": "Broken-1"}, "i": {"N": "2147483647"}, "n": {"N": "1"}}
    terminal.tables.execute(Put(table="tips", item=broken))
    terminal.index()
    assert "WRONG indexer of tips: 1 record set aside" in terminal.doctor()[1]


def test_a_reaction_that_is_late_is_found(
    terminal: Visited, failing: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal.run("react", "board:keep", "--until-done")
    terminal.lines("append", "Order-2", "Placed")
    terminal.index()
    assert "ok    reaction board-1: 1 event behind" in terminal.doctor()[1]
    monkeypatch.setattr(doctor, "LATE", -1.0)
    assert "WRONG reaction board-1: 1 event behind, the oldest for" in terminal.doctor()[1]


def test_reactions_that_were_not_looked_for_are_a_finding(
    terminal: Visited, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "REQUESTS", 0)
    assert (
        "WRONG reactions: the index is large, so only some of its groups were looked for"
        in terminal.doctor()[1]
    )


def test_a_reaction_that_cannot_be_loaded_is_found_with_what_to_do(
    terminal: Visited, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosting, "HERE", SimpleNamespace(deployment=lambda _settings: terminal.deployment))
    monkeypatch.setattr(hosting, "light_sqs_client", Visibility)
    handler = hosting.loaded(
        lambda: load_object("a_module_that_nobody_has:board"), {"EPOCHAL_REACTION": "new"}
    )
    (tail, *_) = terminal.deployment.feed.partitions()
    with pytest.raises(ModuleNotFoundError):
        handler({"Records": [message(tail.partition, int(tail.tail))]}, Context())  # type: ignore[arg-type]
    status, said = terminal.doctor()
    assert status == 1
    assert "WRONG reaction new: blocked since" in said
    assert "No module named 'a_module_that_nobody_has'" in said
    assert "Add the missing package, module or reaction name to the function, and deploy it again" in said
    assert (
        "Add the missing package, module or reaction name to the function, and deploy it again"
        in "\n".join(terminal.lines("groups", "show", "new"))
    )
