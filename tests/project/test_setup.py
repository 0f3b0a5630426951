"""What `make setup` installs is enough for the demo, a deployment and the command line, and no more than they need."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]

ENOUGH = """
import sys
from importlib.abc import MetaPathFinder

class Set(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {absent}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Set())
import {modules}
"""


def listed(*files: str) -> set[str]:
    """The packages that files name."""
    lines = (line for file in files for line in (ROOT / file).read_text("utf-8").splitlines())
    return {_normal(line) for line in lines if re.match(r"\w", line)}


def brought(packages: Iterable[str]) -> set[str]:
    """Packages, and all that installing them brings along."""
    found: set[str] = set()
    waiting = list(packages)
    while waiting:
        package = waiting.pop()
        if package in found:
            continue
        found.add(package)
        try:
            needed = map(Requirement, requires(package) or ())
        except PackageNotFoundError:  # of another Python's
            continue
        waiting += (
            _normal(each.name) for each in needed if not each.marker or each.marker.evaluate({"extra": ""})
        )
    return found


def _normal(name: str) -> str:
    return re.split(r"[^\w.-]", name)[0].lower().replace("_", "-").replace(".", "-")


def importing(modules: str) -> subprocess.CompletedProcess[str]:
    """Import modules where nothing is installed but what the requirements of the demo bring."""
    there = brought(listed("requirements.txt")) | listed("examples/flights/requirements.txt")
    absent = {
        module
        for module, names in packages_distributions().items()
        if not there & {_normal(name) for name in names} and module != "epochal"
    }
    return subprocess.run(
        [sys.executable, "-c", ENOUGH.format(absent=absent, modules=modules)],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'layers/epochal/python'}:{ROOT}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.proof
def test_what_make_setup_installs_is_all_that_the_demo_and_a_deployment_import() -> None:
    done = importing(
        "epochal.cli.main, epochal.contrib.console.server, examples.flights.__main__, ministack.app, app"
    )
    assert (done.returncode, done.stderr[-2000:]) == (0, "")


@pytest.mark.slow
def test_what_only_tests_need_is_not_there() -> None:
    assert "No module named 'hypothesis'" in importing("hypothesis").stderr


def test_what_a_team_on_aws_asks_for_is_pinned_where_it_looks_first() -> None:
    asked = {"aws-cdk-lib", "constructs", "boto3", "aws-lambda-powertools", "pytest", "moto"}
    assert asked <= listed("requirements.txt")


def test_no_package_is_listed_twice_and_every_one_is_pinned() -> None:
    files = (
        "requirements.txt",
        "requirements-dev.txt",
        "docs/requirements.txt",
        "examples/flights/requirements.txt",
    )
    names = [name for file in files for name in listed(file)]
    assert len(names) == len(set(names))
    assert set(names) <= listed("constraints.txt")
