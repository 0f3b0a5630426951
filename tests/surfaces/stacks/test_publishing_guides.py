"""The stacks of the guides that send events on are synthesised as they are written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Match, Template

from epochal.cdk import EventStore
from tests.surfaces.stacks.templates import ROOT

GUIDES = ("reactions-in-other-languages", "streaming")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    code = tmp_path_factory.mktemp("dist")
    Path(code, "handler.mjs").write_text("export const handler = () => ({});")
    stack = Stack(App(), "Shop")
    page: dict[str, Any] = {
        "stack": stack,
        "store": EventStore(stack, "Events", layouts=["pages"], api=None, watch=False),
    }
    for name in GUIDES:
        text = (ROOT / "docs" / "guide" / f"{name}.md").read_text("utf-8")
        for block in re.findall(r"^```py\n(.*?)^```\n", text, re.MULTILINE | re.DOTALL):
            exec(block.replace("search/dist", str(code)), page)  # noqa: S102  the pages are ours
    return Template.from_stack(stack)


@pytest.mark.slow
def test_the_queue_of_a_function_keeps_the_order_and_hears_of_each_failure(template: Template) -> None:
    mapping = {"FunctionResponseTypes": ["ReportBatchItemFailures"], "BatchSize": 10}
    template.has_resource_properties("AWS::Lambda::EventSourceMapping", mapping)
    dead = {
        "FifoQueue": True,
        "RedrivePolicy": {"maxReceiveCount": 5, "deadLetterTargetArn": Match.any_value()},
    }
    template.has_resource_properties("AWS::SQS::Queue", dead)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["publish-search", "publish-search2", "publish-everything"])
def test_each_publish_of_the_guides_is_a_group_of_the_name_that_they_say(
    template: Template, name: str
) -> None:
    variables = {"EPOCHAL_REACTION": name}
    template.has_resource_properties(
        "AWS::Lambda::Function", {"Environment": {"Variables": Match.object_like(variables)}}
    )
