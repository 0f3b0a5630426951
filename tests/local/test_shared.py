"""The processes of a test run share one embedded AWS, which the last of them stops."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from epochal.contrib.local import deploy, ministack, processes
from epochal.contrib.local.deploy import shared
from epochal.contrib.local.programs import Places

pytestmark = pytest.mark.embedded

CDK = """
const fs = require("fs"), [command, ...words] = process.argv.slice(2)
const after = (option) => words[words.indexOf(option) + 1]
const shop = { type: "aws:cloudformation:stack", environment: "aws://unknown-account/unknown-region", properties: {} }
if (command === "synth") {
    fs.appendFileSync("deployed", (words.includes("--app") ? after("--app") : "that of cdk.json") + "\\n")
    fs.mkdirSync(after("--output"))
    fs.writeFileSync(after("--output") + "/manifest.json", JSON.stringify({ artifacts: { Shop: shop } }))
} else {
    if (fs.existsSync("broken")) process.exit(1)
    require("child_process").execFileSync(PYTHON, ["-c", DEPLOY])
}
"""
DEPLOY = """
import boto3, json
outputs = {"StreamsTable": "s", "IndexTable": "i", "BucketName": "b"}
template = {"Resources": {}, "Outputs": {name: {"Value": value} for name, value in outputs.items()}}
boto3.client("cloudformation").create_stack(StackName="Shop", TemplateBody=json.dumps(template))
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Places]:
    """A project whose CDK command line deploys a stack of outputs alone, and writes down that it was asked to."""
    places = Places(tmp_path / "project")
    cdk = places.root / "node_modules" / "aws-cdk" / "bin" / "cdk"
    cdk.parent.mkdir(parents=True)
    constants = f"const PYTHON = {json.dumps(sys.executable)}, DEPLOY = {json.dumps(DEPLOY)}\n"
    cdk.write_text(constants + CDK)
    yield places
    ministack.down(places)


def deployments(project: Places) -> list[str]:
    """The application of each deployment."""
    return (project.root / "deployed").read_text().splitlines()


def test_the_first_deploys_others_join_and_the_last_to_leave_stops_it(
    project: Places, tmp_path: Path
) -> None:
    with ExitStack() as second:
        with shared(project, tmp_path / "run") as first:
            found = second.enter_context(shared(project, tmp_path / "run"))
            assert found == first
        assert len(deployments(project)) == 1
        assert processes.answers(found.endpoint.url), "somebody still uses it"
    assert not processes.answers(found.endpoint.url)


def test_what_is_deployed_for_the_project_is_used_and_left_running(project: Places, tmp_path: Path) -> None:
    server = ministack.up(project, port=processes.free_port())
    deployed = deploy.deploy(project, server)
    with shared(project, tmp_path / "run") as found:
        assert found == deployed
    assert len(deployments(project)) == 1
    assert processes.answers(server.url)


@pytest.mark.proof
def test_a_deployment_that_fails_leaves_nothing_running(project: Places, tmp_path: Path) -> None:
    (project.root / "broken").touch()
    with pytest.raises(Exception, match="cdk deploy"), shared(project, tmp_path / "run"):
        pass
    assert ministack.status(Places(project.root, apart=tmp_path / "run")) is None


# The first waits for the other: on a busy machine it would have come and gone before.
TESTS = """
import time
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range(4))
def test_it(epochal_local, number, worker_id):
    assert epochal_local.settings.index_table == "i"
    Path(f"{worker_id}.there").touch()
    while len([*Path().glob("*.there")]) < 2:
        time.sleep(0.01)
    with open("seen", "a") as seen:
        print(epochal_local.endpoint.url, file=seen)
"""


@pytest.mark.proof
def test_processes_of_pytest_deploy_the_application_of_its_settings_once(project: Places) -> None:
    (project.root / "cdk.json").write_text("{}")
    (project.root / "pytest.ini").write_text("[pytest]\nepochal_app = python infra.py\n")
    (project.root / "test_it.py").write_text(TESTS)
    words = ("-p", "xdist", "-n", "2", "-p", "epochal.pytest_plugin")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=project.root,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert "4 passed" in ran.stdout, ran.stdout + ran.stderr
    assert deployments(project) == ["python infra.py"]
    (url,) = set((project.root / "seen").read_text().splitlines())
    assert not processes.answers(url)
