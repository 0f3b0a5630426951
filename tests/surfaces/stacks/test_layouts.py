"""A layout that a stage leaves out is nowhere in what is deployed."""

from __future__ import annotations

import pytest

from epochal.cdk.rules import BadSetting
from epochal.layout.registry import layout_named, layout_names
from epochal.layout.tables import store_tables
from epochal.settings import Settings, variable
from stacks.stages import check_context, stage_from
from tests.surfaces.stacks.templates import SPARSE, Deployment, Synthesise
from tests.surfaces.stacks.test_permissions import EXPECTED, allowed

KEPT = SPARSE["layouts"]
LEFT_OUT = [name for name in layout_names() if name not in KEPT]
TABLES = {spec.kind for name in LEFT_OUT for spec in layout_named(name).port.tables}
OF_BOARD = {"board", "read-models"}
"""Tables that only the reaction of other tests may use."""


@pytest.fixture(scope="module")
def sparse(synthesise: Synthesise) -> Deployment:
    return synthesise("prod", **SPARSE)


def test_its_tables_are_not_made_and_those_of_others_keep_their_ids(
    sparse: Deployment, synthesise: Synthesise
) -> None:
    tables = "AWS::DynamoDB::GlobalTable"
    made = {id_: each["Properties"]["TableName"] for id_, each in sparse.of_type("store", tables).items()}
    kinds = {spec.kind for spec in store_tables()} - TABLES
    assert set(made.values()) == {f"epochal-prod-{kind}" for kind in kinds}
    assert set(made) < set(synthesise("prod").of_type("store", tables))


def test_outputs_tell_a_client_of_the_others_alone(sparse: Deployment) -> None:
    outputs = sparse.template("store")["Outputs"]
    told = Settings.from_outputs({name: name for name in outputs if name.endswith("Table")})
    assert set(told.tables) == {spec.kind for name in KEPT for spec in layout_named(name).port.tables}


@pytest.mark.parametrize("function", EXPECTED)
def test_a_function_may_do_nothing_there_and_elsewhere_what_it_may(sparse: Deployment, function: str) -> None:
    names = {f"{before}{kind}" for kind in TABLES for before in ("", "stream of ", "GSI1 of ")} | OF_BOARD
    wanted = {
        (action, on)
        for action, on in EXPECTED[function]
        if on not in names and not on.startswith("projections/")
    }
    assert allowed(sparse, function) == wanted


@pytest.mark.parametrize("name", LEFT_OUT)
def test_no_function_is_told_of_it(sparse: Deployment, name: str) -> None:
    layout = layout_named(name)
    functions = [
        each["Properties"]["Environment"]["Variables"]
        for stack in ("api", "feed", "reactions")
        for each in sparse.of_type(stack, "AWS::Lambda::Function").values()
        if "Environment" in each["Properties"]
    ]
    assert any(variable("streams_table") in each for each in functions)
    unknown = {variable(layout.table), variable(layout.partitions)}
    assert [each for each in functions if unknown & each.keys()] == []


def test_no_stream_of_it_is_followed_and_no_alarm_looks_at_it(sparse: Deployment) -> None:
    mappings = sparse.of_type("feed", "AWS::Lambda::EventSourceMapping")
    assert set(mappings) == {"StreamsHeads"}
    alarms = sparse.of_type("watch", "AWS::CloudWatch::Alarm").values()
    names = [each["Properties"]["AlarmName"] for each in alarms]
    assert any("streams" in each for each in names)
    assert [each for each in names if set(each.split("-")) & TABLES] == []


@pytest.mark.parametrize("said", ["page", "pages,page", "pages, tips", "", 1])
def test_what_the_command_line_says_must_be_layouts_and_those_are_told(said: object) -> None:
    with pytest.raises(BadSetting) as refused:
        stage_from("dev", None, {"layouts": said})
    assert refused.value.name == "layouts"
    assert refused.value.rule.startswith("must be")
    assert isinstance(said, int) or ", ".join(layout_names()) in refused.value.rule


def test_the_command_line_says_it_for_the_stage_that_is_deployed_and_wins() -> None:
    everywhere = {"prod": {"layouts": ["tips"]}, "dev": {"tips_partitions": 3}}
    check_context(["layouts"])
    prod = stage_from("prod", everywhere, {"layouts": "pages,tips"})
    assert [each.name for each in prod.deployed_layouts()] == ["tips", "pages"]
    assert [each.name for each in stage_from("prod", everywhere).deployed_layouts()] == ["tips"]
    dev = stage_from("dev", everywhere, {"layouts": None})
    assert tuple(each.name for each in dev.deployed_layouts()) == layout_names()


def test_a_retained_table_of_it_is_refused_since_it_would_not_be_used() -> None:
    kept = "arn:aws:dynamodb:eu-west-1:123456789012:table/kept"
    changes = {"layouts": ["pages"], "existing_journal": kept}
    with pytest.raises(BadSetting, match="existing_journal") as refused:
        stage_from("prod", {"prod": changes})
    assert refused.value.name == "stages.prod.layouts"
    assert stage_from("prod", {"prod": {**changes, "layouts": ["journal"]}}).existing("journal") == kept
