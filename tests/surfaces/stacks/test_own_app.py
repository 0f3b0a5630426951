"""The constructs in an app that is not ours: they read nothing of it, and bring all that they deploy."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from runpy import run_path
from types import ModuleType
from typing import Any, cast, get_type_hints

import pytest
from aws_cdk import App, Environment, NestedStack, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_kinesis as kinesis
from aws_cdk import aws_kinesisfirehose as firehose
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk.assertions import Template

from epochal import Event, FeedEvent
from epochal.cdk import EventStore, Reaction
from epochal.cdk.rules import BadSetting
from epochal.cdk.sources import Sources
from epochal.cdk.stages import RULES
from epochal.cdk.store_options import StoreOptions
from epochal.cdk.targets import TARGET
from epochal.contrib.publish.cdk import Publish, Webhook
from epochal.contrib.sekiban import SekibanOptions
from epochal.settings import FOUND_BY, Settings, variable
from epochal.testing.feeds import MemoryStore
from tests.surfaces.stacks.templates import ROOT

GUIDE = (ROOT / "docs" / "guide" / "your-own-app.md").read_text()
FUNCTION = "AWS::Lambda::Function"
TABLE = "AWS::DynamoDB::GlobalTable"
APPS_OWN = {
    *("prefix", "reactions", "tags", "api"),
    *("account", "region", "domain_name", "domain_certificate", "monthly_budget"),
}
"""Settings of `cdk.json` that are no options: an app says these in other ways."""

Resources = dict[str, dict[str, Any]]


@pytest.fixture(autouse=True)
def shipped(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line each for functions and wheels; the app that is run as a program has the real ones."""
    monkeypatch.setattr(Sources, "shipped", lambda: sources)
    monkeypatch.delenv(TARGET, raising=False)


@pytest.fixture
def shop() -> Stack:
    return Stack(App(), "Shop")


def function(stack: Stack, id_: str = "Mine") -> lambda_.Function:
    code = lambda_.Code.from_inline("def handler(event, context): ...")
    return lambda_.Function(
        stack, id_, code=code, handler="index.handler", runtime=lambda_.Runtime.PYTHON_3_13
    )


@cache
def template(stack: Stack) -> dict[str, Any]:
    found: dict[str, Any] = Template.from_stack(stack).to_json()
    return found


def of_type(stack: Stack, type_: str) -> Resources:
    return {id_: each for id_, each in template(stack)["Resources"].items() if each["Type"] == type_}


def named(resources: Resources, begin: str) -> dict[str, Any]:
    (found,) = (each["Properties"] for id_, each in resources.items() if id_.startswith(begin))
    return found


