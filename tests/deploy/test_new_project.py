"""From an empty folder with only the built wheel, docs/guide/local.md line by line: a project of one's own is deployed.

Its store comes from its own CDK application; its own tests append, react and read the model, in memory and deployed.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.wheel import build, installed

pytestmark = [pytest.mark.deploy, pytest.mark.proof, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guide" / "local.md"


def _commands() -> str:
    """The commands of the guide, but for the installation, which is the wheel's."""
    section = GUIDE.read_text("utf-8").partition("## A new project\n")[2].partition("\n## ")[0]
    install, commands = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert install.startswith("pip install 'epochal[")
    assert isinstance(commands, str)
    return commands


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """The environment of somebody who has installed the package, and has no account."""
    wheel = build(_made(tmp_path / "dist"))
    path = os.pathsep.join([str(installed(wheel, tmp_path / "venv")), os.environ["PATH"]])
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AWS_", "EPOCHAL_", "PYTEST_"))
    }
    # What a first time fetches from npm and PyPI is kept beside what else this checkout has fetched.
    return kept | {"PATH": path, "XDG_CACHE_HOME": str(ROOT / ".cache" / "user")}


def test_a_new_project_is_deployed_and_its_tests_are_green(shell: dict[str, str], tmp_path: Path) -> None:
    folder = _made(tmp_path / "empty")
    try:
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", _commands()],
            cwd=folder,
            env=shell,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        subprocess.run(["epochal", "local", "down"], cwd=folder / "my-service", env=shell, check=False)
    said = ran.stdout + ran.stderr
    assert ran.returncode == 0, said
    assert "6 passed, 1 deselected" in said
    assert "1 passed, 6 deselected" in said
    assert re.search(r"^Order-1 +0 +Placed$", ran.stdout, re.MULTILINE), said


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
