"""The indexer's function with the events that Lambda sends for DynamoDB Streams, over tables in memory."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from epochal.dynamo import clients, interpreter
from epochal.errors import InvalidInput, Refused
from epochal.index.checkpoints import epoch_stream
from epochal.index.crowding import LONGEST, Crowding
from epochal.index.series import IndexerFailure, read_series, start_epoch
from epochal.layout.registry import partition_of
from epochal.lazy_dataclasses import replace
from epochal.model.events import Event
from epochal.plan.failures import RequestNotApplied
from epochal.plan.ops import Op, Put, Transact, Update
from epochal.settings import variable
from epochal.store.driver import Patience
from tests.contrib.equinox.feeds import TipFeeds
from tests.core.feed.events import event, kinesis_record, sent_change, stream_record
from tests.core.feed.feeds import Feeds, no_fault, streams_of
from tests.layouts.stores import ALICE, HEADS, Layouts

HANDLER = Path(__file__).parents[3] / "lambdas" / "indexer" / "handler.py"

Answer = dict[str, list[dict[str, str]]]
Handler = Callable[[dict[str, Any]], Answer]


def changes(feeds: Feeds) -> dict[str, Any]:
    """All that the source's stream carries."""
    return event(stream_record(f"{k:021d}", image) for k, image in enumerate(feeds.tables.changes("tips")))


def ten_of_which_partition_one_is_throttled(feeds: Feeds) -> list[str]:
    """Streams with an event each; their names."""
    streams = [f"Order-{k}" for k in range(10)]
    for stream in streams:
        feeds.append(stream, "a")

    def throttle(op: Op) -> None:
        if epoch_stream(1, 0) in streams_of([op]):
            raise RequestNotApplied("throttled")

    feeds.fault = throttle
    return streams


class Taking:
    """The topic's client."""

    def __init__(self) -> None:
        self.had: list[tuple[str, str]] = []
        self.out = False

    def publish_batch(self, **request: Any) -> dict[str, Any]:
        if self.out:
            raise OSError("the topic is out")
        assert request["TopicArn"] == "arn:notices"
        self.had += [(each["Id"], each["Message"]) for each in request["PublishBatchRequestEntries"]]
        return {}


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Taking:
    made = Taking()
    monkeypatch.setattr(clients, "service_client", lambda *_, **__: made)
    return made


@pytest.fixture
def feeds() -> Feeds:
    return TipFeeds(partitions=2)


class Context:
    """As much time as a test gives."""

    def __init__(self, seconds: float = 120.0) -> None:
        self.seconds = seconds

    def get_remaining_time_in_millis(self) -> int:
        return int(self.seconds * 1000)


@pytest.fixture
def started(feeds: Feeds, topic: Taking, monkeypatch: pytest.MonkeyPatch) -> Callable[[], ModuleType]:
    """Starts the function as a new process does: by importing its module."""
    monkeypatch.setattr(interpreter, "execute_through", lambda _: feeds.execute)
    monkeypatch.setattr(Patience, "wait", lambda *_: float("inf"))
    for name, value in {
        variable("tips_table"): "tips",
        variable("index_table"): "index",
        variable("tips_partitions"): "2",
        variable("topic"): "arn:notices",
        "AWS_LAMBDA_FUNCTION_NAME": "indexer",
    }.items():
        monkeypatch.setitem(os.environ, name, value)

    def import_handler() -> ModuleType:
        spec = importlib.util.spec_from_file_location("indexer_handler", HANDLER)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return import_handler


@pytest.fixture
def start(started: Callable[[], ModuleType]) -> Callable[[], Handler]:
    """Starts the function, and gives its handler all the time that an invocation may have."""

    def start_handler() -> Handler:
        module = started()
        return lambda event: module.handler(event, Context())

    return start_handler


