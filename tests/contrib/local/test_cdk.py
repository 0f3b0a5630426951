"""The CDK command line is pointed at the stand-in and at nothing else, and its failures are quoted."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from epochal.cdk.user_cache import user_cache
from epochal.contrib.local import cdk
from epochal.contrib.local.assembly import Assembly, assembly_in
from epochal.contrib.local.endpoint import Endpoint
from epochal.contrib.local.errors import CommandFailed, LookupNeeded
from epochal.contrib.local.programs import Places

ROOT = Path(__file__).resolve().parents[3]
ENDPOINT = Endpoint(url="http://127.0.0.1:4566")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """A checkout whose `node` is a shell script that stands for the command line."""
    places = Places(tmp_path / "checkout")
    own = places.root / "node_modules" / "aws-cdk" / "bin" / "cdk"
    own.parent.mkdir(parents=True)
    own.touch()
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:/bin:/usr/bin")
    script(tmp_path, "exit 0")
    return places


def script(tmp_path: Path, body: str) -> None:
    program(tmp_path / "bin" / "node", body, version="v20.1.0")


def program(path: Path, body: str, *, version: str) -> None:
    path.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then echo "{version}"; exit; fi\n{body}\n')
    path.chmod(0o755)


def assembly(folder: Path, **stacks: str) -> Assembly:
    """What an application of stacks was synthesised to, each for the environment that is given."""
    folder.mkdir(parents=True, exist_ok=True)
    artifacts = {
        name: {"type": "aws:cloudformation:stack", "environment": environment, "properties": {}}
        for name, environment in stacks.items()
    }
    (folder / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
    return assembly_in(folder)


def test_a_deployment_sees_the_stand_in_and_nothing_of_the_users_account(
    checkout: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a real one")
    script(tmp_path, f"env > '{tmp_path}/seen'")
    cdk.deploy(checkout, ENDPOINT, assembly(tmp_path))
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


def arguments(tmp_path: Path) -> list[str]:
    """What the command line was called with."""
    return (tmp_path / "seen").read_text().splitlines()


RECORDED = 'for argument in "$@"; do echo "$argument"; done > "{}/seen"'


def test_an_application_is_synthesised_with_the_context_given(checkout: Places, tmp_path: Path) -> None:
    assembly(tmp_path / "cdk.out")
    script(tmp_path, RECORDED.format(tmp_path))
    cdk.synthesise(checkout, ENDPOINT, work=tmp_path, context={"target": "embedded", "stage": "dev"})
    seen = arguments(tmp_path)
    assert seen[:2] == [str(checkout.root / "node_modules/aws-cdk/bin/cdk"), "synth"]
    assert "--app" not in seen, "cdk.json says it"
    assert [seen[at + 1] for at, word in enumerate(seen) if word == "--context"] == [
        "target=embedded",
        "stage=dev",
    ]


def test_an_application_that_is_named_is_synthesised_instead_of_that_of_the_folder(
    checkout: Places, tmp_path: Path
) -> None:
    assembly(tmp_path / "cdk.out")
    script(tmp_path, RECORDED.format(tmp_path))
    cdk.synthesise(checkout, ENDPOINT, work=tmp_path, app="python infra/app.py")
    seen = arguments(tmp_path)
    assert seen[seen.index("--app") + 1] == "python infra/app.py"


def test_what_was_synthesised_already_is_taken_as_it_is(checkout: Places, tmp_path: Path) -> None:
    made = assembly(checkout.root / "made", Shop="aws://123456789012/eu-central-1")
    script(tmp_path, "exit 1")
    assert cdk.synthesise(checkout, ENDPOINT, work=tmp_path, app="made") == made


def test_every_stack_is_deployed_and_every_account_has_credentials(checkout: Places, tmp_path: Path) -> None:
    script(tmp_path, RECORDED.format(tmp_path))
    cdk.deploy(checkout, ENDPOINT, assembly(tmp_path / "out", Shop="aws://unknown-account/unknown-region"))
    seen = arguments(tmp_path)
    assert seen[1:3] == ["deploy", "--all"]
    assert seen[seen.index("--app") + 1] == str(tmp_path / "out")
    assert Path(seen[seen.index("--plugin") + 1]).is_file()


def test_what_an_application_looks_up_in_an_account_is_named_with_its_stack(
    checkout: Places, tmp_path: Path
) -> None:
    folder = tmp_path / "cdk.out"
    assembly(folder, Net="aws://123456789012/eu-west-1", Shop="aws://123456789012/eu-central-1")
    missing = {"key": "ssm:/a/b", "props": {"account": "123456789012", "region": "eu-central-1"}}
    manifest = json.loads((folder / "manifest.json").read_text()) | {"missing": [missing]}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    script(tmp_path, "exit 1")
    with pytest.raises(LookupNeeded, match=r"^stack Shop: it looks up ssm:/a/b.*commit cdk.context.json"):
        cdk.synthesise(checkout, ENDPOINT, work=tmp_path)


def test_python_is_the_one_that_runs_this_and_templates_are_not_looked_over(
    checkout: Places, tmp_path: Path
) -> None:
    script(tmp_path, f'echo "$CDK_VALIDATION" "$PATH" > "{tmp_path}/seen"')
    cdk.deploy(checkout, ENDPOINT, assembly(tmp_path))
    validation, _, path = (tmp_path / "seen").read_text().partition(" ")
    assert (validation, path.split(":")[0]) == ("false", str(Path(sys.executable).parent))


def test_resources_are_told_as_they_are_made(checkout: Places, tmp_path: Path) -> None:
    lines = [
        "✨  Synthesis time: 8.62s",
        "Probe: start: Building F/Code",
        "Probe |   0 | 6:12:55 AM | CREATE_IN_PROGRESS      | AWS::DynamoDB::Table           | T (TD925BC7E) ",
        "Probe |   5 | 6:12:55 AM | CREATE_COMPLETE         | AWS::DynamoDB::Table           | T (TD925BC7E) ",
        "Probe |   6 | 6:12:55 AM | CREATE_FAILED           | AWS::IAM::Role | F/Role (F3) no such principal",
    ]
    (tmp_path / "lines").write_text("\n".join(lines))
    script(tmp_path, f"cat '{tmp_path}/lines'")
    told: list[str] = []
    cdk.deploy(checkout, ENDPOINT, assembly(tmp_path), tell=told.append)
    assert told == [
        "Probe: AWS::DynamoDB::Table T",
        "Probe: CREATE_FAILED AWS::IAM::Role F/Role (F3) no such principal",
    ]


def test_a_failed_deployment_is_raised_with_the_end_of_its_output(checkout: Places, tmp_path: Path) -> None:
    script(tmp_path, "seq 1 100; echo 'no such bucket' >&2; exit 1")
    with pytest.raises(CommandFailed, match="`cdk deploy` exited with status 1") as caught:
        cdk.deploy(checkout, ENDPOINT, assembly(tmp_path))
    assert caught.value.output_end.splitlines()[-2:] == ["100", "no such bucket"]
    assert len(caught.value.output_end.splitlines()) == cdk.OUTPUT_END_LINES


@pytest.fixture
def bare(checkout: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """A project without a command line of its own, and a registry that has one."""
    (checkout.root / "node_modules" / "aws-cdk" / "bin" / "cdk").unlink()
    archive = tmp_path / "archive.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("package/bin/cdk"), io.BytesIO())
    pinned = replace(cdk.PACKAGE, sha256=hashlib.sha256(archive.read_bytes()).hexdigest())
    monkeypatch.setattr(cdk, "PACKAGE", pinned)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    program(
        tmp_path / "bin" / "npm",
        f'echo "$2" >> "{tmp_path}/fetched"\nwhile [ "$1" != --pack-destination ]; do shift; done\n'
        f'cp "{archive}" "$2/aws-cdk-{cdk.PACKAGE.version}.tgz"',
        version="10.1.0",
    )
    return checkout


def test_without_a_command_line_the_pinned_one_is_fetched_once_for_the_user(
    bare: Places, tmp_path: Path
) -> None:
    first, second = cdk.command_line(bare), cdk.command_line(bare)
    assert (
        first
        == second
        == [str(tmp_path / "bin" / "node"), str(cdk.PACKAGE.directory(user_cache()) / "bin/cdk")]
    )
    assert Path(first[1]).is_relative_to(tmp_path / "cache" / "epochal")
    assert (tmp_path / "fetched").read_text() == f"aws-cdk@{cdk.PACKAGE.version}\n"


@pytest.mark.parametrize(
    ("version", "taken"),
    [("2.1148.1 (build 1)", True), ("2.2000.0", True), ("2.1147.9", False), ("3.0.0", False), ("odd", False)],
)
def test_one_on_the_path_is_taken_if_it_is_new_enough_and_of_the_same_major(
    bare: Places, tmp_path: Path, version: str, taken: bool
) -> None:
    program(tmp_path / "bin" / "cdk", "exit 0", version=version)
    assert (cdk.command_line(bare) == [str(tmp_path / "bin" / "cdk")]) is taken


def test_what_is_fetched_is_what_the_checkout_pins() -> None:
    pinned = json.loads((ROOT / "package.json").read_text())["dependencies"]["aws-cdk"]
    assert cdk.PACKAGE.version == pinned
