"""One context value makes a deployment local. Everything that it changes is on the list below, with its reason."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from typing import Any

import pytest
from aws_cdk import aws_lambda as lambda_

from epochal.cdk.targets import Target, architecture, wheels
from epochal.settings import LAMBDA_PYTHON
from tests.surfaces.stacks.templates import Deployment, Synthesise

INTENDED = {
    r".*/(DeletionPolicy|UpdateReplacePolicy)": "the embedded AWS keeps nothing",
    r".*/Replicas/0/DeletionProtectionEnabled": "the same",
    r"/\w+/Resources/(Bodies|Failures|NoticesTopic|board(Queue|Failed))Policy.*": "plain HTTP is all it speaks",
    r".*/(Indexer|boardFunction|EpochalWaker\w+)Role\w+/Properties/Policies/.*/Action.*": "it names batches",
    r".*/AuditAuditorRole\w+/Properties/Policies/.*/Action.*": "and asks about mappings by another name",
    r".*/(Architectures|CompatibleArchitectures)/0": "functions run on this machine",
    r".*/LayersLibrary\w+/Properties/Content/S3Key": "on its interpreter, with its bytecode",
    r".*/LayersVendor\w+/Properties/Content/S3Key": "and with its wheels",
    r"/\w+/(Parameters/BootstrapVersion|Rules/CheckBootstrapVersion)/.*": "no bootstrap is needed",
    r".*/Variables/POWERTOOLS_LOG_LEVEL": "nobody but the developer reads its logs",
    r".*/LoggingConfig/(Application|System)LogLevel": "the same",
    r"/\w+/Resources/Watch.*": "it knows no alarms on several metrics",
}


REACTIONS = {"board": {"entry": "board"}}


@pytest.mark.parametrize("stage", ["dev", "staging", "prod"])
def test_the_two_targets_differ_only_in_what_is_intended(synthesise: Synthesise, stage: str) -> None:
    here, there = (dict(leaves(synthesise(stage, each, reactions=REACTIONS))) for each in ("embedded", "aws"))
    there = {path: value for path, value in there.items() if not path.startswith("/watch/")}
    differing = {path for path in here.keys() | there.keys() if here.get(path) != there.get(path)}
    unintended = {path for path in differing if not any(re.fullmatch(each, path) for each in INTENDED)}
    assert not unintended


@pytest.mark.parametrize("consumer", ["board", "Timers"])
def test_who_leases_messages_may_do_so_for_a_batch_under_the_embedded_name(
    synthesise: Synthesise, consumer: str
) -> None:
    """The embedded AWS refuses a batch under AWS's name; without leases, failed runs come again late."""
    deployment = synthesise("dev", "embedded", reactions=REACTIONS, timers=True)
    documents = [
        str(policy["PolicyDocument"])
        for stack in deployment.stacks
        for name, role in deployment.of_type(stack, "AWS::IAM::Role").items()
        if consumer in name
        for policy in role["Properties"].get("Policies", ())
    ]
    assert any("sqs:ChangeMessageVisibilityBatch" in document for document in documents)


def test_nothing_is_deployed_locally_that_aws_would_not_get(synthesise: Synthesise) -> None:
    assert set(synthesise("prod", "embedded").stacks) == {"store", "feed", "api"}
    assert set(synthesise("prod", "aws").stacks) == {"store", "feed", "api", "watch"}
    here, there = dict(leaves(synthesise("prod", "embedded"))), dict(leaves(synthesise("prod", "aws")))
    named_otherwise = re.compile(r"/(Indexer|AuditAuditor)Role")
    assert not [path for path in here.keys() - there.keys() if not named_otherwise.search(path)]


def test_a_production_stage_keeps_nothing_on_the_embedded_aws(synthesise: Synthesise) -> None:
    deployment = synthesise("prod", "embedded")
    assert not [each for each in deployment.resources() if each.get("DeletionPolicy") == "Retain"]
    assert not any(stack.termination_protection for stack in deployment.stacks.values())


def test_aws_gets_wheels_for_graviton_wherever_it_is_deployed_from() -> None:
    found = wheels(Target.AWS)
    assert found.python == LAMBDA_PYTHON
    assert all(tag.endswith("_aarch64") for tag in found.tags)
    assert architecture(Target.AWS).name == "arm64"


def test_a_python_on_the_older_linux_gets_wheels_that_its_c_library_fits() -> None:
    x86 = lambda_.Architecture.X86_64
    assert wheels(Target.AWS, "3.11", x86).tags == ("manylinux2014_x86_64",)
    assert wheels(Target.AWS, "3.12", x86).tags == ("manylinux_2_28_x86_64", "manylinux2014_x86_64")


def test_the_embedded_aws_gets_what_runs_on_this_machine() -> None:
    expected = {"x86_64": "x86_64", "AMD64": "x86_64"}.get(platform.machine(), "arm64")
    assert architecture(Target.EMBEDDED).name == expected
    assert wheels(Target.EMBEDDED).python == ".".join(platform.python_version_tuple()[:2])
    assert wheels(Target.EMBEDDED).tags == ()


def leaves(deployment: Deployment) -> Iterator[tuple[str, Any]]:
    """Every value in every template, by its path."""
    waiting = [(f"/{kind}", deployment.template(kind)) for kind in deployment.stacks]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict) and value:
            waiting += [(f"{path}/{key}", each) for key, each in value.items()]
        elif isinstance(value, list) and value:
            waiting += [(f"{path}/{number}", each) for number, each in enumerate(value)]
        else:
            yield path, value
