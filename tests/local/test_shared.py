"""The processes of a test run share one embedded AWS, which the last of them stops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from epochal.local import deploy, ministack, processes
from epochal.local.places import Places
from epochal.local.shared import shared

pytestmark = pytest.mark.embedded

CDK = """
const fs = require("fs"), words = process.argv
fs.appendFileSync("deployed", "once\\n")
const outputs = { Shop: { StreamsTable: "s", IndexTable: "i", BucketName: "b" } }
if (fs.existsSync("broken")) process.exit(1)
fs.writeFileSync(words[words.indexOf("--outputs-file") + 1], JSON.stringify(outputs))
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Places]:
    """A project whose CDK command line deploys nothing, and writes down that it was asked to."""
    places = Places(tmp_path / "project")
    cdk = places.root / "node_modules" / "aws-cdk" / "bin" / "cdk"
    cdk.parent.mkdir(parents=True)
    cdk.write_text(CDK)
    yield places
    ministack.down(places)


def deployments(project: Places) -> int:
    return len((project.root / "deployed").read_text().splitlines())


def test_the_first_deploys_others_join_and_the_last_to_leave_stops_it(
    project: Places, tmp_path: Path
) -> None:
    with ExitStack() as second:
        with shared(project, tmp_path / "run") as first:
            found = second.enter_context(shared(project, tmp_path / "run"))
            assert found == first
        assert deployments(project) == 1
        assert processes.answers(found.endpoint.url), "somebody still uses it"
    assert not processes.answers(found.endpoint.url)


def test_what_is_deployed_for_the_project_is_used_and_left_running(project: Places, tmp_path: Path) -> None:
    server = ministack.up(project, port=processes.free_port())
    deployed = deploy.deploy(project, server)
    with shared(project, tmp_path / "run") as found:
        assert found == deployed
    assert deployments(project) == 1
    assert processes.answers(server.url)


def test_a_deployment_that_fails_leaves_nothing_running(project: Places, tmp_path: Path) -> None:
    (project.root / "broken").touch()
    with pytest.raises(Exception, match="cdk deploy"), shared(project, tmp_path / "run"):
        pass
    assert ministack.status(Places(project.root, apart=tmp_path / "run")) is None
