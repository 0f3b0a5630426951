"""What functions are told by their deployment, read back, or refused with the variable's name."""

from __future__ import annotations

import pytest

from epochal.errors import InvalidInput
from epochal.settings import AGGREGATE_TYPES, JOURNAL_SHARDS, PARTITIONS, Settings


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


@pytest.mark.parametrize("name", [PARTITIONS, JOURNAL_SHARDS])
@pytest.mark.parametrize("text", ["", "0", "-1", "10001", "1.0", "two", "²"])
def test_a_number_out_of_bounds_is_refused(name: str, text: str) -> None:
    with pytest.raises(InvalidInput, match="whole number from 1 to 10,000") as refused:
        Settings.from_environment({name: text})
    assert refused.value.field == name
