"""What AWS refuses by size is refused at synthesis: the deployment would fail halfway and roll its stack back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs

from epochal import plugins
from epochal.cdk import EventStore, Reaction
from epochal.cdk.parts import api
from epochal.cdk.rules import BadSetting
from epochal.cdk.sources import Sources
from epochal.cdk.targets import TARGET
from epochal.contrib.lake.cdk import Lake
from epochal.contrib.publish.cdk import Publish
from epochal.http.routes import operations
from tests.layouts.test_toy_layout import TOY


@pytest.fixture(autouse=True)
def shipped(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sources, "shipped", lambda: sources)
    monkeypatch.delenv(TARGET, raising=False)


def stack_in(region: str | None = None) -> Stack:
    return Stack(App(), "Shop", env=Environment(region=region) if region else None)


def stored(stack: Stack, **options: Any) -> EventStore:
    """A store without what no size depends on."""
    return EventStore(stack, "Events", **{"api": None, "watch": False, **options})


@pytest.fixture(scope="module")
def shop(sources: Sources) -> EventStore:
    """A store to which tests add one construct each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sources, "shipped", lambda: sources)
        patch.delenv(TARGET, raising=False)
        return stored(stack_in(), name="shop", read_models=True, boto3="tested")


class TestABucketHas63Characters:
    @pytest.mark.parametrize(
        ("store", "lake", "region", "refused"),
        [
            ("shop-events-of-all-regions", "SalesAnalytics", "eu-central-1", True),
            ("epochal-prod", "twenty-three-characters", None, True),
            ("epochal-prod", "twenty-four-characters-x", "us-gov-west-1", True),
            ("epochal-prod", "twenty-three-characters", "us-gov-west-1", False),
            ("shop-events-of-all-regions", "nine-char", None, True),
            ("shop-events-of-all-regions", "eight-ch", None, False),
        ],
    )
    def test_of_a_lake(self, store: str, lake: str, region: str | None, refused: bool) -> None:
        stack = stack_in(region)
        there = EventStore.from_name(stack, "Events", store)
        if not refused:
            Lake(stack, lake, store=there)
            return
        with pytest.raises(BadSetting, match=r"Lake\.name .* at most \d+ characters .* 63") as error:
            Lake(stack, lake, store=there)
        assert "name=" in str(error.value)


class TestAnEnvironmentHas4096Bytes:
    def test_of_what_is_published(self, shop: EventStore) -> None:
        types = [f"TheNameOfAnEventThatIsFortyEightCharactersLong{n:02}" for n in range(90)]
        assert {len(each) for each in types} == {48}
        queue = sqs.Queue(shop, "Queue")
        with pytest.raises(BadSetting, match=r"environment .*4,096.*EPOCHAL_PUBLISH") as refused:
            Publish(shop, "Orders", store=shop, to=queue, types=types)
        assert "categories" in str(refused.value)
        Publish(shop, "Fewer", store=shop, to=queue, types=types[:40])

    def test_of_a_handler(self, shop: EventStore, sources: Sources) -> None:
        def made(name: str, size: int) -> None:
            environment = {"TABLE_OF_RATES": "é" * size}
            Reaction(shop, name, store=shop, entry=sources.root / "board", name=name, environment=environment)

        with pytest.raises(BadSetting, match=r"reactions\.rates\.environment .*4,096.*TABLE_OF_RATES"):
            made("rates", 2_000)
        made("small-rates", 1_500)

    def test_of_what_a_stage_chooses(self) -> None:
        with pytest.raises(BadSetting, match=r"tagged_types .*4,096"):
            stored(stack_in(), tagged_types=[f"NameOfAnEventOfTheShop{n:03}" for n in range(200)], api="urls")


