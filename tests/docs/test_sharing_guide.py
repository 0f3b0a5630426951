"""docs/guide/sharing-with-equinox.md: its code opens a table that is shared, and its table of differences is true."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from epochal import Event
from epochal.care.table_creation import create_table
from epochal.cdk.stages import RULES
from epochal.cli.main import epochal
from epochal.contrib.equinox import open_tips
from epochal.contrib.equinox.port import TIPS
from epochal.errors import InvalidInput
from epochal.store.streams import Streams

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "sharing-with-equinox.md"
TEXT = GUIDE.read_text()


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Streams]:
    """The store that the guide opens."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with mock_aws():
        create_table(boto3.client("dynamodb"), "orders", TIPS)
        names: dict[str, Any] = {"__name__": __name__}
        (block,) = re.finditer(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
        first = TEXT.count("\n", 0, block.start(1))
        exec(compile("\n" * first + block[1], str(GUIDE), "exec", dont_inherit=True), names)  # noqa: S102
        yield names["streams"]


def calves(stream: str) -> int:
    found = boto3.client("dynamodb").query(
        TableName="orders",
        KeyConditionExpression="p = :p",
        ExpressionAttributeValues={":p": {"S": stream}},
    )
    return int(found["Count"]) - 1


def filled(streams: Streams, stream: str) -> list[int]:
    """Calves of a stream after each of its events, of which three are below 32 KiB and four are not."""
    found: list[int] = []
    for _ in range(4):
        streams.append(stream, [Event(type="Added", data=os.urandom(10_000))])
        found.append(calves(stream))
    return found


@pytest.mark.slow
def test_events_leave_the_tip_of_a_shared_table_above_32_kib_only(shared: Streams) -> None:
    assert filled(shared, "Shared-1") == [0, 0, 0, 1]
    assert filled(open_tips("orders"), "Ours-1")[2] > 0, "by default they leave when that is cheaper"


@pytest.mark.slow
def test_a_stream_of_a_shared_table_is_deleted_with_leave_open_alone(shared: Streams) -> None:
    shared.append("Order-1", [Event(type="Placed")])
    with pytest.raises(InvalidInput, match="leave_open"):
        shared.delete("Order-1")
    shared.delete("Order-1", leave_open=True)
    assert shared.append("Order-1", [Event(type="Placed")]).version == 2


def test_limits_of_ones_own_are_taken_and_two_steps_are_not(shared: Streams) -> None:
    (written,) = re.findall(r"`(calving=Fixed\([^)]*\))`", TEXT)
    assert written == "calving=Fixed(max_bytes=…, max_events=…)"
    (module,) = re.findall(r"`Fixed` and `ByCost` are in `([a-z._]+)`", TEXT)
    fixed = import_module(module).Fixed
    open_tips("orders", equinox=True, calving=fixed(max_bytes=1_000, max_events=10))
    with pytest.raises(InvalidInput, match="calving"):
        open_tips("orders", equinox=True, calving=fixed(mode="two-step"))


def test_the_setting_and_the_option_that_it_names_are_there() -> None:
    assert '`"equinox": true`' in TEXT
    assert "equinox" in RULES
    assert any("--equinox" in parameter.opts for parameter in epochal.params)
