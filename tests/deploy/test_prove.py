"""`epochal prove` on the embedded AWS: what it offers is proven, and what it lacks is said to be not proven."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from epochal.contrib.local.deploy import LocalDeployment
from tests.deploy.commands import epochal

REACTION = "epochal-dev-reaction-proof"
NOT_OFFERED = {"alarms", "changed-setting", "lake", "publish", "sql-swap"}
"""Nothing evaluates alarms here; and the stage has no lake, no recipients and no database, and is not to be updated."""

Prove = Callable[..., "Proven"]


@dataclass(frozen=True)
class Proven:
    """How the command ended, and the report."""

    status: int
    report: dict[str, Any]
    error: str

    def of(self, verdict: str) -> dict[str, str]:
        """What was seen, by the checks of that verdict."""
        return {each["name"]: each["detail"] for each in self.report["checks"] if each["verdict"] == verdict}


@pytest.fixture
def prove(furnished: LocalDeployment, monkeypatch: pytest.MonkeyPatch) -> Prove:
    for name, value in furnished.endpoint.environment({}).items():
        monkeypatch.setenv(name, value)
    where = ("--stack", "epochal-dev-store", "--endpoint", furnished.endpoint.url)

    def proven(*options: str) -> Proven:
        # What the stack's output names has no name server here.
        done = epochal(*where, "prove", "--yes", "--json", "--api", furnished.api_url, *options)
        return Proven(status=done.returncode, report=json.loads(done.stdout), error=done.stderr)

    return proven


def test_everything_that_the_embedded_aws_offers_is_proven(prove: Prove, tmp_path: Path) -> None:
    kept = tmp_path / "proof"
    proven = prove("--skip", "catch-up", "--report", str(kept))
    assert proven.of("failed") == {}
    assert proven.of("not proven").keys() == NOT_OFFERED
    assert (proven.status, len(proven.of("passed"))) == (0, 21)
    assert proven.report["dollars"] < 0.10
    assert json.loads(kept.with_suffix(".json").read_text()) == proven.report
    assert "| not proven |" in kept.with_suffix(".md").read_text()


def test_a_setting_is_changed_and_changed_back_while_appends_go_on(
    prove: Prove, furnished: LocalDeployment
) -> None:
    def level() -> str:
        found = furnished.endpoint.client("lambda").get_function_configuration(
            FunctionName="epochal-dev-indexer"
        )
        value: str = found["Environment"]["Variables"]["POWERTOOLS_LOG_LEVEL"]
        return value

    before = level()
    proven = prove("--only", "changed-setting", "--update")
    assert proven.of("failed") == {}
    assert proven.of("not proven") == {}
    assert "and back" in proven.of("passed")["changed-setting"]
    assert level() == before


def test_nothing_is_left_behind_but_what_the_report_says(prove: Prove, furnished: LocalDeployment) -> None:
    proven = prove("--only", "appends", "--only", "uploads", "--only", "quarantine")
    marker, left = proven.report["marker"], proven.report["left"]
    store = furnished.open()
    found = set[str]()
    for table in {*furnished.settings.tables.values()}:
        pages = furnished.endpoint.client("dynamodb").get_paginator("scan").paginate(TableName=table)
        texts = [
            value["S"] for page in pages for item in page["Items"] for value in item.values() if "S" in value
        ]
        found |= {f"EpochalProof{text.partition('EpochalProof')[2]}" for text in texts if marker in text}
    streams = {text for text in found if text.startswith(f"EpochalProof-{marker}")}
    assert streams
    for each in streams:
        assert any(each.startswith(line.partition(":")[0]) for line in left), each
    for line in left:
        if "tombstone" in line:
            name = line.partition(":")[0]
            state = (store.tips if "-tips-" in name else store.streams).load(name)
            assert state is not None
            assert (state.deleted, state.low_water) == (True, state.version)


def test_here_it_finds_the_stage_by_what_epochal_local_env_prints(
    furnished: LocalDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in furnished.variables.items():
        monkeypatch.setenv(name, value)
    done = epochal("prove", "--yes", "--json", "--only", "mappings", "--only", "appends: pages")
    checks = json.loads(done.stdout)["checks"]
    assert [each["verdict"] for each in checks] == ["passed"] * 3


@pytest.fixture
def mapping(furnished: LocalDeployment) -> Iterator[None]:
    """A mapping that somebody has disabled."""
    lambda_ = furnished.endpoint.client("lambda")
    (found, *_) = lambda_.list_event_source_mappings(FunctionName="epochal-dev-indexer")[
        "EventSourceMappings"
    ]
    lambda_.update_event_source_mapping(UUID=found["UUID"], Enabled=False)
    yield
    lambda_.update_event_source_mapping(UUID=found["UUID"], Enabled=True)


def test_a_mapping_that_is_disabled_is_found(prove: Prove, mapping: None) -> None:
    proven = prove("--only", "mappings")
    assert "Disabled" in proven.of("failed")["mappings"]
    assert proven.status == 1
    assert "epochal: some checks did not pass: mappings" in proven.error


def test_a_reaction_that_lambda_would_take_for_a_loop_is_found(
    prove: Prove, furnished: LocalDeployment
) -> None:
    lambda_ = furnished.endpoint.client("lambda")
    lambda_.put_function_recursion_config(FunctionName=REACTION, RecursiveLoop="Terminate")
    try:
        assert REACTION in prove("--only", "loops").of("failed")["loops"]
    finally:
        lambda_.put_function_recursion_config(FunctionName=REACTION, RecursiveLoop="Allow")


def test_a_setting_that_somebody_has_changed_and_a_role_that_allows_too_much_are_found(
    prove: Prove, furnished: LocalDeployment
) -> None:
    lambda_, iam = furnished.endpoint.client("lambda"), furnished.endpoint.client("iam")
    before = lambda_.get_function_configuration(FunctionName="epochal-dev-replay")
    role = before["Role"].rpartition("/")[2]
    everything = {"Effect": "Allow", "Action": "dynamodb:*", "Resource": "*"}
    iam.put_role_policy(
        RoleName=role,
        PolicyName="TooMuch",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [everything]}),
    )
    lambda_.update_function_configuration(FunctionName="epochal-dev-replay", Timeout=3)
    try:
        failed = prove("--only", "settings", "--only", "roles").of("failed")
    finally:
        lambda_.update_function_configuration(FunctionName="epochal-dev-replay", Timeout=before["Timeout"])
        iam.delete_role_policy(RoleName=role, PolicyName="TooMuch")
    assert "epochal-dev-replay: Timeout is 3" in failed["settings"]
    assert "epochal-dev-replay may" in failed["roles"]
    assert "DeleteTable" in failed["roles"]


@pytest.mark.proof
def test_a_reaction_catches_up_over_twenty_invocations(prove: Prove, furnished: LocalDeployment) -> None:
    """With a short time-out, since here it is the seconds that cost; a busy machine starts a function in two."""
    lambda_ = furnished.endpoint.client("lambda")
    lambda_.update_function_configuration(FunctionName=REACTION, Timeout=5)
    try:
        began = time.monotonic()
        proven = prove("--only", "catch-up")
    finally:
        lambda_.update_function_configuration(FunctionName=REACTION, Timeout=10)
    assert proven.of("failed") == proven.of("not proven") == {}
    assert proven.of("passed")["catch-up"].startswith("352 events, 20 invocations or more")
    assert time.monotonic() - began > 20
