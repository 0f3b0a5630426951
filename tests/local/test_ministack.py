"""The embedded AWS across commands: one starts it, another finds it, a third stops it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from botocore.exceptions import ClientError

from epochal.contrib.local import deploy, ministack, processes
from epochal.contrib.local.errors import NotRunning
from epochal.contrib.local.programs import Places

pytestmark = pytest.mark.embedded


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Places]:
    """Places of this test's own, with nothing left running."""
    places = Places(tmp_path)
    yield places
    ministack.down(places)


def test_what_one_command_started_another_finds_and_stops(own: Places) -> None:
    port = processes.free_port()
    script = (
        "import sys; from pathlib import Path; from epochal.contrib.local import ministack; "
        "from epochal.contrib.local.programs import Places; "
        "ministack.up(Places(Path(sys.argv[1])), port=int(sys.argv[2]))"
    )
    subprocess.run([sys.executable, "-c", script, str(own.root), str(port)], check=True)
    server = ministack.require(own)
    assert server.port == port
    assert ministack.endpoint(server).client("dynamodb").list_tables()["TableNames"] == []
    assert ministack.down(own)
    assert ministack.status(own) is None
    assert not processes.answers(server.url)


def test_starting_it_twice_starts_it_once(own: Places) -> None:
    first = ministack.up(own, port=processes.free_port())
    assert ministack.up(own, port=processes.free_port()) == first


def test_one_that_died_is_not_taken_for_running(own: Places) -> None:
    processes.stop(ministack.up(own, port=processes.free_port()))
    assert ministack.status(own) is None
    with pytest.raises(NotRunning, match="epochal local up"):
        ministack.require(own)


def test_stopping_what_does_not_run_says_so(own: Places) -> None:
    assert not ministack.down(own)


def test_a_running_one_to_which_nothing_was_deployed_has_no_deployment(own: Places) -> None:
    ministack.up(own, port=processes.free_port())
    with pytest.raises(NotRunning, match="nothing is deployed"):
        deploy.current(own)


def test_reset_empties_it_and_leaves_it_running(own: Places) -> None:
    server = ministack.up(own, port=processes.free_port())
    client = ministack.endpoint(server).client("s3")
    client.create_bucket(Bucket="bodies")
    ministack.reset(server)
    assert client.list_buckets()["Buckets"] == []


def test_an_unknown_caller_is_refused_because_permissions_are_enforced(own: Places) -> None:
    endpoint = ministack.endpoint(ministack.up(own, port=processes.free_port()))
    stranger = boto3.client(
        "dynamodb",
        endpoint_url=endpoint.url,
        region_name=endpoint.region,
        aws_access_key_id="nobody",
        aws_secret_access_key="none",
    )
    with pytest.raises(ClientError, match="UnrecognizedClientException"):
        stranger.list_tables()
    assert endpoint.client("dynamodb").list_tables()["TableNames"] == []
