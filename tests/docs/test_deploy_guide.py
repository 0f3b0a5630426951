"""docs/deploy.md: its commands are found from a checkout that `make setup` has set up, and do what it says."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import sys
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from epochal.cli import main as command_line
from tests.support.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "deploy.md").read_text("utf-8")
LINES = [
    line.partition("  #")[0].strip()
    for block in re.findall(r"^```sh\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]
DOCUMENTS = ["README.md", "docs/deploy.md", "docs/first-day.md", "docs/guide/backup.md", "docs/runbook.md"]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_cdk_is_called_where_setup_has_put_it(document: str) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", (ROOT / document).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert not re.findall(r"^cdk .*$", "\n".join(blocks), re.MULTILINE)


def test_cdk_runs_the_app_in_the_environment_that_setup_makes() -> None:
    # `python3` would be whatever the caller's shell finds, which has no CDK where nothing is activated.
    (venv,) = re.findall(r"^VENV := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert json.loads((ROOT / "cdk.json").read_text())["app"] == f"{venv}/bin/python app.py"


@pytest.mark.slow
def test_what_looks_whether_it_is_there_sees_the_event(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(command_line, "open_store", lambda _: terminal.store)
    printed = io.StringIO()
    commands = [shlex.split(line)[1:] for line in LINES if line.startswith("epochal ")]
    assert [each[0] for each in commands] == ["append", "tail"]
    with contextlib.redirect_stdout(printed):
        for each in commands:
            command_line.main(each)
            terminal.index()
    assert printed.getvalue().splitlines()[-1].split() == ["Trial-1", "0", "Tried"]


@mock_aws
def test_what_empties_a_bucket_leaves_no_version_of_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    (program,) = [shlex.split(line.removeprefix("empty="))[0] for line in LINES if line.startswith("empty=")]
    (call,) = [shlex.split(line) for line in LINES if line.startswith(".venv/bin/python -c")]
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    s3 = boto3.client("s3")
    buckets = call[3:]
    assert len(buckets) == 2
    for bucket in buckets:
        s3.create_bucket(Bucket=bucket)
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        for body in (b"1", b"2"):
            s3.put_object(Bucket=bucket, Key="replaced", Body=body)
        s3.delete_object(Bucket=bucket, Key="replaced")
    monkeypatch.setattr(sys, "argv", ["-c", *buckets])
    exec(compile(program, "docs/deploy.md", "exec"), {})  # noqa: S102  the document is ours
    for bucket in buckets:
        s3.delete_bucket(Bucket=bucket)  # refused while it holds anything