def files(page: str) -> Iterator[tuple[str, str]]:
    """The files that a page shows, by the comment at their beginning."""
    for block in re.findall(r"^```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        path = re.match(r"# (\S+\.py)\n", block)
        if path:
            yield path[1], block


@pytest.fixture
def guides_app(sources: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Stack]:
    """The guide's own, as it stands there; `tests/local/test_package.py` runs it with the wheel."""
    for path, text in files(GUIDE):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        # CDK's own process stays in the folder that it was started in.
        (tmp_path / path).write_text(text.replace('"functions/', f'"{tmp_path}/functions/'))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CDK_OUTDIR", str(tmp_path / "out"))
    children = run_path("app.py")["app"].node.children
    return {each.stack_name: each for each in children if isinstance(each, Stack)}


def test_the_guides_app_has_a_store_with_all_that_looks_after_it(guides_app: dict[str, Stack]) -> None:
    functions = of_type(guides_app["Shop"], FUNCTION)
    assert {each["Properties"].get("FunctionName") for each in functions.values()} == {
        *(f"shop-events-{each}" for each in ("append", "replay", "feed", "indexer", "auditor")),
        None,  # the app's own
    }
    checkout = named(functions, "Checkout")["Environment"]["Variables"]
    (code,) = (text for path, text in files(GUIDE) if path.endswith("checkout.py"))
    assert set(re.findall(r"EPOCHAL_\w+", code)) <= checkout.keys()
    board = named(of_type(guides_app["Boards"], FUNCTION), "Board")
    assert board["Handler"] == "epochal.hosting.function.handler"
    assert board["Environment"]["Variables"]["EPOCHAL_ENTRY"] == "board:departures"


def test_the_guides_reactions_are_in_a_stack_of_their_own_beside_no_retained_table(
    guides_app: dict[str, Stack],
) -> None:
    """Else a reaction that fails to deploy rolls the store's first deployment back, and its names are taken."""
    boards = guides_app["Boards"]
    resources = template(boards)["Resources"].values()
    assert not [each["Type"] for each in resources if each.get("DeletionPolicy") == "Retain"]
    assert "Custom::EpochalWakeUp" not in str(template(guides_app["Shop"]))
    assert "Fn::ImportValue" not in str(template(boards))


def test_the_guides_own_function_finds_all_that_its_code_asks_for(
    guides_app: dict[str, Stack], tmp_path: Path
) -> None:
    assert guides_app
    stack = run_path(str(tmp_path / "library.py"))["Library"](App(), "Library")
    variables = named(of_type(stack, FUNCTION), "Desk")["Environment"]["Variables"]
    code = dict(files(GUIDE))["functions/desk/desk.py"]
    assert set(re.findall(r'environ\["(\w+)"\]', code)) <= variables.keys()
    policies = str(list(of_type(stack, "AWS::IAM::Policy").values()))
    actions = ("dynamodb:BatchGetItem", "dynamodb:PutItem", "kms:GenerateDataKey", "kms:Decrypt")
    assert [action for action in actions if action not in policies] == []


def test_a_store_is_called_after_its_stack_and_itself(shop: Stack) -> None:
    EventStore(shop, "Events")
    assert {each["Properties"]["TableName"] for each in of_type(shop, TABLE).values()} == {
        f"shop-events-{kind}" for kind in ("streams", "index")
    }


@pytest.mark.parametrize(
    ("layouts", "heads"),
    [
        (["pages", "tips"], {"streams", "tips"}),
        (None, {"streams", "tips", "journal", "snapshot", "events", "tags", "projection-states"}),
    ],
    ids=["those named", "all"],
)
def test_a_store_has_the_tables_of_other_layouts_where_they_are_asked_for(
    shop: Stack, layouts: list[str] | None, heads: set[str]
) -> None:
    EventStore(shop, "Events", layouts=layouts, api=None, watch=False)
    found = {each["Properties"]["TableName"] for each in of_type(shop, TABLE).values()}
    assert found == {f"shop-events-{kind}" for kind in (*heads, "index")}


def test_a_long_name_is_cut_and_stays_its_own() -> None:
    names = set()
    for end in ("One", "Two"):
        stack = Stack(App(), f"TheStackOfAVeryLongServiceNumber{end}")
        stage = EventStore(stack, "Events", api=None, watch=False).stage
        assert len(stage.name) <= 26
        names.add(stage.name)
    assert len(names) == 2


@pytest.mark.parametrize("name", ["Shop", "ab", "a" * 27, "1st-shop", "shop-"])
def test_a_name_that_a_bucket_could_not_have_is_refused(shop: Stack, name: str) -> None:
    with pytest.raises(BadSetting, match="lower-case"):
        EventStore(shop, "Events", name=name)


def test_a_nested_stack_has_to_be_told_a_name(shop: Stack) -> None:
    with pytest.raises(BadSetting, match="must be given"):
        EventStore(NestedStack(shop, "Inner"), "Events")


def test_any_context_and_any_stage_name_will_do() -> None:
    stack = Stack(App(context={"stage": "pr-17", "stages": "mine", "layouts": 3}), "Shop-pr-17")
    store = EventStore(stack, "Events", api=None, watch=False)
    assert store.stage.named("index") == "shop-pr-17-events-index"


def test_its_stack_tells_commands_where_everything_is(shop: Stack) -> None:
    EventStore(shop, "Events")
    outputs = template(shop)["Outputs"]
    assert {*FOUND_BY, "StreamsTable", "ApiUrl", "ApiId", "NoticesTopic"} <= outputs.keys()
    tables = of_type(shop, TABLE)
    found = {
        name: tables[each["Value"]["Ref"]]["Properties"]["TableName"] if "Table" in name else each["Value"]
        for name, each in outputs.items()
        if name != "BucketName" and isinstance(each["Value"], dict | str)
    }
    told = Settings.from_outputs({name: each for name, each in found.items() if isinstance(each, str)})
    assert (told.table("streams"), told.index_table) == ("shop-events-streams", "shop-events-index")


def test_several_stores_are_in_one_stack_and_the_second_has_outputs_of_its_own(shop: Stack) -> None:
    for id_ in ("Events", "Audit-Log"):
        EventStore(shop, id_, api=None, watch=False)
    outputs = template(shop)["Outputs"]
    assert {*FOUND_BY, *(f"AuditLog{each}" for each in FOUND_BY)} <= outputs.keys()
    layers = of_type(shop, "AWS::Lambda::LayerVersion")
    assert len(layers) == 2


def test_a_store_may_have_no_api_and_nothing_that_watches_it(shop: Stack) -> None:
    store = EventStore(shop, "Events", api=None, watch=False)
    assert (store.gateway, store.functions, store.dashboard) == (None, {}, None)
    types = {each["Type"] for each in template(shop)["Resources"].values()}
    assert not [each for each in types if "ApiGateway" in each or "Dashboard" in each]


def test_options_are_the_settings_and_obey_their_rules(shop: Stack) -> None:
    assert get_type_hints(StoreOptions).keys() == RULES.keys() - APPS_OWN, "cdk/store.py has a line for each"
    with pytest.raises(BadSetting, match=r"EventStore\.log_days must be one of"):
        EventStore(shop, "Events", log_days=2)
    with pytest.raises(BadSetting, match="did you mean retain"):
        EventStore(shop, "Events", retian=True)  # type: ignore[call-arg]
    with pytest.raises(BadSetting, match="must be one of dev, staging, prod"):
        EventStore(shop, "Events", preset="test")  # type: ignore[arg-type]
    with pytest.raises(BadSetting, match=r"3\.13"):
        EventStore(shop, "Events", python="3.10")
    with pytest.raises(BadSetting, match=r"EventStore\.write_shards must be a whole number"):
        EventStore(shop, "Events", write_shards=0)
    with pytest.raises(BadSetting, match=r"EventStore\.existing_shelf is not an argument"):
        EventStore(shop, "Events", existing_shelf="arn")  # type: ignore[call-arg]


def test_a_layout_has_settings_of_its_own(shop: Stack) -> None:
    options = SekibanOptions(write_shards=4, service="shop")
    store = EventStore(
        shop,
        "Events",
        layouts=["pages", "dcb"],
        write_shards=4,
        service="shop",
        dcb_partitions=3,
        api=None,
        watch=False,
    )
    assert store.stage.layouts == ("pages", "dcb")
    assert (store.stage.of_plugin(SekibanOptions), store.stage.partitions("dcb_partitions")) == (options, 3)
    told = [each["Properties"]["Environment"]["Variables"] for each in of_type(shop, FUNCTION).values()]
    assert {each["EPOCHAL_SERVICE"] for each in told if "EPOCHAL_SERVICE" in each} == {"shop"}


def test_a_preset_is_where_settings_begin(shop: Stack) -> None:
    EventStore(shop, "Events", preset="prod", recovery_days=7, api=None, watch=False)
    for table in of_type(shop, TABLE).values():
        assert table["DeletionPolicy"] == "Retain"
        (replica,) = table["Properties"]["Replicas"]
        assert replica["PointInTimeRecoverySpecification"]["RecoveryPeriodInDays"] == 7


def test_a_key_and_a_topic_may_be_of_the_same_app() -> None:
    # A table with a key has to know its region.
    shop = Stack(App(), "Shop", env=Environment(region="eu-west-1"))
    key, topic = kms.Key(shop, "Key"), sns.Topic(shop, "Alarms")
    EventStore(shop, "Events", kms_key=key, alarm_topic=topic, api=None)
    (id_,) = of_type(shop, "AWS::KMS::Key")
    assert all(id_ in str(each) for each in of_type(shop, TABLE).values())
    (topic_id,) = (each for each in of_type(shop, "AWS::SNS::Topic") if each.startswith("Alarms"))
    alarms = of_type(shop, "AWS::CloudWatch::Alarm").values()
    assert all(each["Properties"]["AlarmActions"] == [{"Ref": topic_id}] for each in alarms)


def test_python_and_processor_are_the_ones_that_were_chosen(shop: Stack) -> None:
    EventStore(
        shop,
        "Events",
        api=None,
        watch=False,
        python="3.14",
        architecture=lambda_.Architecture.X86_64,
    )
    for each in of_type(shop, FUNCTION).values():
        assert (each["Properties"]["Runtime"], each["Properties"]["Architectures"]) == (
            "python3.14",
            ["x86_64"],
        )


def test_a_reaction_may_have_a_python_and_a_processor_of_its_own_with_layers_that_fit(
    shop: Stack, sources: Sources
) -> None:
    store = EventStore(shop, "Events", api=None, watch=False)
    older: Any = {"python": "3.11", "architecture": lambda_.Architecture.X86_64}
    (sources.root / "board" / "requirements.txt").write_text("pydantic-core==2.41.5\n")
    for id_, chosen in (("Older", older), ("Usual", {})):
        Reaction(shop, id_, store=store, entry=sources.root / "board", name=id_.lower(), **chosen)
    (sources.root / "board" / "requirements.txt").unlink()
    mine = lambda_.Function(
        shop,
        "Mine",
        code=lambda_.Code.from_inline("def handler(event, context): ..."),
        handler="index.handler",
        runtime=lambda_.Runtime.PYTHON_3_11,
        architecture=lambda_.Architecture.X86_64,
    )
    mine.add_layers(*store.layers(shop, **older).versions)  # those of the reaction
    found = {id_: named(of_type(shop, FUNCTION), id_) for id_ in ("Older", "Usual")}
    assert {id_: (each["Runtime"], each["Architectures"]) for id_, each in found.items()} == {
        "Older": ("python3.11", ["x86_64"]),
        "Usual": ("python3.13", ["arm64"]),
    }
    layers = {id_: {each["Ref"] for each in function["Layers"]} for id_, function in found.items()}
    assert not layers["Older"] & layers["Usual"]
    versions = of_type(shop, "AWS::Lambda::LayerVersion")
    for id_ in layers["Older"]:
        assert versions[id_]["Properties"].get("CompatibleRuntimes", ["python3.11"]) == ["python3.11"]
    own = {each["Ref"] for each in named(of_type(shop, FUNCTION), "Mine")["Layers"]}
    assert own < layers["Older"]


def test_a_python_that_functions_cannot_run_on_is_refused(shop: Stack, sources: Sources) -> None:
    store = EventStore(shop, "Events", api=None, watch=False)
    with pytest.raises(BadSetting, match=r"python must be one of 3\.11, .*, not '3\.10'"):
        Reaction(shop, "Board", store=store, entry=sources.root / "board", name="board", python="3.10")


GRANTS: dict[str, Callable[[EventStore, lambda_.Function], None]] = {
    "append": lambda store, mine: store.grant_append(mine),
    "replay": lambda store, mine: store.grant_read(mine),
    "feed": lambda store, mine: store.grant_feed(mine),
}


@pytest.mark.parametrize("like", GRANTS)
def test_a_grant_gives_what_our_own_function_has_and_is_told(shop: Stack, like: str) -> None:
    store = EventStore(shop, "Events", watch=False)
    GRANTS[like](store, function(shop))
    functions = of_type(shop, FUNCTION)
    ours = named(functions, f"EventsApi{like.capitalize()}")
    told = named(functions, "Mine")["Environment"]["Variables"]
    assert told == {
        name: each for name, each in ours["Environment"]["Variables"].items() if "EPOCHAL" in name
    }
    policy = named(of_type(shop, "AWS::IAM::Policy"), "MineServiceRole")["PolicyDocument"]["Statement"]
    role = named(of_type(shop, "AWS::IAM::Role"), f"EventsApi{like.capitalize()}")
    (inline,) = role["Policies"]
    granted = {str(sorted(each.items(), key=str)) for each in policy}
    assert granted <= {str(sorted(each.items(), key=str)) for each in inline["PolicyDocument"]["Statement"]}
    assert len(granted) == len(inline["PolicyDocument"]["Statement"]) - 1  # its own log


def test_a_reaction_in_the_stores_stack_waits_for_its_tables(shop: Stack, sources: Sources) -> None:
    store = EventStore(shop, "Events", api=None, watch=False)
    Reaction(shop, "Board", store=store, entry=sources.root / "board", name="board")
    told = named(of_type(shop, FUNCTION), "Board")["Environment"]["Variables"]
    assert "Ref" in told[variable("streams_table")]
    topics = of_type(shop, "AWS::SNS::Topic")
    assert named(of_type(shop, "AWS::SNS::Subscription"), "Board")["TopicArn"]["Ref"] in topics


def test_another_stack_finds_the_store_by_its_names_and_comes_after_it(sources: Sources) -> None:
    both = App()
    kept, boards = Stack(both, "Kept"), Stack(both, "Boards")
    store = EventStore(kept, "Events", api=None, watch=False)
    Reaction(boards, "Board", store=store, entry=sources.root / "board", name="board")
    store.grant_read(function(boards))
    for id_ in ("Board", "Mine"):
        told = named(of_type(boards, FUNCTION), id_)["Environment"]["Variables"]
        assert told[variable("streams_table")] == "kept-events-streams"
    assert "Fn::ImportValue" not in str(template(boards))
    assert kept in boards.dependencies


def test_a_store_that_is_deployed_is_found_by_its_name(shop: Stack, sources: Sources) -> None:
    arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/kept/stream/2026-01-01T00:00:00.000"
    store = EventStore.from_name(shop, "Events", "epochal-prod", existing_streams=arn)
    store.grant_append(function(shop))
    Reaction(shop, "Board", store=store, entry=sources.root / "board", name="board")
    told = named(of_type(shop, FUNCTION), "Mine")["Environment"]["Variables"]
    assert told[variable("streams_table")] == "kept"
    assert not of_type(shop, TABLE)
    topic = named(of_type(shop, "AWS::SNS::Subscription"), "Board")["TopicArn"]
    assert topic["Fn::Join"][1][-1] == ":epochal-prod-notices.fifo"


def test_whoever_deploys_says_that_it_is_to_the_embedded_aws(
    shop: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TARGET, "embedded")
    store = EventStore(shop, "Events", preset="prod")
    assert store.dashboard is None
    assert {each["DeletionPolicy"] for each in of_type(shop, TABLE).values()} == {"Delete"}
    assert "aws:SecureTransport" not in str(of_type(shop, "AWS::S3::BucketPolicy"))


DECORATED = """
from epochal import reaction

@reaction(name="departures-board", categories=["Flight"])
def departures(delivery): ...

@reaction(categories=["Flight"], name="delays")
def delays(delivery): ...

function = lambda_handler(delays)

def bare(delivery): ...
"""


@pytest.mark.parametrize(
    ("handler", "name"),
    [("a.b:departures", "departures-board"), ("a.b:delays", "delays"), ("a.b.function", "delays")],
)
def test_a_reactions_name_is_read_from_its_decorator(
    shop: Stack, tmp_path: Path, handler: str, name: str
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.py").write_text(DECORATED)
    store = EventStore(shop, "Events", api=None, watch=False)
    reaction = Reaction(shop, "Board", store=store, entry=tmp_path, handler=handler)
    assert reaction.function.node.scope is not None
    told = named(of_type(shop, FUNCTION), "Board")["Environment"]["Variables"]
    assert (told[variable("reaction")], told.get("EPOCHAL_ENTRY", "a.b.function")) == (name, handler)


UNREAD = """
from epochal import lambda_handler, reaction

def made(name):
    return reaction(name=name)(lambda delivery: None)

orders = made("orders")

@lambda_handler
@reaction(name="stock")
def stock(delivery): ...

@reaction(name="first")
def again(delivery): ...

again = made("second")

def turned(delivery): ...

turned = made("third")

handed = lambda_handler(again)
"""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"handler": "b.delays"}, "handler must be b:delays, with a colon: b.delays is a reaction"),
        ({"handler": "b:delay"}, "handler … which has no delay: did you mean b:delays?"),
        ({"handler": "b.handler"}, "handler … which has no handler: known names are b:departures, b:delays"),
        ({"handler": "missing:delays"}, "entry …missing.py does not exist"),
        (
            {"handler": "b:delays", "name": "late"},
            "name must be delays, the name in the decorator in … not late",
        ),
        (
            {"handler": "b.function", "name": "late"},
            "name must be delays, the name in the decorator in … not late",
        ),
        ({"handler": "b:bare"}, "handler must have the decorator reaction: bare in … has none"),
    ],
)
@pytest.mark.parametrize("name", [None, "delays"])
def test_what_a_reactions_file_shows_to_be_wrong_is_refused_with_a_name_and_without(
    shop: Stack, tmp_path: Path, name: str | None, options: dict[str, str], said: str
) -> None:
    (tmp_path / "b.py").write_text(DECORATED)
    store = EventStore(shop, "Events", api=None, watch=False)
    options = {"name": name, **options} if name else options
    where = f"reactions.{options['name']}" if "name" in options else "Reaction"
    with pytest.raises(BadSetting, match=re.escape(f"{where}.{said}").replace("…", ".*")):
        Reaction(shop, "Board", store=store, entry=tmp_path, **cast(Any, options))