class TestAMappingHasFiveFilters:
    def test_of_changes_through_kinesis(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(plugins, "LAYOUTS", (*plugins.LAYOUTS, TOY))
        with pytest.raises(BadSetting, match=r"feed_kinesis_shards .*6 filters.* 5") as refused:
            stored(stack_in(), layouts=None, feed_kinesis_shards=1)
        assert "layouts" in str(refused.value)

    def test_of_one_table(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("epochal.cdk.parts.feed.heads_of", lambda _: ["{}"] * 6)
        with pytest.raises(BadSetting, match=r"layouts .*6 filters.* 5"):
            stored(stack_in())

    def test_of_no_more_than_five_is_made(self) -> None:
        stored(stack_in(), layouts=None, feed_kinesis_shards=1)


class TestAResourcePolicyHas20Kilobytes:
    @pytest.mark.parametrize(("more", "length"), [(40, 10), (8, 1_000)], ids=["many routes", "long paths"])
    def test_of_a_function_behind_routes(
        self, more: int, length: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        usual = operations()
        (one,) = (each for each in usual if each.key == "GET /streams/{stream}")
        further = [replace(one, path=f"/{'x' * length}/{n}", perform=f"read_{n}") for n in range(more)]
        monkeypatch.setattr(api, "operations", lambda: (*usual, *further))
        with pytest.raises(BadSetting, match=r"layouts .*replay.*routes.* 20,480") as refused:
            stored(stack_in(), api="gateway", layouts=None)
        assert "urls" in str(refused.value)


class TestARoleHas10240Bytes:
    def test_of_what_a_handler_may_do(self, shop: EventStore, sources: Sources) -> None:
        tables = [f"arn:aws:dynamodb:eu-west-1:123456789012:table/table-{n:03}" for n in range(180)]
        permissions = [iam.PolicyStatement(actions=["dynamodb:GetItem"], resources=tables)]
        with pytest.raises(BadSetting, match=r"reactions\.wide\.permissions .* 10,240"):
            Reaction(
                shop, "Wide", store=shop, entry=sources.root / "board", name="wide", permissions=permissions
            )

    def test_of_its_read_models(self, shop: EventStore, sources: Sources) -> None:
        models = [f"read-model-of-a-long-name-{n:03}" for n in range(150)]
        with pytest.raises(BadSetting, match=r"reactions\.boards\.(permissions|read_models) .* 10,240"):
            Reaction(
                shop, "Boards", store=shop, entry=sources.root / "board", name="boards", read_models=models
            )


class TestAFunctionHasFiveLayers:
    def test_of_a_reaction(self, shop: EventStore, sources: Sources) -> None:
        def made(name: str, count: int) -> None:
            arn = "arn:aws:lambda:eu-west-1:123456789012:layer:tool:{}"
            layers = [
                lambda_.LayerVersion.from_layer_version_arn(shop, f"{name}{n}", arn.format(n + 1))
                for n in range(count)
            ]
            Reaction(shop, name, store=shop, entry=sources.root / "board", name=name, more_layers=layers)

        with pytest.raises(BadSetting, match=r"reactions\.tools\.more_layers .*6 layers.* 5"):
            made("tools", 3)
        made("fewer-tools", 2)

    def test_of_a_function_with_everything(
        self, sources: Sources, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
    ) -> None:
        (tmp_path / "handler.py").write_text("handler = print\n")
        (tmp_path / "requirements.txt").write_text("cowsay==6.1\n")
        brought = replace(sources, layouts=lambda _, platform: sources.vendor(platform))
        monkeypatch.setattr(Sources, "shipped", lambda: brought)
        monkeypatch.setattr("epochal.cdk.stages.Stage.brought_layouts", lambda _: ("shelf",))
        stack = stack_in()
        store = stored(stack, name="shelves", boto3="tested")
        arn = "arn:aws:lambda:eu-west-1:123456789012:layer:tool:1"
        tool = lambda_.LayerVersion.from_layer_version_arn(stack, "Tool", arn)
        with pytest.raises(BadSetting, match=r"reactions\.all\.more_layers .*6 layers.* 5") as refused:
            Reaction(stack, "All", store=store, entry=tmp_path, name="all", more_layers=[tool])
        assert "boto3" in str(refused.value)
