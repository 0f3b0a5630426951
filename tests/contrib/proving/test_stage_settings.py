"""A proof knows all that a stage has chosen, also what no output of its stacks says."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from epochal.contrib.proving import commands as checks
from epochal.contrib.proving.deployed_stacks import DeployedFunction, DeployedStack
from epochal.layout.registry import layouts_in
from epochal.plugins import layouts, own_settings
from epochal.settings import DECLARED, Options, Settings
from tests.contrib.proving.stage import function
from tests.contrib.proving.test_account_checks import Account, proof, stacks, template
from tests.surfaces.stacks.templates import CHOSEN

FUNCTIONS = ("append", "replay", "feed", "indexer", "auditor", "reaction", "arming", "timers")
OPTIONS = sorted(
    {field.name for field in fields(Options) if field.name in DECLARED}
    | {name for layout in layouts() for name, one in own_settings(layout).items() if not one.table}
)
OTHERS: dict[str, Any] = {"carrier": "boto3", "equinox": True, "calving": "size"}
"""Values of options that the templates' tests do not choose."""


def whole(**options: Any) -> Settings:
    """A stage with every table, and these options."""
    tables = {
        f"{spec.kind.replace('-', '_')}_table": spec.kind
        for layout in layouts()
        for spec in layout.port.tables
    }
    return Settings.of(index_table="index", bucket="bucket", **tables, **options)


def deployed(settings: Settings) -> list[DeployedFunction]:
    """The functions of a stage, each with its own variables."""
    stack = DeployedStack(name="feed", resources={}, physical={})
    return [
        DeployedFunction(
            stack=stack,
            name=f"epochal-dev-{name}",
            synthesised={},
            deployed={"Environment": {"Variables": settings.environment(name)}},
        )
        for name in FUNCTIONS
    ]


@pytest.mark.parametrize("option", OPTIONS)
def test_permissions_are_judged_by_every_option_that_a_stage_has_chosen(option: str) -> None:
    value = CHOSEN.get(option, OTHERS.get(option))
    if value is None:
        value = {bool: True, int: 3}.get(type(whole().value(option)), "x")
    stage = whole(**{option: tuple(value) if isinstance(value, list) else value})
    outputs = Settings.from_outputs(stage.outputs())
    known = checks.settings_of_stage(outputs, deployed(stage))
    for layout in layouts_in(stage):
        assert layout.port.access(known) == layout.port.access(stage), layout.name


def test_the_auditor_may_prune_where_streams_keep_so_much() -> None:
    auditor = template("auditor")["Properties"]["Environment"]["Variables"] | {"EPOCHAL_KEEP": "Visit:5"}
    name = "epochal-dev-auditor"
    account = Account(
        allows={"auditor": {("dynamodb:UpdateItem", "streams")}},
        configured={name: {"Environment": {"Variables": auditor}}},
    )
    assert checks.roles.tried(proof(account))
    (stack,) = stacks()
    assert stack.resources["Auditor"] == function(name, EPOCHAL_INDEX_TABLE="index")