def test_what_a_streams_event_carries_is_in_the_feed(feeds: Feeds, start: Callable[[], Handler]) -> None:
    for k in range(60):
        feeds.streams.append(f"Order-{k % 7}", [Event(type=f"T{k}", data=os.urandom(300))])
    assert start()(changes(feeds)) == {"batchItemFailures": []}
    found = sorted(feeds.feed(0) + feeds.feed(1), key=lambda item: int(item[2][1:]))
    assert found == [(f"Order-{k % 7}", k // 7, f"T{k}") for k in range(60)]


def test_reactions_are_told_of_a_batch_and_what_cannot_be_told_is_in_the_log(
    feeds: Feeds, topic: Taking, start: Callable[[], Handler], caplog: pytest.LogCaptureFixture
) -> None:
    feeds.append("Order-1", "a")
    handler, topic.out = start(), True
    assert handler(changes(feeds)) == {"batchItemFailures": [{"itemIdentifier": f"{0:021d}"}]}
    (logged,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert "could not be notified" in logged.getMessage()
    topic.out = False
    assert handler(changes(feeds)) == {"batchItemFailures": []}
    assert topic.had == [(str(partition_of("Order-1", 2)), "1")]


def test_deletions_and_everything_else_that_is_no_append_is_passed_over(
    feeds: Feeds, start: Callable[[], Handler]
) -> None:
    feeds.append("Order-1", "a", "b")
    feeds.streams.prune("Order-1", 1)
    feeds.streams.delete("Order-1")
    removed = stream_record("99", None, kind="REMOVE")
    answer = start()(event([*changes(feeds)["Records"], removed]))
    assert answer == {"batchItemFailures": []}
    assert [kind for _, _, kind in feeds.feed(partition_of("Order-1", 2))] == ["a", "b"]


def test_the_answer_names_the_records_of_a_partition_that_failed(
    feeds: Feeds, start: Callable[[], Handler], caplog: pytest.LogCaptureFixture
) -> None:
    handler = start()
    streams = ten_of_which_partition_one_is_throttled(feeds)
    answer = handler(changes(feeds))
    failing = [k for k, stream in enumerate(streams) if partition_of(stream, 2) == 1]
    assert answer == {"batchItemFailures": [{"itemIdentifier": f"{k:021d}"} for k in failing]}
    assert len(feeds.feed(0)) == 10 - len(failing)
    (logged,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert logged.name == "indexer"
    assert "throttled" in str(vars(logged)["error"])


def test_of_what_came_by_kinesis_it_names_the_places_there(
    feeds: Feeds, start: Callable[[], Handler]
) -> None:
    handler = start()
    streams = ten_of_which_partition_one_is_throttled(feeds)
    sent = [sent_change(image, 1_000 * k) for k, image in enumerate(feeds.tables.changes("tips"))]
    answer = handler(event(kinesis_record(k, each) for k, each in enumerate(reversed(sent))))
    failing = [k for k, stream in enumerate(reversed(streams)) if partition_of(stream, 2) == 1]
    named = [each["itemIdentifier"] for each in answer["batchItemFailures"]]
    assert sorted(named) == [f"{k:056d}" for k in failing]
    assert len(feeds.feed(0)) == 10 - len(failing)


def test_a_poison_record_is_not_named_in_the_answer(feeds: Feeds, start: Callable[[], Handler]) -> None:
    poison = {"p": {"S": "Order-1"}, "i": {"N": "2147483647"}, "a": {"N": "1"}}
    feeds.append("Order-2", "a")
    records = [
        stream_record("0", poison),
        *(stream_record("1", image) for image in feeds.tables.changes("tips")),
    ]
    assert start()(event(records)) == {"batchItemFailures": []}
    assert feeds.feed(partition_of("Order-2", 2)) == [("Order-2", 0, "a")]
    assert feeds.tip("$Poison-0") is not None


def test_each_batch_tells_how_much_was_indexed_healed_pruned_and_set_aside(
    feeds: Feeds, start: Callable[[], Handler], capsys: pytest.CaptureFixture[str]
) -> None:
    feeds.append("Order-1", *"abc")
    feeds.append("Order-1", "d")
    feeds.streams.prune("Order-1", 2)
    poison = {"p": {"S": "Order-1"}, "i": {"N": "2147483647"}, "a": {"N": "1"}}
    last = feeds.tables.changes("tips")[1]
    start()(event([stream_record("0", poison), stream_record("1", last)]))
    (told,) = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"_aws"' in line]
    figures = {name: told[f"Indexed.{name}"] for name in ("events", "healed", "pruned", "setAside")}
    assert figures == {"events": 2, "healed": 1, "pruned": 2, "setAside": 1}
    assert told["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Epochal"


def test_a_process_keeps_its_state_from_batch_to_batch(feeds: Feeds, start: Callable[[], Handler]) -> None:
    handler = start()
    feeds.append("Order-1", "a")
    handler(changes(feeds))
    feeds.append("Order-1", "b")
    before = len(feeds.ops)
    handler(changes(feeds))
    assert len(feeds.ops) - before == 1


@pytest.mark.parametrize("seconds", [4.0, 0.5])
def test_a_rest_leaves_half_of_the_time_that_an_invocation_has_left(
    feeds: Feeds, started: Callable[[], ModuleType], monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    module, slept = started(), list[float]()
    driver = replace(module.indexer.driver, sleep=slept.append)
    vars(module)["indexer"] = replace(module.indexer, driver=driver)
    monkeypatch.setattr(Crowding, "measure", lambda self, *_: setattr(self, "rest", LONGEST))
    feeds.append("Order-1", "a")

    assert module.handler(changes(feeds), Context(seconds)) == {"batchItemFailures": []}

    assert len(slept) == 1
    assert 0 < slept[0] <= seconds / 2


def test_a_rest_is_a_metric_in_milliseconds_which_a_batch_without_one_lacks(
    feeds: Feeds,
    started: Callable[[], ModuleType],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    module = started()
    driver = replace(module.indexer.driver, sleep=lambda _: None, luck=lambda: 0.5)
    vars(module)["indexer"] = replace(module.indexer, driver=driver)
    feeds.append("Order-1", "a")
    module.handler(changes(feeds), Context())
    monkeypatch.setattr(Crowding, "measure", lambda self, *_: setattr(self, "rest", 1.2))
    feeds.append("Order-1", "b")
    module.handler(changes(feeds), Context())

    without, told = (json.loads(line) for line in capsys.readouterr().out.splitlines() if '"_aws"' in line)
    assert "Indexer.rest" not in without
    assert told["Indexer.rest"] == [1_200.0]
    assert {"Name": "Indexer.rest", "Unit": "Milliseconds"} in told["_aws"]["CloudWatchMetrics"][0]["Metrics"]


def test_a_batch_of_each_tables_stream_goes_to_the_source_that_the_table_is_of(
    start: Callable[[], Handler], monkeypatch: pytest.MonkeyPatch
) -> None:
    layouts = Layouts()
    monkeypatch.setattr(interpreter, "execute_through", lambda _: layouts.execute)
    for name, value in {
        variable("tips_partitions"): "1",
        variable("journal_table"): "journal",
        variable("snapshot_table"): "snapshot",
        variable("journal_shards"): "4",
        variable("aggregate_types"): "user-account",
        variable("events_table"): "events",
        variable("tags_table"): "tags",
    }.items():
        monkeypatch.setitem(os.environ, name, value)
    handler = start()
    layouts.append("Order-1", "Placed")
    layouts.persist(ALICE, "Registered")
    layouts.persist_elsewhere(ALICE, "Renamed")
    layouts.tag("Enrolled", "course:1")
    for table in HEADS:
        images = enumerate(layouts.tables.changes(table))
        batch = event(stream_record(f"{k:021d}", image, table=table) for k, image in images)
        assert handler(batch) == {"batchItemFailures": []}
    assert {source: [item[2] for item in layouts.feed(source)] for source in ("tips", "journal", "dcb")} == {
        "tips": ["Placed"],
        "journal": ["Registered", "Renamed"],
        "dcb": ["Enrolled"],
    }


def test_a_process_that_was_given_another_number_of_partitions_does_not_start(
    start: Callable[[], Handler], monkeypatch: pytest.MonkeyPatch
) -> None:
    start()
    start()
    monkeypatch.setitem(os.environ, variable("tips_partitions"), "3")
    with pytest.raises(InvalidInput, match="must be 2, as recorded in the index"):
        start()


# A failure is put on record where the number of partitions is, so that commands can show it.


def on_record(feeds: Feeds) -> dict[str, IndexerFailure]:
    return feeds.driver.run(read_series("index")).failing


def without_an_image(feeds: Feeds) -> dict[str, Any]:
    """A batch of a stream that carries no new images: reading it raises."""
    batch = changes(feeds)
    del batch["Records"][0]["dynamodb"]["NewImage"]
    return batch


def test_what_the_indexer_raises_is_on_record_and_raised(feeds: Feeds, start: Callable[[], Handler]) -> None:
    feeds.append("Order-1", "a")
    handler = start()
    with pytest.raises(InvalidInput, match="StreamViewType"):
        handler(without_an_image(feeds))
    (failure,) = on_record(feeds).values()
    assert failure.cause == "InvalidInput: StreamViewType: must be NEW_IMAGE or NEW_AND_OLD_IMAGES"
    assert failure.since == failure.last


def test_of_an_error_of_another_library_the_record_has_its_kind_alone(
    feeds: Feeds, start: Callable[[], Handler]
) -> None:
    feeds.append("Order-1", "a")
    handler = start()

    def fail_once(_: Op) -> None:
        feeds.fault = no_fault
        raise ZeroDivisionError("of somebody's order")

    feeds.fault = fail_once
    with pytest.raises(ZeroDivisionError):
        handler(changes(feeds))
    assert {source: each.cause for source, each in on_record(feeds).items()} == {"tips": "ZeroDivisionError"}


@pytest.mark.parametrize("through", ["a table's stream", "Kinesis"])
def test_a_partition_that_cannot_be_written_is_on_record_until_its_batch_is_indexed(
    feeds: Feeds, start: Callable[[], Handler], through: str
) -> None:
    handler = start()
    streams = ten_of_which_partition_one_is_throttled(feeds)
    images = feeds.tables.changes("tips")
    sent = (
        [stream_record(f"{k:021d}", image) for k, image in enumerate(images)]
        if through == "a table's stream"
        else [kinesis_record(k, sent_change(image, 1_000 * k)) for k, image in enumerate(images)]
    )
    assert handler(event(sent))["batchItemFailures"]
    assert on_record(feeds)["tips"].cause.startswith("Unavailable: ")
    feeds.fault = no_fault
    others = [each for each, stream in zip(sent, streams, strict=True) if partition_of(stream, 2) == 0]
    assert handler(event(others)) == {"batchItemFailures": []}
    assert on_record(feeds)
    assert handler(event(sent)) == {"batchItemFailures": []}
    assert on_record(feeds) == {}


def test_a_failure_that_may_not_be_put_on_record_is_raised_so_that_lambda_shows_it(
    feeds: Feeds, start: Callable[[], Handler]
) -> None:
    feeds.append("Order-1", "a")
    handler = start()

    def refuse_writes(op: Op) -> None:
        if isinstance(op, Put | Update | Transact):
            raise Refused("UpdateItem", "not authorized")

    feeds.fault = refuse_writes
    with pytest.raises(Refused):
        handler(changes(feeds))
    feeds.fault = no_fault
    assert handler(changes(feeds)) == {"batchItemFailures": []}


def test_while_the_index_is_throttled_a_failure_that_cannot_be_put_on_record_is_no_error_of_the_function(
    feeds: Feeds, start: Callable[[], Handler]
) -> None:
    feeds.append("Order-1", "a")
    handler = start()

    def throttle(_: Op) -> None:
        raise RequestNotApplied("throttled")

    feeds.fault = throttle
    assert handler(changes(feeds))["batchItemFailures"]
    feeds.fault = no_fault
    assert on_record(feeds) == {}


def test_a_failure_on_record_stays_while_epochs_begin_and_processes_start(
    feeds: Feeds, start: Callable[[], Handler]
) -> None:
    feeds.append("Order-1", "a")
    with pytest.raises(InvalidInput):
        start()(without_an_image(feeds))
    before = on_record(feeds)
    feeds.driver.run(start_epoch("index", 0, 1, feeds.indexer().ids()))
    start()
    assert on_record(feeds) == before != {}