@pytest.mark.parametrize(
    ("text", "handler"),
    [
        (UNREAD, "b:orders"),
        (UNREAD, "b.stock"),
        (UNREAD, "b:again"),
        (UNREAD, "b:turned"),
        (UNREAD, "b.handed"),
        ("def orders(_): ...\nglobals().update(made())", "b:orders"),
        ("from elsewhere import *", "b:orders"),
        ("globals().update(made())", "b:orders"),
        ("of a newer Python", "b:orders"),
    ],
)
def test_a_reaction_that_no_reading_of_its_file_finds_is_deployed_by_the_name_that_is_given(
    shop: Stack, tmp_path: Path, text: str, handler: str
) -> None:
    (tmp_path / "b.py").write_text(text)
    store = EventStore(shop, "Events", api=None, watch=False)
    Reaction(shop, "Board", store=store, entry=tmp_path, handler=handler, name="given")
    assert named(of_type(shop, FUNCTION), "Board")["FunctionName"] == "shop-events-reaction-given"


@pytest.mark.parametrize("handler", ["b:orders", "b.made"])
def test_a_name_that_cannot_be_read_has_to_be_given(shop: Stack, tmp_path: Path, handler: str) -> None:
    (tmp_path / "b.py").write_text(UNREAD)
    store = EventStore(shop, "Events", api=None, watch=False)
    with pytest.raises(BadSetting, match=r"Reaction\.name must be given"):
        Reaction(shop, "Board", store=store, entry=tmp_path, handler=handler)


