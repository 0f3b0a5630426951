"""AWS's own rules for solutions (cdk-nag, pack AwsSolutions) over every stack: they find nothing but what is listed.

What is listed stands here and not in the stacks: findings are named by logical ids, and whoever deploys these stacks
under rules of their own should decide for themselves what to acknowledge.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from aws_cdk import App, Stack, Validations
from aws_cdk import aws_events as events
from cdk_nag import AwsSolutionsChecks

from epochal.cdk import EventStore, Reaction
from epochal.cdk.sources import Sources
from epochal.contrib.lake.cdk import Lake
from epochal.contrib.publish.cdk import Publish
from stacks.deployment import deployment
from tests.surfaces.stacks.templates import context_of_repository

REACTION: Final = {"board": {"entry": "board", "read_models": ["counts"]}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A finding that stands, and why: patterns of its rule and of the construct's path, both as a whole."""

    rule: str
    path: str
    reason: str


ACCEPTED: Final = (
    Accepted(
        rule=r"AwsSolutions-S1",
        path=r"[\w-]+-store/Bodies/Resource",
        reason="Objects are read through URLs that a function signs, and the gateway's log tells for whom; S3's own "
        "would need another bucket that keeps keys for ever. CloudTrail's data events do it better, by account.",
    ),
    Accepted(
        rule=r"AwsSolutions-S1",
        path=r"[\w-]+-feed/Failures/Resource",
        reason="Lambda writes what a mapping gave up on, and it expires after 90 days: nobody else has access.",
    ),
    Accepted(
        rule=r"AwsSolutions-IAM5\[Resource::\*\]",
        path=r"[\w-]+-feed/Indexer/Role/Resource",
        reason="dynamodb:ListStreams, which knows no resource; mappings of streams are refused without it.",
    ),
    Accepted(
        rule=r"AwsSolutions-IAM5\[Resource::<Failures\w+\.Arn>/aws/lambda/\*\]",
        path=r"[\w-]+-feed/\w+(/\w+)?/Role/Resource",
        reason="Lambda names the objects that it writes; the prefix is as far as their names can be told.",
    ),
    Accepted(
        rule=r"AwsSolutions-IAM5\[Resource::[^\]]*/(bodies|uploads|projections)/\*\]",
        path=r"[\w-]+-(api/(Append|Replay|Feed)|reactions/board/Function|feed/Timers/(Arming/)?Function)/Role/Resource",
        reason="Objects are named by the hash of what they hold, or by version and state: all below one prefix.",
    ),
    Accepted(
        rule=r"AwsSolutions-IAM5\[Resource::[^\]]*:schedule/[\w-]+-timers/\*\]",
        path=r"[\w-]+-feed/Timers/(Arming/)?Function/Role/Resource",
        reason="Schedules are named by the minutes that timers are due in: all of one group.",
    ),
    Accepted(
        rule=r"AwsSolutions-L1",
        path=r"[\w-]+/Function(/Function)?/Resource|[\w-]+(/[\w-]+)+/Function/Resource",
        reason="One Python version is pinned for functions, wheels and tests together, and is supported for years: "
        "which one is a change with tests, not the day's latest.",
    ),
)


@pytest.fixture(scope="module")
def findings(sources: Sources, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """(rule, path) of all that is found in production's stacks, as they are and with a key and tokens of one's own."""
    own_key = {"kms_key": "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"}
    tokens = {"jwt_issuer": "https://id.example", "jwt_audience": ["epochal"]}
    return [
        each
        for settings in ({}, {**own_key, **tokens})
        for each in found(sources, settings, tmp_path_factory.mktemp("nag"))
    ]


def test_aws_own_rules_find_nothing_but_what_is_accepted_for_a_reason(
    findings: list[tuple[str, str]],
) -> None:
    assert not [each for each in findings if not any(map(matching(*each), ACCEPTED))]


def test_nothing_is_accepted_that_is_not_found(findings: list[tuple[str, str]]) -> None:
    assert not [each for each in ACCEPTED if not any(matching(*finding)(each) for finding in findings)]


def matching(rule: str, path: str) -> Any:
    return lambda accepted: re.fullmatch(accepted.rule, rule) and re.fullmatch(accepted.path, path)


def found(sources: Sources, settings: dict[str, Any], place: Path) -> Iterator[tuple[str, str]]:
    """What the rules say of one synthesis, which they stop: something is accepted everywhere."""
    stages = {"prod": {**settings, "reactions": REACTION, "read_models": True, "timers": True}}
    context = {**context_of_repository(), "stage": "prod", "target": "aws", "stages": stages}
    app = App(context=context, outdir=str(place))
    deployment(app, sources)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    with pytest.raises(RuntimeError, match="AwsSolutions"):
        app.synth()
    yield from violations(place)


def violations(place: Path) -> Iterator[tuple[str, str]]:
    """(rule, path) of all that was found."""
    reports = json.loads((place / "validation-report.json").read_text())["pluginReports"]
    for violation in (each for report in reports for each in report["violations"]):
        for construct in violation["violatingConstructs"]:
            yield violation["ruleName"], construct["constructPath"]


OWN: Final = (
    (r"AwsSolutions-S1", r"Shop/(Events/(Store/Bodies|Feed/Failures)|Lake/Files)/Resource"),
    (r"AwsSolutions-IAM5\[Resource::\*\]", r"Shop/Events/Feed/Indexer/Role/Resource"),
    (
        r"AwsSolutions-IAM5\[Resource::<\w+Failures\w+\.Arn>/aws/lambda/\*\]",
        r"Shop/Events/Feed/.*/Role/Resource",
    ),
    (
        r"AwsSolutions-IAM5\[Resource::[^\]]*/(bodies|uploads|projections)/\*\]",
        r"Shop/(Events/Api/\w+|(Board|Orders|Lake/Rows)/Function)/Role/(Resource|DefaultPolicy/Resource)",
    ),
    # Firehose names the files that it writes.
    (r"AwsSolutions-IAM5\[Resource::<LakeFiles\w+\.Arn>/(events|errors)/\*\]", r"Shop/Lake/Role/Resource"),
    (r"AwsSolutions-L1", r"Shop/.*/Function/Resource"),
    (r"AwsSolutions-APIG1", r"Shop/Events/Api/Live/Resource"),  # `dev` has no access log
)
"""What is found of a store in an app of one's own: what is accepted of ours, for the same reasons."""


@pytest.mark.proof
def test_constructs_in_an_app_of_ones_own_are_found_nothing_else_in(
    sources: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sources, "shipped", lambda: sources)
    app = App(outdir=str(tmp_path))
    stack = Stack(app, "Shop")
    store = EventStore(stack, "Events", layouts=["pages"])
    Reaction(stack, "Board", store=store, entry=sources.root / "board", name="board")
    Publish(stack, "Orders", store=store, to=events.EventBus(stack, "Bus"))
    Lake(stack, "Lake", store=store)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    with pytest.raises(RuntimeError, match="AwsSolutions"):
        app.synth()
    found = list(violations(tmp_path))
    assert found
    assert not [
        (rule, path)
        for rule, path in found
        if not any(re.fullmatch(each, rule) and re.fullmatch(where, path) for each, where in OWN)
    ]
