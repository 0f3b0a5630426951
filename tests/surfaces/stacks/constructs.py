"""An app with every construct."""

from __future__ import annotations

from typing import Any

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from aws_cdk.assertions import Template

from epochal.cdk import EventStore, Reaction
from epochal.cdk.sources import Sources
from epochal.cdk.targets import TARGET
from epochal.contrib.lake.cdk import Lake
from epochal.contrib.processes.cdk import Process
from epochal.contrib.publish.cdk import Publish, Webhook
from epochal.contrib.subjects.cdk import SubjectKeys
from tests.support.account import PLACE
from tests.surfaces.stacks.templates import ROOT


def constructs_of(sources: Sources) -> dict[str, dict[str, Any]]:
    """The template of a stack with every construct, as it is today."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sources, "shipped", lambda: sources)
        patch.delenv(TARGET, raising=False)
        app = App()
        shop = Stack(app, "Shop", env=Environment(region=PLACE["AWS::Region"]))
        store = EventStore(shop, "Events", layouts=["pages"], api=None, watch=False)
        Reaction(shop, "Board", store=store, entry=sources.root / "board", name="board")
        checkout = ROOT / "examples" / "checkout"
        Process(shop, "Checkout", store=store, entry=checkout, handler="checkout:Checkout")
        Publish(shop, "Bus", store=store, to=events.EventBus(shop, "ToBus"))
        Publish(shop, "Queue", store=store, to=sqs.Queue(shop, "ToQueue"), categories=["Order"])
        Publish(shop, "Hook", store=store, to=Webhook("https://shop.example/events"))
        lake = Lake(shop, "Lake", store=store, categories=["Order"])
        analyst = iam.Role(shop, "Analyst", assumed_by=iam.AccountRootPrincipal())
        lake.grant_query(analyst)
        SubjectKeys(shop, "Subjects", store=store).grant_sealing(analyst)
        return {"Shop": Template.from_stack(shop).to_json()}
