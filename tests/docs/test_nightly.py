"""The nightly workflow: off until it is asked for, without a secret, on a stage of its own that it destroys."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from epochal.cli.main import epochal
from epochal.contrib.event_store_adapter import AdapterOptions
from stacks.stages import stage_from

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW: dict[Any, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "nightly-aws.yml").read_text())
(JOB,) = WORKFLOW["jobs"].values()
RUNS: list[str] = [step["run"] for step in JOB["steps"] if "run" in step]
RESTORE = ROOT / ".ci" / "restore"


def test_nothing_runs_until_the_owner_names_a_role() -> None:
    assert JOB["if"] == "vars.AWS_ROLE != ''"
    assert JOB["permissions"] == {"contents": "read", "id-token": "write"}
    assert WORKFLOW["permissions"] == {"contents": "read"}
    text = json.dumps(WORKFLOW, default=str)
    assert "secrets." not in text
    (assumed,) = re.findall(r"role-to-assume\": \"(.*?)\"", text)
    assert assumed == "${{ vars.AWS_ROLE }}"


def test_no_command_is_made_of_what_others_write() -> None:
    """An expression in a command is text that a shell runs; variables of the environment are not."""
    assert not [run for run in RUNS if "${{" in run]


@pytest.mark.parametrize("name", ["BEFORE", "STAGES"])
def test_the_stage_is_a_throwaway_of_its_own(name: str) -> None:
    stage = stage_from("dev", JOB["env"][name])
    assert stage.named("store") == JOB["env"]["EPOCHAL_STACK"]
    assert (stage.prefix, stage.recovery_days) == ("epochal-nightly", 1)
    assert not stage.retain
    assert not stage.deletion_protection
    assert {"order", "EpochalProof"} <= set(stage.of_plugin(AdapterOptions).aggregate_types)


def test_it_goes_from_the_last_release_to_this_one_and_always_ends_with_the_stage_destroyed() -> None:
    order = [
        "cdk bootstrap",
        'deploy --all --require-approval never -c stage=dev -c stages="$BEFORE"',
        'deploy --all --require-approval never -c stage=dev -c stages="$STAGES"',
        "epochal read Before-1",
        "epochal prove",
        "make contract",
        "make load",
        ".ci/restore",
        "destroy --all --force",
    ]
    text = "\n".join(RUNS)
    places = [text.index(each) for each in order]
    assert places == sorted(places)
    last = JOB["steps"][-1]
    assert "destroy" in last["run"]
    assert last["if"] == "always()"


def commands(text: str) -> Iterator[list[str]]:
    """What is asked of `epochal`, in words."""
    for line in text.replace("\\\n", " ").splitlines():
        if match := re.search(r"\.venv/bin/epochal (.*?)\)?$", line.strip()):
            yield shlex.split(match[1])


def test_its_commands_of_epochal_are_commands_with_their_options() -> None:
    asked = [*commands("\n".join(RUNS)), *commands(RESTORE.read_text())]
    assert len(asked) >= 6
    for words in asked:
        group: Any = epochal
        known = {option for each in group.params for option in each.opts}
        for word in words:
            if word.startswith("--"):
                assert word in known, words
            elif word in getattr(group, "commands", {}):
                group = group.commands[word]
                known |= {option for each in group.params for option in each.opts}
        assert group is not epochal, words


def test_make_knows_what_it_is_asked_for() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for run in RUNS:
        for target in re.findall(r"^\s*make (\w+)", run, re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_restore_is_a_script_that_a_shell_reads() -> None:
    assert os.access(RESTORE, os.X_OK)
    assert subprocess.run(["sh", "-n", RESTORE], check=False).returncode == 0


def test_the_page_names_the_workflow_and_its_variables() -> None:
    page = (ROOT / "docs" / "first-day.md").read_text("utf-8")
    assert ".github/workflows/nightly-aws.yml" in page
    for name in ("AWS_ROLE", "AWS_REGION", "epochal-nightly", ".ci/restore"):
        assert name in page


@pytest.mark.parametrize(
    ("after", "same"),
    [({"Order": {"streams": 1, "events": 2}}, True), ({"Order": {"streams": 1, "events": 1}}, False)],
)
def test_a_restore_that_lacks_events_fails(after: dict[str, Any], same: bool) -> None:
    (compare,) = re.findall(r"<<'END'\n(.*?)^END$", RESTORE.read_text(), re.MULTILINE | re.DOTALL)
    before = {"Order": {"streams": 1, "events": 2}, "EpochalProof": {"streams": 9, "events": 99}}
    told = [json.dumps({"categories": each}) for each in (before, after)]
    ended = subprocess.run([sys.executable, "-c", compare, *told], check=False, capture_output=True)
    assert (ended.returncode == 0) is same
