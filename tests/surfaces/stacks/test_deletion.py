"""The default stage is synthesised without any optional package, and only what the package adds is missing in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.remaining import PACKAGES, copy, needing, run
from tests.surfaces.stacks.baseline import HERE, masked, path_of

TABLES_OF = {
    "equinox": {"Tips"},
    "event_store_adapter": {"Journal", "Snapshot"},
    "sekiban": {"Events", "Tags", "ProjectionStates"},
    "timers": set(),
}
"""Packages of which the default stage has something, with the names of their tables. Of `timers` it has routes."""

TABLE = "AWS::DynamoDB::GlobalTable"


def synthesised_without(package: str, place: Path) -> dict[str, Any]:
    """The templates of the default stage without a package and those that need it, by the names of their stacks."""
    library = copy(place, [f"contrib/{each}" for each in needing(package)])
    done = run(library, "-m", "tests.surfaces.stacks.remaining_stage")
    assert done.returncode == 0, done.stderr
    return masked(json.loads(done.stdout))


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The templates of the default stage, which `test_baseline` compares with those of today."""
    for variable, value in HERE.items():
        monkeypatch.setenv(variable, value)
    found: dict[str, Any] = json.loads(path_of("dev").read_text("utf-8"))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("package", TABLES_OF)
def test_without_a_package_that_it_deploys_the_default_stage_lacks_what_the_package_adds(
    package: str, kept: dict[str, Any], tmp_path: Path
) -> None:
    found = synthesised_without(package, tmp_path)
    assert found.keys() == kept.keys()
    gone = {
        name: each
        for stack, template in kept.items()
        for name, each in template["Resources"].items()
        if name not in found[stack]["Resources"]
    }
    tables = {name for name, each in gone.items() if each["Type"] == TABLE}
    assert {name[:-8] for name in tables} == TABLES_OF[package]
    assert "AWS::Lambda::Function" not in {each["Type"] for each in gone.values()}
    for stack, template in found.items():
        assert template["Resources"].keys() <= kept[stack]["Resources"].keys()


@pytest.mark.slow
@pytest.mark.proof
@pytest.mark.parametrize("package", [each for each in PACKAGES if each not in TABLES_OF])
def test_without_any_other_package_the_default_stage_is_what_it_was(
    package: str, kept: dict[str, Any], tmp_path: Path
) -> None:
    assert synthesised_without(package, tmp_path) == kept
