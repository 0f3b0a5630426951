"""What functions are told by their deployment, read back, or refused with the variable's name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from epochal.declaration import Setting
from epochal.errors import InvalidInput
from epochal.layout.registry import declared
from epochal.layout.tables import every_table
from epochal.settings import DECLARED, FOUND_BY, Settings, variable

TOLD = Settings.of(
    tips_table="t",
    index_table="i",
    bucket="b",
    aggregate_types=("order", "user-account"),
    write_shards=4,
    type_heads=True,
    consistent_reads=False,
    retries=0,
    service="acme",
)
"""A value of each kind."""

GUIDE = (Path(__file__).parents[2] / "docs" / "guide" / "cli.md").read_text()


def test_what_a_function_is_told_it_reads_back() -> None:
    told = Settings.from_environment(TOLD.environment("replay"))
    assert told == replace(TOLD, index_table="")


def test_what_a_stack_tells_is_read_back() -> None:
    told = Settings.from_outputs(TOLD.outputs())
    assert told.having(consistent_reads=False) == replace(TOLD, retries=None)
    assert told.value("consistent_reads")


def test_nothing_is_told_of_what_is_not_said() -> None:
    told = Settings().environment("append")
    assert variable("archive_table") not in told
    assert variable("retries") not in told
    assert "" not in Settings().outputs().values()


def test_settings_name_the_tables_that_there_are() -> None:
    kinds = {spec.kind for spec in every_table()}
    assert {each.table for each in declared().values() if each.table} == kinds


def test_settings_that_are_given_later_leave_the_others_as_they_were() -> None:
    """Of parts of the feed, too: with another number of partitions streams would go on elsewhere."""
    chosen = Settings.of(tips_partitions=2, tips_table="t").having(dcb_partitions=3, index_table="i")
    assert chosen == Settings.of(tips_partitions=2, dcb_partitions=3, tips_table="t", index_table="i")


def test_a_stack_is_known_by_outputs_that_it_has() -> None:
    assert set(FOUND_BY) <= {each.output for each in DECLARED.values()}


@pytest.mark.parametrize(
    "setting", [each for each in declared().values() if each.option], ids=lambda each: each.name
)
def test_the_guide_to_the_command_line_has_every_option_whose_variable_follows_its_rule(
    setting: Setting,
) -> None:
    named = [line for line in GUIDE.splitlines() if line.startswith("- `--") and f"`{setting.flag}`" in line]
    assert len(named) == 1, f"docs/guide/cli.md: {setting.flag}"
    assert setting.variable == "EPOCHAL_" + setting.flag.removeprefix("--").upper().replace("-", "_")


def test_a_function_that_is_told_nothing_has_the_defaults() -> None:
    assert Settings.from_environment({}) == Settings()


@pytest.mark.parametrize(
    "name", ["BUCKET", "SERVICE", "RETRIES", "TIPS_TABLE", "PARTITIONS", "Epochal_Bucket", "epochal_retries"]
)
def test_a_variable_that_is_called_like_a_setting_and_is_not_ours_is_left_alone(name: str) -> None:
    """A reaction's function has variables of its handler's, too."""
    assert Settings.from_environment({name: "mine"}) == Settings()


def test_types_are_separated_by_commas() -> None:
    read = Settings.from_environment({variable("aggregate_types"): "order,user-account"})
    assert read.value("aggregate_types") == ("order", "user-account")
    assert Settings.from_environment({variable("aggregate_types"): ""}).value("aggregate_types") == ()


@pytest.mark.parametrize("text", [",", "order,", "order,,account", "order, account", " "])
def test_types_that_are_empty_or_have_spaces_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Settings.from_environment({variable("aggregate_types"): text})
    assert refused.value.field == variable("aggregate_types")


@pytest.mark.parametrize(
    "name",
    [
        variable("tips_partitions"),
        variable("journal_shards"),
        variable("journal_partitions"),
        variable("dcb_partitions"),
    ],
)
@pytest.mark.parametrize("text", ["", "0", "-1", "10001", "1.0", "two", "²"])
def test_a_number_out_of_bounds_is_refused(name: str, text: str) -> None:
    with pytest.raises(InvalidInput, match="whole number from 1 to 10,000") as refused:
        Settings.from_environment({name: text})
    assert refused.value.field == name


@pytest.mark.parametrize("text", ["0", "1001", "-1"])
def test_write_shards_out_of_bounds_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="whole number from 1 to 1,000") as refused:
        Settings.from_environment({variable("write_shards"): text})
    assert refused.value.field == variable("write_shards")


@pytest.mark.parametrize("text", ["True", "1", "", "yes"])
def test_a_flag_is_true_or_false_and_nothing_else(text: str) -> None:
    assert Settings.from_environment({variable("type_heads"): "true"}).value("type_heads")
    assert not Settings.from_environment({variable("type_heads"): "false"}).value("type_heads")
    with pytest.raises(InvalidInput, match="must be true or false"):
        Settings.from_environment({variable("type_heads"): text})