def test_what_a_reaction_requires_is_a_layer_of_its_own(shop: Stack, tmp_path: Path) -> None:
    (tmp_path / "b.py").write_text(DECORATED)
    (tmp_path / "requirements.txt").write_text("python-slugify==8.0.4\n")
    store = EventStore(shop, "Events", api=None, watch=False)
    Reaction(shop, "Board", store=store, entry=tmp_path, handler="b:delays")
    assert len(named(of_type(shop, FUNCTION), "Board")["Layers"]) == 3


RECIPIENTS: dict[str, tuple[Callable[[Stack], Any], str]] = {
    "bus": (lambda stack: events.EventBus(stack, "To"), "events:PutEvents"),
    "queue": (lambda stack: sqs.Queue(stack, "To"), "sqs:SendMessage"),
    "topic": (lambda stack: sns.Topic(stack, "To"), "sns:Publish"),
    "stream": (lambda stack: kinesis.Stream(stack, "To"), "kinesis:PutRecord"),
    "firehose": (
        lambda stack: firehose.DeliveryStream(
            stack, "To", destination=firehose.S3Bucket(s3.Bucket(stack, "Lake"))
        ),
        "firehose:PutRecordBatch",
    ),
    "webhook": (lambda _: "https://shop.example/events", ""),
}


