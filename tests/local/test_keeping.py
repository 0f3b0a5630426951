"""What `down --keep` keeps is taken up once and whole, and its index is repaired, whatever fails in between."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from epochal.contrib.local import commands as local
from epochal.contrib.local import deploy, ministack, processes
from epochal.contrib.local.assembly import Environment
from epochal.contrib.local.errors import CommandFailed, KeptUnreadable, ServerFailed
from epochal.contrib.local.programs import Places

pytestmark = pytest.mark.embedded


@dataclass
class Machine:
    """A checkout with something kept, and commands whose deployments and repairs are only noted."""

    places: Places
    deployments_fail: bool = False
    repairs: list[str] = field(default_factory=list)

    def deploy(self, *_: object, **__: object) -> None:
        if self.deployments_fail:
            raise CommandFailed("cdk deploy", 1, "broken")

    def up(self) -> BaseException | None:
        return CliRunner().invoke(local.local, ["up"]).exception


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a `down --keep` left."""
    places = Places(tmp_path_factory.mktemp("kept"))
    server = ministack.up(places, port=processes.free_port())
    ministack.endpoint(server).client("s3").create_bucket(Bucket="bodies")
    ministack.down(places, keep=True)
    return places.running


@pytest.fixture
def machine(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    (tmp_path / "cdk.json").touch()
    monkeypatch.chdir(tmp_path)
    made = Machine(Places(tmp_path))
    shutil.copytree(kept, made.places.running)
    monkeypatch.setattr(deploy, "deploy", made.deploy)
    monkeypatch.setattr(local, "_repair", lambda *_: made.repairs.append("repaired"))
    yield made
    ministack.down(made.places)


@pytest.mark.proof
def test_a_repair_that_a_failed_deployment_kept_away_is_made_by_the_next_up_and_once(
    machine: Machine,
) -> None:
    machine.deployments_fail = True
    assert isinstance(machine.up(), CommandFailed)
    assert machine.repairs == []
    machine.deployments_fail = False
    for _ in range(2):
        assert machine.up() is None
        assert machine.repairs == ["repaired"]


def test_a_repair_that_fails_stays_due(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(local, "_repair", lambda *_: 1 / 0)
        assert isinstance(machine.up(), ZeroDivisionError)
    machine.up()
    assert machine.repairs == ["repaired"]


@pytest.mark.proof
def test_what_was_taken_up_and_crashed_is_neither_brought_back_nor_repaired(machine: Machine) -> None:
    machine.deployments_fail = True
    machine.up()
    processes.stop(ministack.require(machine.places), seconds=0)
    assert ministack.load_kept(machine.places) is None
    server = ministack.up(machine.places, port=processes.free_port())
    assert ministack.endpoint(server).client("s3").list_buckets()["Buckets"] == []
    assert not ministack.repair_is_due(machine.places)


@pytest.mark.proof
@pytest.mark.parametrize("fault", [KeyboardInterrupt(), ServerFailed("the embedded AWS", "is slow", "")])
def test_a_start_that_is_broken_off_leaves_nothing_running_and_what_was_kept_as_it_was(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    def broken_off(*_: object) -> None:
        raise fault

    kept = ministack.load_kept(machine.places)
    assert kept is not None
    with monkeypatch.context() as patch:
        patch.setattr(ministack, "take_up", broken_off)
        with pytest.raises(type(fault)):
            ministack.up(machine.places)
    assert not processes.answers(f"http://{processes.HOST}:{kept.port}")
    server = ministack.up(machine.places)
    assert [each["Name"] for each in ministack.endpoint(server).client("s3").list_buckets()["Buckets"]] == [
        "bodies"
    ]


def test_services_that_came_back_with_less_than_was_kept_are_not_taken_up(machine: Machine) -> None:
    kept, server = ministack.load_kept(machine.places), ministack.up(machine.places)
    assert kept is not None
    (here,) = kept.counts
    elsewhere = replace(here, environment=Environment("123456789012", "eu-central-1"))
    for service, count in here.counts.items():
        more = replace(here, counts={**here.counts, service: count + 1})
        for counts in ((more,), (here, more), (here, replace(elsewhere, counts=more.counts))):
            with pytest.raises(KeptUnreadable, match="rm -r"):
                ministack.take_up(machine.places, replace(kept, counts=counts), server)


@pytest.mark.proof
def test_what_is_kept_can_still_be_stopped_after_it_could_not_be_looked_at(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ministack.up(machine.places)
    with monkeypatch.context() as patch:
        patch.setattr(ministack, "stop", lambda *_: json.loads(""))
        with pytest.raises(json.JSONDecodeError):
            ministack.down(machine.places, keep=True)
    assert ministack.down(machine.places, keep=True)
