"""docs/guide/backup.md: its commands are those there are, and leave out nothing that must be kept. That they do what it
says is tests/deploy/test_restore.py's to show.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from epochal.cdk.stages import RULES
from epochal.cli.main import epochal
from epochal.layout.tables import INDEX, store_tables
from tests.docs.console import examples
from tests.docs.shell import commands, exported, request_of

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "backup.md"
TEXT = GUIDE.read_text("utf-8")
KEPT = {spec.kind: spec for spec in store_tables() if spec is not INDEX}


def asked() -> dict[str, list[dict[str, object]]]:
    """The parameters of every request to DynamoDB, by operation."""
    found: dict[str, list[dict[str, object]]] = {}
    for command in commands(GUIDE):
        if command[:2] == ["aws", "dynamodb"]:
            request = request_of(command)
            found.setdefault(request.operation, []).append(request.parameters)
    return found


def test_every_table_but_the_index_is_exported_restored_and_made_restorable_again() -> None:
    requests = asked()
    exports = [str(each["TableArn"]).rpartition("/")[2] for each in requests["export_table_to_point_in_time"]]
    assert exports == [f"epochal-prod-{kind}" for kind in KEPT]
    restored = requests["restore_table_to_point_in_time"]
    assert [(each["SourceTableName"], each["TargetTableName"]) for each in restored] == [
        (f"epochal-prod-{kind}", f"epochal-prod-{kind}-restored") for kind in KEPT
    ]
    moments = {str(each[name]) for each, name in ((restored[0], "RestoreDateTime"),)}
    assert moments == {str(each["ExportTime"]) for each in requests["export_table_to_point_in_time"]}
    assert len(requests["update_continuous_backups"]) == len(KEPT)


def test_streams_and_expiry_are_turned_on_where_the_tables_have_them() -> None:
    requests = asked()
    assert [each["TableName"] for each in requests["update_table"]] == [
        f"epochal-prod-{kind}-restored" for kind, spec in KEPT.items() if spec.stream
    ]
    assert [each["TableName"] for each in requests["update_time_to_live"]] == [
        f"epochal-prod-{kind}-restored" for kind, spec in KEPT.items() if spec.ttl
    ]
    view = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    assert all(each["StreamSpecification"] == view for each in requests["update_table"])


def test_the_table_of_the_index_has_the_keys_that_it_must_have() -> None:
    (request,) = asked()["create_table"]
    assert INDEX.sort is not None
    assert request["KeySchema"] == [
        {"AttributeName": INDEX.partition.name, "KeyType": "HASH"},
        {"AttributeName": INDEX.sort.name, "KeyType": "RANGE"},
    ]
    assert request["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}


def test_the_settings_named_are_settings_of_a_stage_that_obey_their_rules() -> None:
    (found,) = re.findall(r'^"prod": (\{.*?^\})$', TEXT, re.MULTILINE | re.DOTALL)
    for name, value in json.loads(found).items():
        assert RULES[name](value) == value


def test_the_names_exported_are_those_that_the_commands_read() -> None:
    read = {parameter.envvar for parameter in epochal.params}
    assert set(exported(GUIDE)) <= read
    assert {f"epochal-prod-{kind}-restored" for kind in (*KEPT, "index")} < set(exported(GUIDE).values())


def test_every_option_of_its_commands_is_one_that_they_have() -> None:
    index = epochal.commands["index"]
    shells = [each for each in commands(GUIDE) if each[0] == "epochal"]
    used = Counter(
        words[1] for words in [*shells, *(["epochal", *each.arguments] for each in examples(GUIDE))]
    )
    assert used == {"index": 4}
    for words in [each[1:] for each in shells] + [each.arguments for each in examples(GUIDE)]:
        command = index.commands[words[1]]  # type: ignore[attr-defined]
        with command.make_context(words[1], words[2:]):
            pass


def test_an_option_that_a_service_does_not_have_is_an_error() -> None:
    with pytest.raises(AssertionError, match="no option --table"):
        request_of(["aws", "dynamodb", "describe-table", "--table", "x"])
    with pytest.raises(AssertionError, match="TargetTableName"):
        request_of(["aws", "dynamodb", "restore-table-to-point-in-time", "--source-table-name", "tips"])