@pytest.mark.parametrize("kind", RECIPIENTS)
def test_published_events_go_to_the_one_recipient(shop: Stack, kind: str) -> None:
    make, action = RECIPIENTS[kind]
    store = EventStore(shop, "Events", api=None, watch=False)
    Publish(shop, "Orders", store=store, categories=["Order"], to=make(shop))
    published = named(of_type(shop, FUNCTION), "Orders")
    assert published["FunctionName"] == "shop-events-reaction-publish-orders"
    told = str(published["Environment"]["Variables"]["EPOCHAL_PUBLISH"])
    assert f'"to": "{kind}"' in told
    assert '"categories": ["Order"]' in told
    (policy,) = named(of_type(shop, "AWS::IAM::Role"), "Orders")["Policies"]
    statements = policy["PolicyDocument"]["Statement"]
    (own,) = [each for each in statements if action and action in each["Action"] and "To" in str(each)] or [
        {"Resource": ""}
    ]
    assert own["Resource"] != "*"
    assert ("To" in str(own["Resource"])) == (kind != "webhook")


def run_file(path: str, folder: Path) -> dict[str, Any]:
    """A file of the guide, as a module has it."""
    (folder / "file.py").write_text(dict(files(GUIDE))[path])
    return run_path(str(folder / "file.py"))


