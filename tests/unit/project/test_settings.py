"""What functions are told by their deployment, read back, or refused with the variable's name."""

from __future__ import annotations

import pytest

from epochal.errors import InvalidInput
from epochal.settings import (
    AGGREGATE_TYPES,
    DCB_PARTITIONS,
    JOURNAL_PARTITIONS,
    JOURNAL_SHARDS,
    PARTITIONS,
    TYPE_HEADS,
    WRITE_SHARDS,
    Settings,
)


def test_a_function_that_is_told_nothing_has_the_defaults() -> None:
    assert Settings.from_environment({}) == Settings()


def test_types_are_separated_by_commas() -> None:
    read = Settings.from_environment({AGGREGATE_TYPES: "order,user-account"})
    assert read.aggregate_types == ("order", "user-account")
    assert Settings.from_environment({AGGREGATE_TYPES: ""}).aggregate_types == ()


@pytest.mark.parametrize("text", [",", "order,", "order,,account", "order, account", " "])
def test_types_that_are_empty_or_have_spaces_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Settings.from_environment({AGGREGATE_TYPES: text})
    assert refused.value.field == AGGREGATE_TYPES


@pytest.mark.parametrize("name", [PARTITIONS, JOURNAL_SHARDS, JOURNAL_PARTITIONS, DCB_PARTITIONS])
@pytest.mark.parametrize("text", ["", "0", "-1", "10001", "1.0", "two", "²"])
def test_a_number_out_of_bounds_is_refused(name: str, text: str) -> None:
    with pytest.raises(InvalidInput, match="whole number from 1 to 10,000") as refused:
        Settings.from_environment({name: text})
    assert refused.value.field == name


@pytest.mark.parametrize("text", ["0", "1001", "-1"])
def test_write_shards_out_of_bounds_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="whole number from 1 to 1,000") as refused:
        Settings.from_environment({WRITE_SHARDS: text})
    assert refused.value.field == WRITE_SHARDS


@pytest.mark.parametrize("text", ["True", "1", "", "yes"])
def test_a_flag_is_true_or_false_and_nothing_else(text: str) -> None:
    assert Settings.from_environment({TYPE_HEADS: "true"}).type_heads
    assert not Settings.from_environment({TYPE_HEADS: "false"}).type_heads
    with pytest.raises(InvalidInput, match="must be true or false"):
        Settings.from_environment({TYPE_HEADS: text})
