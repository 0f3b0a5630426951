"""The auditor's function, as its schedule invokes it, over tables in memory."""

from __future__ import annotations

import importlib.util
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from epochal.dynamo import clients, interpreter
from epochal.index.checkpoints import tip_key
from epochal.plan.ops import Put
from epochal.settings import variable
from tests.surfaces.care.damage import Damaged
from tests.surfaces.hosting.test_mappings import Lambda

HANDLER = Path(__file__).parents[3] / "lambdas" / "auditor" / "handler.py"


@dataclass(frozen=True, slots=True)
class Context:
    """What of Lambda's context the function needs."""

    function_name: str = "auditor"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


class Sns:
    """A topic that takes all."""

    def __init__(self) -> None:
        self.told: set[str] = set()

    def publish_batch(self, *, TopicArn: str, PublishBatchRequestEntries: list[Any]) -> dict[str, Any]:  # noqa: N803  boto3's
        assert TopicArn == "topic"
        self.told |= {
            each["MessageAttributes"]["Partition"]["StringValue"] for each in PublishBatchRequestEntries
        }
        return {"Successful": PublishBatchRequestEntries}


def invoke(world: Damaged, sns: Sns, monkeypatch: pytest.MonkeyPatch) -> None:
    """One tick, in a new process."""
    monkeypatch.setattr(interpreter, "execute_through", lambda _: world.layouts.execute)
    others: dict[str, Any] = {"lambda": Lambda(one="Enabled", two="Disabled"), "sns": sns}
    monkeypatch.setattr(clients, "service_client", lambda service, **_: others[service])
    for name, value in {
        variable("tips_table"): "tips",
        variable("journal_table"): "journal",
        variable("snapshot_table"): "snapshot",
        variable("journal_shards"): "4",
        variable("aggregate_types"): "user-account",
        variable("events_table"): "events",
        variable("tags_table"): "tags",
        variable("index_table"): "index",
        variable("mappings"): "one,two",
        variable("topic"): "topic",
        "AWS_LAMBDA_FUNCTION_NAME": "auditor",
    }.items():
        monkeypatch.setitem(os.environ, name, value)
    spec = importlib.util.spec_from_file_location("auditor_handler", HANDLER)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.auditor = replace(module.auditor, settle=0)
    module.handler({"source": "aws.scheduler"}, Context())


def metrics_of(printed: str) -> dict[str, float]:
    """What was printed in CloudWatch's embedded metric format."""
    found: dict[str, float] = {}
    for line in printed.splitlines():
        fields: dict[str, Any] = json.loads(line)
        for each in fields.get("_aws", {}).get("CloudWatchMetrics", []):
            found |= {metric["Name"]: fields[metric["Name"]] for metric in each["Metrics"]}
    return found


def test_a_tick_heals_the_index_and_says_what_it_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = Damaged()
    world.fill()
    world.layouts.append("Cart-1", "late", "later")
    world.tables.execute(Put(table="tips", item=dict(tip_key("Broken-1"))))
    invoke(world, sns := Sns(), monkeypatch)
    printed = capsys.readouterr().out
    assert metrics_of(printed) == {
        "Audit.disabled": 1,
        "Audit.checked": 14,
        "Audit.missing": 1,
        "Audit.healed": 2,
        "Audit.troubles": 1,
    }
    assert "the head {'p': {'S': 'Broken-1'}" in printed
    assert ("Cart-1", 7, "later") in world.layouts.feed("tips")
    assert len(sns.told) == 1, "reactions hear of the partition that was mended"