def test_the_guides_mapping_shows_what_it_says(tmp_path: Path) -> None:
    shown = run_file("publish/orders.py", tmp_path)["shown"]
    data = b'{"customer": "ada", "total": 12}'
    placed = shown(FeedEvent(stream="Order-7", index=0, type="Placed", data=data))
    assert (placed.type, placed.data, placed.subject) == (
        "com.example.order.placed.v1",
        {"total": 12},
        "Order-7",
    )
    assert shown(FeedEvent(stream="Order-7", index=1, type="Noted", data=b"{}")) is None


def test_the_guides_relay_sends_each_event_to_kafka_and_fails_of_what_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[tuple[str, bytes, str]] = []

    class Taken:
        def get(self, timeout: int) -> None:
            if len(taken) == 3:
                raise TimeoutError(timeout)

    class Producer:
        def __init__(self, **said: Any) -> None:
            assert said["bootstrap_servers"] == "b-1:9092"

        def send(self, topic: str, *, key: bytes, value: bytes) -> Taken:
            taken.append((topic, key, json.loads(value)["id"]))
            return Taken()

    kafka: Any = ModuleType("kafka")
    kafka.KafkaProducer = Producer
    monkeypatch.setitem(sys.modules, "kafka", kafka)
    monkeypatch.setenv("BROKERS", "b-1:9092")
    relay = run_file("relay/kafka_orders.py", tmp_path)["relay"]
    feed = MemoryStore()
    feed.streams.append("Order-7", [Event(type="Placed"), Event(type="Shipped")])
    feed.react(relay)
    assert taken == [("orders", b"Order-7", "Order-7@0"), ("orders", b"Order-7", "Order-7@1")]
    feed.streams.append("Order-8", [Event(type="Placed")])
    (ran,) = [each for each in feed.react(replace(relay, attempts=1)) if each.parked]
    assert [each.cause for each in ran.parked] == ["TimeoutError: 10"]


