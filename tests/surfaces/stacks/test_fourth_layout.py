"""A layout in one file and one entry of the registry is deployed: its table, its stream's filter, its permissions."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from aws_cdk import App

from epochal import plugins
from epochal.cdk.sources import Sources
from epochal.settings import Settings, variable
from stacks.deployment import deployment
from tests.layouts.test_toy_layout import LISTS, PORT, TOY
from tests.support.permissions import allowed
from tests.surfaces.stacks.templates import Deployment, context_of_repository
from tests.surfaces.stacks.test_permissions import listed, statements

FUNCTIONS = {"append": "api", "feed": "api", "indexer": "feed", "auditor": "feed"}


@pytest.fixture(scope="module")
def deployed(sources: Sources) -> Iterator[Deployment]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plugins, "LAYOUTS", (*plugins.LAYOUTS, TOY))
        context = {**context_of_repository(), "stage": "dev", "target": "aws"}
        app = App(context=context)
        deployment(app, sources)
        yield Deployment(app)


def test_its_table_is_made_with_its_keys_and_stream_and_told(deployed: Deployment) -> None:
    table = deployed.named("store", "AWS::DynamoDB::GlobalTable", "Lists")["Properties"]
    assert table["TableName"] == "epochal-dev-lists"
    assert [each["AttributeName"] for each in table["KeySchema"]] == list(LISTS.keys)
    assert table["StreamSpecification"] == {"StreamViewType": "NEW_IMAGE"}
    outputs = deployed.template("store")["Outputs"]
    told = Settings.from_outputs({name: f"value of {name}" for name in outputs if name.endswith("Table")})
    assert told.table(LISTS.kind) == "value of ListsTable"


def test_its_stream_wakes_the_indexer_for_its_heads_alone(deployed: Deployment) -> None:
    mapping = deployed.named("feed", "AWS::Lambda::EventSourceMapping", "ListsHeads")["Properties"]
    (wanted,) = mapping["FilterCriteria"]["Filters"]
    assert json.loads(wanted["Pattern"])["dynamodb"] == {"NewImage": {"part": {"N": ["0"]}}}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_is_told_of_it_and_allowed_what_it_does_there(deployed: Deployment, function: str) -> None:
    granted = {
        (action, LISTS.kind)
        for statement in statements(deployed, function)
        if ":table/epochal-dev-lists" in json.dumps(statement["Resource"])
        for action in listed(statement["Action"])
    }
    assert granted == allowed(PORT, function)
    (told,) = [
        each["Properties"]["Environment"]["Variables"]
        for each in deployed.of_type(FUNCTIONS[function], "AWS::Lambda::Function").values()
        if each["Properties"]["FunctionName"] == f"epochal-dev-{function}"
    ]
    assert variable("lists_table") in told
    assert (told.get(variable("lists_partitions")) == "1") is (function != "append")
