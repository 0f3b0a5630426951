"""docs/reference/constructs.md: what signatures, docstrings and rules say today, with every argument described."""

from __future__ import annotations

import inspect

import pytest

from epochal.cdk import EventStore, Reaction
from epochal.cdk.arguments import RULES_OF
from epochal.cdk.declared_reactions import Declared
from epochal.cdk.stages import RULES
from epochal.cdk.store_options import StoreOptions
from epochal.contrib.processes.cdk import Process
from epochal.lazy_dataclasses import fields
from tests.docs import constructs_page
from tests.docs.constructs_page import CONSTRUCTS, PAGE, arguments_of


def parameters(function: object) -> list[inspect.Parameter]:
    """The parameters of a method that have a name, without `self`."""
    found = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    return [one for one in found if one.name != "self" and one.kind is not inspect.Parameter.VAR_KEYWORD]


def test_the_page_is_what_the_constructs_say() -> None:
    assert PAGE.read_text("utf-8") == constructs_page.page(), (
        "if that is meant: .venv/bin/python -m tests.docs.constructs_page"
    )


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_every_argument_of_a_construct_is_described_where_an_editor_shows_it(construct: type) -> None:
    described = arguments_of(construct.__init__)  # type: ignore[misc]
    assert described.keys() >= {one.name for one in parameters(construct.__init__)}  # type: ignore[misc]
    assert all(described.values())


def test_every_setting_of_a_store_is_described_there_too() -> None:
    described = arguments_of(EventStore.__init__)
    own = {one.name for one in parameters(EventStore.__init__)}
    assert described.keys() == own | StoreOptions.__annotations__.keys()


@pytest.mark.parametrize(
    "construct", ["EventStore", "Reaction", "Process", "Publish", "Webhook", "Lake", "Network"]
)
def test_every_argument_has_a_rule(construct: str) -> None:
    (class_,) = (one for one in CONSTRUCTS if one.__name__ == construct)
    # `Publish` itself says what a recipient is.
    names = {one.name for one in parameters(class_.__init__)} - {"to"}  # type: ignore[misc]
    assert names <= RULES_OF[construct].keys()


@pytest.mark.parametrize("construct", [Reaction, Process])
def test_what_cdk_json_says_of_a_reaction_has_the_names_of_the_constructs_arguments(construct: type) -> None:
    # A process is declared by one more word, for which an app has another construct.
    declared = {field.name for field in fields(Declared)} - {"process"}
    assert declared <= {one.name for one in parameters(construct.__init__)}  # type: ignore[misc]


def test_what_cdk_json_says_of_a_stage_has_the_names_of_a_stores_arguments() -> None:
    elsewhere = {"account", "region", "prefix", "tags", "reactions"} | {
        "domain_name",
        "domain_certificate",
        "monthly_budget",
    }
    own = {one.name for one in parameters(EventStore.__init__)}
    assert RULES.keys() - elsewhere <= own | StoreOptions.__annotations__.keys()
