"""A deployment refuses to change a setting that data depend on, before anything else changes, and can be rolled back.

CloudFormation is played: the templates of a stage say what it would send to the function `guard`, and the function's
own code answers, over tables in memory.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.request import Request

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Template
from botocore.exceptions import ClientError

from epochal.cdk import EventStore
from epochal.cdk.sources import Sources
from epochal.cdk.stages import RULES
from epochal.cdk.targets import TARGET
from epochal.dynamo import clients, interpreter
from epochal.dynamo.interpreter import open_deployment
from epochal.errors import EpochalError, Unavailable
from epochal.hosting import custom_resource, first_wakeups
from epochal.layout.tables import INDEX, every_table
from epochal.plan import ops
from epochal.plugins import layouts, own_settings
from epochal.settings import DECLARED, Settings
from epochal.testing.memory import MemoryTables
from tests.support.account import Account
from tests.surfaces.stacks.templates import ROOT, Synthesise

STORE = "epochal-prod-store"
RESOURCE = "Custom::EpochalStore"
PAGE = (ROOT / "docs" / "deploy.md").read_text()

Change = tuple[dict[str, Any], dict[str, Any]]

REFUSED: Final[Mapping[str, list[Change]]] = {
    **{each.partitions: [({}, {each.partitions: 7}), ({each.partitions: 7}, {})] for each in layouts()},
    "aggregate_types": [({"aggregate_types": ["order", "user-account"]}, {"aggregate_types": ["order"]})],
    "equinox": [({}, {"equinox": True}), ({"equinox": True}, {})],
    "journal_keys": [({}, {"journal_keys": "rust"})],
    "journal_serializer": [({}, {"journal_serializer": "java"})],
    "journal_shards": [({}, {"journal_shards": 8}), ({"journal_shards": 8}, {"journal_shards": 16})],
    "service": [({}, {"service": "shop"}), ({"service": "shop"}, {})],
    "tagged_everything": [({}, {"tagged_everything": True}), ({"tagged_everything": True}, {})],
    "tagged_types": [({"tagged_types": ["A", "B"]}, {"tagged_types": ["B", "C"]})],
    "type_heads": [({}, {"type_heads": True}), ({"type_heads": True}, {})],
    "write_shards": [({"write_shards": 12}, {"write_shards": 9})],
}
"""Settings before and after, by the setting whose change is refused."""

ALLOWED: Final[Mapping[str, Change]] = {
    "a type of aggregates without a hyphen goes": ({"aggregate_types": ["order"]}, {"aggregate_types": []}),
    "a type of aggregates comes": ({"aggregate_types": ["a-b"]}, {"aggregate_types": ["c", "a-b"]}),
    "a type of tagged events comes": ({"tagged_types": ["A"]}, {"tagged_types": ["B", "A"]}),
    "there are more shards": ({"write_shards": 9}, {"write_shards": 12}),
    "what data do not depend on": ({}, {"calving": "cost", "feed_wait_seconds": 3, "keep": ["A:3"]}),
    "a layout goes": ({"layouts": ["pages", "tips"], "equinox": True}, {"layouts": ["pages"]}),
    "a layout comes": ({"layouts": ["pages"]}, {"layouts": ["pages", "journal"], "journal_shards": 8}),
}


class Context:
    """As much time as the function has."""

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


@dataclass
class Cloud:
    """CloudFormation, and the tables that the function reads.

    Attributes:
        answers: what the function answered, in order.
        status: of the stack, while the function is asked.
        unreadable: no table can be read.
    """

    monkeypatch: pytest.MonkeyPatch
    tables: MemoryTables
    account: Account = field(default_factory=Account)
    answers: list[dict[str, Any]] = field(default_factory=list)
    status: str = ""
    unreadable: bool = False
    sent: dict[str, Any] | None = None

    def deploy(self, templates: Mapping[str, Mapping[str, Any]]) -> str:
        """Deploy stacks; why the function refused, or nothing. Of what is refused, it answers the rollback, too."""
        before = self.sent
        assert self.account.deploy(templates) == []
        now, environment = self.read_stack(next(iter(templates)))
        if now == before:
            return ""  # CloudFormation passes over what has not changed
        reason = self.ask(now, before, environment, "UPDATE_IN_PROGRESS" if before else "CREATE_IN_PROGRESS")
        if not reason:
            self.sent = now
        elif before:
            assert self.ask(before, now, environment, "UPDATE_ROLLBACK_IN_PROGRESS") == ""
        else:
            assert self.ask(now, None, environment, "ROLLBACK_IN_PROGRESS", "Delete") == ""
        return reason

    def read_stack(self, name: str) -> tuple[dict[str, Any], dict[str, str]]:
        """What the custom resource of a stack says, and the environment of the function that it calls."""
        stack = self.account.stacks[name]
        resources = stack.template["Resources"]
        (resource,) = (id_ for id_, each in resources.items() if each["Type"].startswith(RESOURCE))
        (function,) = (
            id_
            for id_, each in resources.items()
            if each["Type"] == "AWS::Lambda::Function" and "Guard" in id_
        )
        return stack.properties[resource], stack.properties[function]["Environment"]["Variables"]

    def ask(
        self,
        now: dict[str, Any],
        before: dict[str, Any] | None,
        environment: dict[str, str],
        status: str,
        kind: str = "",
    ) -> str:
        """Call the function as CloudFormation does, and return the reason of a failure."""
        event = {
            "RequestType": kind or ("Update" if before else "Create"),
            "ResponseURL": "https://answers/",
            "StackId": "arn:aws:cloudformation:eu-west-1:123456789012:stack/store/1",
            "RequestId": "request",
            "LogicalResourceId": "Guard",
            # As CloudFormation has them: text.
            "ResourceProperties": as_text(now),
            **({"OldResourceProperties": as_text(before)} if before else {}),
        }
        self.status = status
        for name, value in environment.items():
            self.monkeypatch.setenv(name, value)
        path = ROOT / "lambdas" / "guard" / "handler.py"
        spec = importlib.util.spec_from_file_location("guard_handler", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        asked = len(self.answers)
        try:
            module.handler(event, Context())
        except EpochalError:
            assert self.answers[-1]["Status"] == "FAILED"
        (answer,) = self.answers[asked:]
        return str(answer["Reason"]) if answer["Status"] == "FAILED" else ""

    def execute(self, op: ops.Op) -> ops.Reply:
        if self.unreadable:
            raise Unavailable("AccessDenied")
        return self.tables.execute(op)

    def describe_stacks(self, *, StackName: str) -> dict[str, Any]:  # noqa: N803
        assert StackName.startswith("arn:aws:cloudformation:")
        return {"Stacks": [{"StackStatus": self.status}]}

    def fill(self, **settings: Any) -> None:
        """Data of every layout, and an index that has them."""
        for layout in layouts():
            spec = layout.port.heads
            keys = {each.name: each for each in (spec.partition, spec.sort) if each}
            item = {name: {each.type: "1"} for name, each in keys.items()}
            self.tables.execute(ops.Put(table=f"epochal-prod-{spec.kind}", item=item, condition=None))
        self.register(**settings)

    def register(self, *, index: str = "epochal-prod-index", **settings: Any) -> None:
        """Start an indexer with these settings, which puts its numbers of partitions on record."""
        tables = {each.table: f"epochal-prod-{each.port.heads.kind}" for each in layouts()}
        told = Settings.of(**tables, index_table=index, **{"pages_partitions": 4, **settings})
        open_deployment(told, execute=self.tables.execute).indexer.register()


def as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: as_text(each) for key, each in value.items()}
    return str(value)


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Cloud:
    specs = {f"epochal-prod-{each.kind}": each for each in every_table()}
    made = Cloud(monkeypatch, MemoryTables({**specs, "index-2": INDEX}))

    def receive(request: Request, **_: Any) -> nullcontext[None]:
        assert isinstance(request.data, bytes)
        assert len(request.data) <= custom_resource.MOST_BYTES
        made.answers.append(json.loads(request.data))
        return nullcontext()

    monkeypatch.setattr(custom_resource, "urlopen", receive)
    monkeypatch.setattr(interpreter, "execute_through", lambda _: made.execute)
    monkeypatch.setattr(clients, "service_client", lambda name, **_: {"cloudformation": made}[name])
    monkeypatch.setattr(first_wakeups, "PAUSE_SECONDS", 60.0)
    return made


def partitions(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name.endswith("partitions")}


@pytest.mark.parametrize(
    ("name", "change"), [(name, each) for name, changes in REFUSED.items() for each in changes]
)
def test_a_deployment_refuses_to_change_what_data_depend_on(
    synthesise: Synthesise, cloud: Cloud, name: str, change: Change
) -> None:
    before, now = (synthesise("prod", **each).in_order() for each in change)
    assert cloud.deploy(before) == ""
    cloud.fill(**partitions(change[0]))
    reason = cloud.deploy(now)
    assert re.match(rf"InvalidInput: {name}: must (stay|keep)", reason), reason
    assert cloud.account.deploy(before) == [], "the refused update is rolled back"
    assert cloud.deploy(before) == ""


@pytest.mark.parametrize("name", REFUSED)
def test_it_may_change_while_there_are_no_data(synthesise: Synthesise, cloud: Cloud, name: str) -> None:
    for settings in REFUSED[name][0]:
        assert cloud.deploy(synthesise("prod", **settings).in_order()) == ""


@pytest.mark.parametrize("what", ALLOWED)
def test_other_changes_are_deployed(synthesise: Synthesise, cloud: Cloud, what: str) -> None:
    for settings in ALLOWED[what]:
        assert cloud.deploy(synthesise("prod", **settings).in_order()) == ""
        cloud.fill()


def test_a_number_that_the_index_has_not_is_refused_where_it_was_deployed_before_there_was_a_guard(
    synthesise: Synthesise, cloud: Cloud
) -> None:
    cloud.fill(pages_partitions=1)
    reason = cloud.deploy(synthesise("prod").in_order())
    assert "pages_partitions: must stay 1, which the index epochal-prod-index has on record, not 4" in reason
    assert cloud.deploy(synthesise("prod", pages_partitions=1).in_order()) == ""


def test_an_index_that_was_rebuilt_with_another_number_is_taken(synthesise: Synthesise, cloud: Cloud) -> None:
    stream = "arn:aws:dynamodb:eu-west-1:123456789012:table/index-2/stream/2026-01-01T00:00:00.000"
    cloud.fill()
    cloud.register(index="index-2", pages_partitions=8)
    assert cloud.deploy(synthesise("prod").in_order()) == ""
    assert "must stay 8" in cloud.deploy(synthesise("prod", existing_index=stream).in_order())
    assert cloud.deploy(synthesise("prod", existing_index=stream, pages_partitions=8).in_order()) == ""


def test_a_rollback_is_never_refused(synthesise: Synthesise, cloud: Cloud) -> None:
    """Not of what was accepted either, nor where nothing can be read."""
    cloud.fill()
    few, many = ({"write_shards": 1}, {"write_shards": 4})
    for settings in (few, many):
        assert cloud.deploy(synthesise("prod", **settings).in_order()) == ""
    now, environment = cloud.read_stack(STORE)
    cloud.account.deploy(synthesise("prod", **few).in_order())
    before, _ = cloud.read_stack(STORE)
    for unreadable in (False, True):
        cloud.unreadable = unreadable
        assert cloud.ask(before, now, environment, "UPDATE_ROLLBACK_IN_PROGRESS") == ""
        assert cloud.ask(before, now, environment, "UPDATE_IN_PROGRESS") != ""


def test_where_nobody_tells_whether_a_stack_is_rolled_back_a_change_is_refused(
    synthesise: Synthesise, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.fill(pages_partitions=1)

    def fail(**_: Any) -> dict[str, Any]:
        raise ClientError({"Error": {"Code": "AccessDenied"}}, "DescribeStacks")

    monkeypatch.setattr(cloud, "describe_stacks", fail)
    assert "pages_partitions: must stay 1" in cloud.deploy(synthesise("prod").in_order())


def test_what_is_written_and_read_changes_only_after_the_guard_has_agreed(synthesise: Synthesise) -> None:
    """The other stacks of a stage wait for that of the store."""
    stage = synthesise("prod", timers=True, reactions={"board": {"entry": "board"}})
    for kind in ("feed", "api", "reactions"):
        waits, left = set[str](), [stage.stacks[kind]]
        while left:
            for each in left.pop().dependencies:
                waits.add(each.stack_name)
                left.append(each)
        assert STORE in waits


def test_the_guard_may_look_into_the_index_and_whether_tables_are_empty_and_nothing_else(
    synthesise: Synthesise,
) -> None:
    role = synthesise("prod").named("store", "AWS::IAM::Role", "GuardFunctionRole")["Properties"]
    (policy,) = role["Policies"]
    found = [
        (each["Action"], re.findall(r"'Fn::GetAtt': \['(\w+?)[0-9A-F]{8}'", str(each["Resource"])))
        for each in policy["PolicyDocument"]["Statement"]
    ]
    assert found == [
        (["logs:CreateLogStream", "logs:PutLogEvents"], ["GuardFunctionLog"]),
        ("dynamodb:GetItem", ["Index"]),
        ("dynamodb:Scan", ["Snapshot", "Streams", "Tags", "Tips"]),
        ("cloudformation:DescribeStacks", []),
    ]
    assert policy["PolicyDocument"]["Statement"][-1]["Resource"] == {"Ref": "AWS::StackId"}


class TestInAnAppOfOnesOwn:
    @pytest.fixture(autouse=True)
    def shipped(self, sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Sources, "shipped", lambda: sources)
        monkeypatch.delenv(TARGET, raising=False)

    @staticmethod
    def template(**options: Any) -> dict[str, Any]:
        stack = Stack(App(), "Shop")
        EventStore(stack, "Events", **{"name": "epochal-prod", "preset": "prod", **options})
        found: dict[str, Any] = Template.from_stack(stack).to_json()
        return found

    def test_a_deployment_refuses_another_number_of_partitions(self, cloud: Cloud) -> None:
        assert cloud.deploy({"Shop": self.template()}) == ""
        cloud.register()
        assert "pages_partitions: must stay 4" in cloud.deploy({"Shop": self.template(pages_partitions=1)})

    def test_every_function_of_the_store_waits_for_the_guard(self) -> None:
        resources = self.template(timers=True)["Resources"]
        (guard,) = (id_ for id_, each in resources.items() if each["Type"].startswith(RESOURCE))
        functions = {
            each["Properties"].get("FunctionName"): each.get("DependsOn", [])
            for each in resources.values()
            if each["Type"] == "AWS::Lambda::Function"
        }
        for name in ("append", "replay", "feed", "indexer", "auditor", "timers", "reaction-timers"):
            assert guard in functions[f"epochal-prod-{name}"], name

    def test_cloudformation_refuses_another_name_before_it_makes_a_table(self) -> None:
        """It refuses another type of a resource when it reads the template; tables of another name would be empty."""
        account = Account()
        assert account.deploy({"Shop": self.template()}) == []
        refused = account.deploy({"Shop": self.template(name="other")})
        assert any("EventsGuard" in each and "cannot become" in each for each in refused)

    def test_the_guard_refuses_another_name_too(self, cloud: Cloud) -> None:
        assert cloud.deploy({"Shop": self.template()}) == ""
        now, environment = cloud.read_stack("Shop")
        reason = cloud.ask({**now, "Store": "other"}, now, environment, "UPDATE_IN_PROGRESS")
        assert "name: must stay epochal-prod" in reason


# The table of deploy.md.


def rows(title: str) -> Iterator[tuple[list[str], str]]:
    """The settings of each row below a title, and the row."""
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    for line in section.splitlines():
        if line.startswith("| `"):
            cells = line.split(" | ")
            yield re.findall(r"`([a-z_0-9]+)`", cells[0]), line


FIXED_TITLE, FREE_TITLE = "What stays once there are events", "What may change"


def test_a_page_says_of_every_setting_whether_it_may_change() -> None:
    named = [name for title in (FIXED_TITLE, FREE_TITLE) for names, _ in rows(title) for name in names]
    assert sorted(named) == sorted(set(named)), "each has one row"
    plugged = {name for layout in layouts() for name in own_settings(layout)}
    arguments = set(inspect.signature(EventStore.__init__).parameters) - {"self", "scope", "id_", "options"}
    assert set(named) == set(RULES) | set(DECLARED) | plugged | arguments


def test_the_page_has_what_a_deployment_refuses() -> None:
    fixed = {name for names, _ in rows(FIXED_TITLE) for name in names}
    assert fixed == set(REFUSED) | {"name", "prefix"}
    declared = {
        name
        for name, each in {
            **DECLARED,
            **{name: each for layout in layouts() for name, each in own_settings(layout).items()},
        }.items()
        if each.broken is not None
    }
    assert declared | {each.partitions for each in layouts()} == set(REFUSED)


def test_another_prefix_leaves_the_deployment_of_the_first_as_it_is(synthesise: Synthesise) -> None:
    account = Account()
    assert account.deploy(synthesise("prod").in_order()) == []
    stacks = set(account.stacks)
    assert account.deploy(synthesise("prod", prefix="other").in_order()) == []
    assert not stacks & set(synthesise("prod", prefix="other").in_order())
    assert (account.left, account.deleted) == (set(), [])
