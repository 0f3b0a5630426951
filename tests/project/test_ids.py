"""Ids of tests that differ between processes are refused when they are collected."""

from __future__ import annotations

import pytest

from tests.support.ids import refuse_ids_that_differ
from tests.support.kinds import TESTS

TOLD = {
    "set": "its parameters are a set",
    "named_set": "its parameters are a set",
    "set_as_id": "part of its id",
    "frozenset_as_id": "part of its id",
    "address": "part of its id",
}
SOURCE = """
import pytest

@pytest.mark.parametrize("name", {"a", "b"})
def test_set(name): pass

@pytest.mark.parametrize("name", argvalues=frozenset({"a"}))
def test_named_set(name): pass

@pytest.mark.parametrize("names", [{"a", "b"}], ids=str)
def test_set_as_id(names): pass

@pytest.mark.parametrize("names", [frozenset({"a"})], ids=str)
def test_frozenset_as_id(names): pass

@pytest.mark.parametrize("value", [object()], ids=repr)
def test_address(value): pass

@pytest.mark.parametrize("name", {"a": 1, "{b}": 2}.keys())
def test_texts(name): pass

@pytest.mark.parametrize("value", [{"a", "b"}, object()])
def test_told_by_number(value): pass

@pytest.mark.parametrize("value", [{"a": 1, "b": 2}, {3}], ids=str)
def test_dictionary_and_set_of_one(value): pass

def test_no_parameters(): pass
"""


@pytest.mark.slow
def test_ids_that_differ_between_processes_are_refused_and_others_are_not(
    request: pytest.FixtureRequest, pytester: pytest.Pytester
) -> None:
    conftest = request.config.pluginmanager.get_plugin(str(TESTS / "conftest.py"))
    items = pytester.getitems(SOURCE)
    refused = [item for item in items if item.name.partition("[")[0].removeprefix("test_") in TOLD]
    assert len(refused) == len(TOLD) + 1
    assert len(items) == len(refused) + 7

    for item in items:
        if item not in refused:
            refuse_ids_that_differ(item)
    for item in refused:
        told = TOLD[item.name.partition("[")[0].removeprefix("test_")]
        with pytest.raises(pytest.UsageError, match=told):
            conftest.pytest_collection_modifyitems([item])
