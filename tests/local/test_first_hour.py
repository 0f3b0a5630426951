"""The first hour: with a wheel and an empty folder, the tutorial and the page on web services work exactly as written.

`make test` follows them on the interpreter of the tests, whose packages are there already. `make proof`
follows them in empty environments of the oldest and the newest Python of this machine, which fetch every package.
tests/deploy/test_new_project.py runs the commands that need a deployment.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.interpreters import OLDEST, interpreters
from tests.support.newcomer import Newcomer, clean_environment
from tests.support.wheel import build, installed

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guide"
TUTORIAL = (GUIDE / "tutorial.md").read_text("utf-8")
WEB = (GUIDE / "web.md").read_text("utf-8")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"), "--wheel")


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port


def newcomer(folder: Path, bin_: Path, wheel: Path, **variables: str) -> Newcomer:
    """Somebody whose shell finds the commands of an environment first."""
    port = free_port()
    environment = {
        **clean_environment(),
        "PATH": os.pathsep.join([str(bin_), os.environ["PATH"]]),
        "UVICORN_PORT": str(port),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        **variables,
    }
    words = {"'epochal[": f"'{wheel}[", "localhost:8000": f"localhost:{port}"}
    return Newcomer(folder=folder, environment=environment, words=words)


def follow_pages(visitor: Newcomer) -> None:
    home = visitor.folder
    try:
        visitor.follow(TUTORIAL, until="## 7. On your machine")
        assert {"patience.py", "orders.py"} <= {path.name for path in (visitor.folder / "service").iterdir()}
        visitor.folder = home / "web"
        visitor.folder.mkdir()
        visitor.follow(WEB, serving=["uvicorn in_memory:app"])
    finally:
        visitor.leave()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_first_hour_goes_as_the_pages_say(wheel: Path, tmp_path: Path) -> None:
    bin_ = installed(wheel, tmp_path / "venv")
    python = bin_ / "python"
    scripts = {
        "pip": f'{sys.executable} -m pip --python {python} "$@"',
        "uvicorn": f'{python} -m uvicorn "$@"',
    }
    for name, command in scripts.items():
        (bin_ / name).write_text(f"#!/bin/sh\nexec {command}\n")
        (bin_ / name).chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    follow_pages(newcomer(home, bin_, wheel, PIP_NO_INDEX="1"))


@pytest.fixture(params=["oldest", "newest"])
def interpreter(request: pytest.FixtureRequest) -> str:
    here = interpreters()
    if request.param == "oldest":
        if OLDEST not in here:
            pytest.skip("Python {}.{} is not on this machine".format(*OLDEST))
        return here[OLDEST]
    newest = max(here, default=OLDEST)
    if newest == OLDEST:
        pytest.skip("no Python newer than {}.{} is on this machine".format(*OLDEST))
    return here[newest]


@pytest.mark.proof
@pytest.mark.timeout(1_200)
def test_the_first_hour_begins_with_an_empty_environment(
    wheel: Path, interpreter: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    subprocess.run([interpreter, "-m", "venv", str(tmp_path / "venv")], check=True)
    home.mkdir()
    constraints = str(ROOT / "constraints.txt")
    follow_pages(newcomer(home, tmp_path / "venv" / "bin", wheel, PIP_CONSTRAINT=constraints))