def test_what_is_shown_of_events_is_the_apps_own_to_say(shop: Stack, tmp_path: Path) -> None:
    (tmp_path / "orders.py").write_text("@cache\ndef price(): ...\n\ndef shown(event): ...\n")
    store = EventStore(shop, "Events", api=None, watch=False)
    to = sqs.Queue(shop, "To")
    Publish(shop, "Orders", store=store, to=to, entry=tmp_path, mapping="orders:shown", message_bytes=65_536)
    published = named(of_type(shop, FUNCTION), "Orders")
    assert published["Handler"] == "epochal.contrib.publish.function.handler"
    told = str(published["Environment"]["Variables"]["EPOCHAL_PUBLISH"])
    assert '"mapping": "orders:shown"' in told
    assert '"message_bytes": 65536' in told


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ({"categories": []}, "Publish.categories must not be empty; leave it out to select all"),
        ({"types": ()}, "Publish.types must not be empty; leave it out to select all"),
        ({"mapping": "orders:shown"}, "Publish.entry must be given together with a mapping or a codec"),
        ({"entry": "."}, "Publish.entry must be given together with a mapping or a codec"),
        ({"entry": ".", "mapping": "nowhere:shown"}, "Publish.mapping must be module:name of a file in"),
        ({"entry": ".", "codec": "orders.codec"}, "Publish.codec must be module:name of a file in"),
        ({"entry": ".", "codec": "a:b", "mapping": "a:b"}, "Publish.codec must not be given with a mapping"),
    ],
)
def test_code_that_is_not_there_is_refused_when_the_app_is_synthesised(
    shop: Stack, said: dict[str, Any], rule: str
) -> None:
    store = EventStore(shop, "Events", api=None, watch=False)
    with pytest.raises(BadSetting, match=rule):
        Publish(shop, "Orders", store=store, to="https://a.example", **said)


@pytest.mark.parametrize("one", [{"categories": "Order"}, {"types": "Placed"}])
def test_one_name_is_no_list_of_names_each_of_a_letter(shop: Stack, one: dict[str, Any]) -> None:
    store = EventStore(shop, "Events", api=None, watch=False)
    with pytest.raises(BadSetting, match="must be a list of names, not '"):
        Publish(shop, "Orders", store=store, to="https://shop.example/events", **one)


def test_an_address_that_anyone_could_read_along_is_refused(shop: Stack) -> None:
    store = EventStore(shop, "Events", api=None, watch=False)
    with pytest.raises(BadSetting, match="https://"):
        Publish(shop, "Orders", store=store, to="http://shop.example/events")


