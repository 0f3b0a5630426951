"""The package: what is in the wheel, and that it works installed into an empty environment, from an empty folder."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "layers" / "epochal" / "python"

MEGABYTES = 25
"""Of what comes with the library, beyond boto3 and what that brings."""

OF_BOTO = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "python_dateutil", "urllib3", "six")
OF_PIP = ("pip", "setuptools", "_distutils_hack", "distutils-precedence.pth", "pkg_resources")

TRIED = """
from epochal import Event, NO_STREAM, ConflictError, open_streams
from epochal.testing.stores import memory_streams

streams = memory_streams()
streams.append("Order-1", [Event(type="Placed", data=b"{}")], expected=NO_STREAM)
try:
    streams.append("Order-1", [Event(type="Placed")], expected=NO_STREAM)
except ConflictError as conflict:
    print(conflict)
"""


def _run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT), cwd=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Iterator[zipfile.ZipFile]:
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as opened:
        yield opened


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_library_and_no_other(wheel: zipfile.ZipFile) -> None:
    kept = {
        str(path.relative_to(LIBRARY))
        for path in (LIBRARY / "epochal").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == kept
    assert {
        "epochal/py.typed",
        "epochal/console/templates/base.html",
        "epochal/console/static/live.js",
    } <= kept


@pytest.mark.slow
def test_its_metadata_say_what_an_index_shows(built: Path, wheel: zipfile.ZipFile) -> None:
    (name,) = (each for each in wheel.namelist() if each.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(wheel.read(name).decode())
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert any(each.endswith("licenses/LICENSE") for each in wheel.namelist())
    (points,) = (each for each in wheel.namelist() if each.endswith(".dist-info/entry_points.txt"))
    assert b"[pytest11]\nepochal = epochal.pytest_plugin" in wheel.read(points)
    files = map(str, built.iterdir())
    assert "FAILED" not in _run(sys.executable, "-m", "twine", "check", "--strict", *files, cwd=built)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_it_works_in_an_empty_environment_and_takes_little_room(built: Path, tmp_path: Path) -> None:
    _run(sys.executable, "-m", "venv", "fresh", cwd=tmp_path)
    python = str(tmp_path / "fresh" / "bin" / "python")
    (path,) = built.glob("*.whl")
    pinned = ("--constraint", str(ROOT / "constraints.txt"))
    _run(
        python,
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--quiet",
        *pinned,
        str(path),
        cwd=tmp_path,
    )
    assert "expected no_stream, but the stream is at version 1" in _run(python, "-c", TRIED, cwd=tmp_path)
    (packages,) = (tmp_path / "fresh" / "lib").glob("python*/site-packages")
    room = sum(
        each.stat().st_size
        for package in packages.iterdir()
        if not package.name.startswith((*OF_BOTO, *OF_PIP))
        for each in (package.rglob("*") if package.is_dir() else [package])
        if each.is_file()
    )
    assert room < MEGABYTES * 1_000_000
