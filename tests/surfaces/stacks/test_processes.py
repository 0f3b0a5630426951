"""A process as it is deployed: two functions of one code, which may append; what outputs call, one of them may."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Template

from epochal.cdk import EventStore
from epochal.cdk.rules import BadSetting
from epochal.contrib.processes.cdk import Process
from epochal.contrib.proving import commands as account
from epochal.contrib.proving.deployed_stacks import DeployedFunction, DeployedStack
from epochal.pages.items import STREAMS
from epochal.plan import ops
from epochal.settings import variable
from tests.contrib.processes.world import Placed, World
from tests.contrib.proving.stage import Stage
from tests.support.permissions import Allowed, actions, on
from tests.surfaces.stacks.templates import Deployment, Synthesise
from tests.surfaces.stacks.test_permissions import ROLES, allowed

CODE = Path(__file__).parents[3] / "examples" / "checkout"
CHECKOUT = {
    "entry": str(CODE),
    "handler": "checkout:Checkout",
    "process": True,
    "permissions": [{"actions": ["ses:SendEmail"], "resources": ["*"]}],
}
BOARD = {"entry": "board"}


@pytest.fixture(scope="module")
def deployed(synthesise: Synthesise) -> Deployment:
    return synthesise("prod", reactions={"checkout": CHECKOUT, "board": BOARD})


def function(deployed: Deployment, half: str) -> dict[str, Any]:
    found: dict[str, Any] = deployed.named("reactions", "AWS::Lambda::Function", f"checkout{half}Function")
    return found["Properties"]


def may(deployed: Deployment, monkeypatch: pytest.MonkeyPatch, role: str) -> Allowed:
    monkeypatch.setitem(ROLES, role, ("reactions", "AWS::IAM::Role", role))
    return {(action, what) for action, what in allowed(deployed, role) if not what.startswith("checkout")}


@pytest.mark.parametrize("half", ["Inbox", "Outbox"])
def test_each_half_is_a_function_that_is_told_which_it_is(deployed: Deployment, half: str) -> None:
    found = function(deployed, half)
    assert found["FunctionName"] == f"epochal-prod-reaction-checkout-{half.lower()}"
    variables = found["Environment"]["Variables"]
    assert variables[variable("reaction")] == f"checkout-{half.lower()}"
    assert variables["EPOCHAL_ENTRY"] == "checkout:Checkout"
    assert found["Code"] == function(deployed, "Inbox")["Code"]


def test_both_append_to_streams_which_a_reaction_does_not_and_what_is_called_is_for_one(
    deployed: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    reaction = may(deployed, monkeypatch, "boardFunctionRole")
    inbox = may(deployed, monkeypatch, "checkoutInboxFunctionRole")
    outbox = may(deployed, monkeypatch, "checkoutOutboxFunctionRole")
    own = {each for each in inbox if "queue" in each[1].lower()}
    assert inbox - own - reaction == {
        *on("streams", "PutItem", "UpdateItem", "ConditionCheckItem"),
        *on("bodies/*", "PutObject", service="s3"),
    }
    assert outbox - {each for each in outbox if "queue" in each[1].lower()} - inbox == {
        ("ses:SendEmail", "*")
    }


def test_it_may_do_what_its_plans_do_and_of_streams_nothing_else(
    deployed: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: Allowed = set()
    world = World()
    execute = world.execute

    def noted(op: ops.Op) -> ops.Reply:
        used.update(actions(op))
        return execute(op)

    world.execute = noted
    for key, total in (("1", 10), ("2", 1_000)):
        world.append(f"Order-{key}", Placed(total))
    world.run()
    granted = may(deployed, monkeypatch, "checkoutInboxFunctionRole")
    assert used <= granted
    writes = on(STREAMS.kind, "PutItem", "UpdateItem", "ConditionCheckItem")
    assert used & writes == writes


@pytest.mark.parametrize("half", ["Inbox", "Outbox"])
def test_a_proof_takes_its_role_for_what_it_is(
    deployed: Deployment, monkeypatch: pytest.MonkeyPatch, half: str
) -> None:
    found = function(deployed, half)
    name, stack = found["FunctionName"], DeployedStack(name="reactions")
    deployed_as = {"Environment": found["Environment"]}
    kind = DeployedFunction(stack=stack, name=name, synthesised=found, deployed=deployed_as).kind
    assert kind == "process"
    granted = may(deployed, monkeypatch, f"checkout{half}FunctionRole")
    settings = Stage().proof().store.settings
    for table in (*settings.tables, "index"):
        expected = {f"dynamodb:{each}" for each in account.ITEMS}
        assert account._does(settings, kind, table) == {  # noqa: SLF001  what it compares roles with
            action for action, what in granted if what == table and action in expected
        }
    assert {f"s3:{each}" for each in account.ON_OBJECTS[kind]} == {
        action for action, what in granted if what == "bodies/*"
    }


def test_a_construct_reads_the_name_where_the_class_says_it() -> None:
    stack = Stack(App(), "Shop")
    store = EventStore(stack, "Events", api=None, watch=False)
    process = Process(stack, "Checkout", store=store, entry=CODE, handler="checkout:Checkout")
    names = {
        each["Properties"].get("FunctionName")
        for each in Template.from_stack(stack).to_json()["Resources"].values()
        if each["Type"] == "AWS::Lambda::Function"
    }
    assert {"shop-events-reaction-checkout-inbox", "shop-events-reaction-checkout-outbox"} <= names
    assert process.inbox.outputs.keys() == process.outbox.outputs.keys()
    with pytest.raises(BadSetting, match="does not contain exactly one process"):
        Process(stack, "Other", store=store, entry=CODE, handler="checkout:Order")