def test_an_address_proves_itself_with_secrets_that_only_its_function_reads(shop: Stack) -> None:
    store = EventStore(shop, "Events", api=None, watch=False)
    key = secretsmanager.Secret(shop, "Key", encryption_key=kms.Key(shop, "Wrap"))
    token = secretsmanager.Secret.from_secret_name_v2(shop, "Token", "shop/token")
    to = Webhook("https://shop.example/events", sign_with=key, authorization=token, header="X-Api-Key")
    Publish(shop, "Orders", store=store, to=to)
    told = str(named(of_type(shop, FUNCTION), "Orders")["Environment"]["Variables"]["EPOCHAL_PUBLISH"])
    assert '"header": "X-Api-Key"' in told
    assert "resolve:secretsmanager" not in json.dumps(Template.from_stack(shop).to_json())
    (policy,) = named(of_type(shop, "AWS::IAM::Role"), "Orders")["Policies"]
    statements = policy["PolicyDocument"]["Statement"]
    reading = [each for each in statements if each["Action"] == "secretsmanager:GetSecretValue"]
    own, imported = (json.dumps(each["Resource"]) for each in reading)
    assert json.loads(own)["Ref"].startswith("Key")
    assert ":secret:shop/token-??????" in imported
    (unwrapping,) = [each for each in statements if "kms:Decrypt" in each["Action"]]
    assert "Wrap" in str(unwrapping["Resource"])
    assert "kms:Encrypt" not in unwrapping["Action"]


@pytest.mark.parametrize(
    ("header", "rule"),
    [
        ("X Key", "must be a header"),
        ("webhook-id", "must be a header that requests do not already have"),
        ("X-Key", "needs authorization"),
    ],
)
def test_a_header_that_cannot_be_or_says_nothing_is_refused(header: str, rule: str) -> None:
    with pytest.raises(BadSetting, match=rf"Webhook\.header {rule}"):
        Webhook("https://shop.example/events", header=header)


def elsewhere(**environment: str) -> tuple[EventStore, Stack]:
    """A store in one account and region, and a stack in another."""
    there = {"account": "123456789012", "region": "eu-central-1"}
    mine = App()
    store = EventStore(Stack(mine, "Shop", env=Environment(**there)), "Events", api=None, watch=False)
    return store, Stack(mine, "Other", env=Environment(**{**there, **environment}))


@pytest.mark.parametrize(
    ("environment", "rule"),
    [
        ({"account": "210987654321"}, "is in account 123456789012, and Other/Mine.* in 210987654321"),
        ({"region": "eu-west-1"}, "is in region eu-central-1, and Other/Mine.* in eu-west-1"),
    ],
)
def test_a_function_in_another_account_or_region_is_refused_with_what_to_do_instead(
    environment: dict[str, str], rule: str
) -> None:
    store, other = elsewhere(**environment)
    with pytest.raises(BadSetting, match=f"^store Shop/Events {rule}: .* publish its events"):
        store.grant_append(function(other))
    with pytest.raises(BadSetting, match="^store Shop/Events is in"):
        Publish(other, "Orders", store=store, to="https://shop.example/events")


def test_a_function_beside_the_store_or_in_a_stack_that_says_nothing_is_granted() -> None:
    store, beside = elsewhere()
    store.grant_append(function(beside))
    silent = Stack(Stack.of(store).node.root, "Silent")
    store.grant_append(function(silent))
    assert "shop-events-streams" in str(Template.from_stack(silent).to_json())


def test_an_imported_function_is_refused_which_no_grant_would_reach(shop: Stack) -> None:
    store = EventStore(shop, "Events", api=None, watch=False)
    arn = "arn:aws:lambda:eu-west-1:210987654321:function:theirs"
    imported: Any = lambda_.Function.from_function_arn(shop, "Theirs", arn)
    with pytest.raises(BadSetting, match=r"grant_append must be given a role, .*, not Shop/Theirs"):
        store.grant_append(imported)


@pytest.mark.parametrize("where", ["eu-west-1:123456789012", "eu-central-1:210987654321"])
def test_a_table_that_is_taken_over_is_where_the_stack_goes(where: str) -> None:
    there = Environment(account="123456789012", region="eu-central-1")
    arn = f"arn:aws:dynamodb:{where}:table/kept/stream/2026-01-01T00:00:00.000"
    kept: Any = {"layouts": ["pages"], "existing_index": arn}
    with pytest.raises(
        BadSetting, match=r"existing_index must be in (account|region) \S+, where the stack is deployed"
    ):
        EventStore.from_name(Stack(App(), "Shop", env=there), "Events", "shop", **kept)
    EventStore.from_name(Stack(App(), "Silent"), "Events", "shop", **kept)
