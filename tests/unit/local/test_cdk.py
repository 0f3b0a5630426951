"""The CDK command line is pointed at the stand-in and at nothing else, and its failures are quoted."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from epochal.local import cdk
from epochal.local.endpoint import Endpoint
from epochal.local.errors import CommandFailed, ProgramMissing
from epochal.local.places import Places

ENDPOINT = Endpoint(url="http://127.0.0.1:4566")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """A checkout whose `node` is a shell script that stands for the command line."""
    places = Places(tmp_path / "checkout")
    places.cdk.parent.mkdir(parents=True)
    places.cdk.touch()
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:/bin:/usr/bin")
    script(tmp_path, "exit 0")
    return places


def script(tmp_path: Path, body: str) -> None:
    node = tmp_path / "bin" / "node"
    node.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then echo v20.1.0; exit; fi\n{body}\n')
    node.chmod(0o755)


def test_a_deployment_sees_the_stand_in_and_nothing_of_the_users_account(
    checkout: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a real one")
    script(tmp_path, f"env > {tmp_path}/seen")
    cdk.deploy(checkout, ENDPOINT, work=tmp_path, context={})
    seen = dict(line.split("=", 1) for line in (tmp_path / "seen").read_text().splitlines())
    assert {name: value for name, value in seen.items() if name.startswith("AWS_")} == {
        "AWS_ENDPOINT_URL": ENDPOINT.url,
        "AWS_ENDPOINT_URL_S3": ENDPOINT.url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def test_every_stack_is_deployed_with_this_interpreter_and_the_context_given(
    checkout: Places, tmp_path: Path
) -> None:
    script(tmp_path, f'for argument in "$@"; do echo "$argument"; done > {tmp_path}/seen')
    outputs = cdk.deploy(checkout, ENDPOINT, work=tmp_path, context={"target": "embedded", "stage": "dev"})
    seen = (tmp_path / "seen").read_text().splitlines()
    assert seen[:3] == [str(checkout.cdk), "deploy", "--all"]
    assert seen[seen.index("--app") + 1] == f"{sys.executable} app.py unvalidated"
    assert seen[seen.index("--outputs-file") + 1] == str(outputs)
    assert [seen[at + 1] for at, word in enumerate(seen) if word == "--context"] == [
        "target=embedded",
        "stage=dev",
    ]


def test_resources_are_told_as_they_are_made(checkout: Places, tmp_path: Path) -> None:
    lines = [
        "✨  Synthesis time: 8.62s",
        "Probe: start: Building F/Code",
        "Probe |   0 | 6:12:55 AM | CREATE_IN_PROGRESS      | AWS::DynamoDB::Table           | T (TD925BC7E) ",
        "Probe |   5 | 6:12:55 AM | CREATE_COMPLETE         | AWS::DynamoDB::Table           | T (TD925BC7E) ",
        "Probe |   6 | 6:12:55 AM | CREATE_FAILED           | AWS::IAM::Role | F/Role (F3) no such principal",
    ]
    (tmp_path / "lines").write_text("\n".join(lines))
    script(tmp_path, f"cat {tmp_path}/lines")
    told: list[str] = []
    cdk.deploy(checkout, ENDPOINT, work=tmp_path, context={}, tell=told.append)
    assert told == [
        "Synthesis time: 8.62s",
        "Probe: AWS::DynamoDB::Table T",
        "Probe: CREATE_FAILED AWS::IAM::Role F/Role (F3) no such principal",
    ]


def test_a_failed_deployment_is_raised_with_the_end_of_its_output(checkout: Places, tmp_path: Path) -> None:
    script(tmp_path, "seq 1 100; echo 'no such bucket' >&2; exit 1")
    with pytest.raises(CommandFailed, match="`cdk deploy` ended with status 1") as caught:
        cdk.deploy(checkout, ENDPOINT, work=tmp_path, context={})
    assert caught.value.output_end.splitlines()[-2:] == ["100", "no such bucket"]
    assert len(caught.value.output_end.splitlines()) == cdk.OUTPUT_END_LINES


def test_without_the_command_line_it_says_how_to_get_it(checkout: Places, tmp_path: Path) -> None:
    checkout.cdk.unlink()
    with pytest.raises(ProgramMissing, match="cdk: .*node_modules.*npm ci"):
        cdk.deploy(checkout, ENDPOINT, work=tmp_path, context={})
