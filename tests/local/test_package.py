"""The package: what is in the wheel, and that it works installed into an empty environment, from an empty folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest

from tests.support.wheel import build

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "layers" / "epochal" / "python"

LAMBDAS = [path for path in (ROOT / "lambdas").rglob("*") if path.is_file() and path.suffix == ".py"]
SHIPPED = {f"epochal/cdk/shipped/{path.relative_to(ROOT)}": path for path in LAMBDAS} | {
    f"epochal/cdk/shipped/layers/vendor/{name}.txt": ROOT / "layers" / "vendor" / f"{name}.txt"
    for name in ("requirements", "boto3")
}

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
    build(folder)
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
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == kept | SHIPPED.keys()
    assert {
        "epochal/py.typed",
        "epochal/contrib/console/templates/base.html",
        "epochal/contrib/console/static/live.js",
    } <= kept


@pytest.mark.slow
def test_it_has_what_the_constructs_deploy_beside_the_library(wheel: zipfile.ZipFile) -> None:
    for name, path in SHIPPED.items():
        assert wheel.read(name) == path.read_bytes()


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_an_app_of_ones_own_is_synthesised_with_the_wheel_alone(built: Path, tmp_path: Path) -> None:
    (path,) = built.glob("*.whl")
    installed, app = tmp_path / "installed", tmp_path / "app"
    with zipfile.ZipFile(path) as opened:
        opened.extractall(installed)
    guide = (ROOT / "docs" / "guide" / "your-own-app.md").read_text("utf-8")
    for block in re.findall(r"^```py\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL):
        if found := re.match(r"# (\S+\.py)\n", block):
            (app / found[1]).parent.mkdir(parents=True, exist_ok=True)
            (app / found[1]).write_text(block)
    (app / "reactions" / "board" / "requirements.txt").write_text("epochal\nsimplejson==4.3.0\n")
    out = app / "out"
    environment = {
        **{name: each for name, each in os.environ.items() if not name.startswith(("AWS_", "CDK_"))},
        "PYTHONPATH": str(installed),
        "CDK_OUTDIR": str(out),
        "EPOCHAL_CACHE": str(ROOT / ".cache" / "layers"),
    }
    done = subprocess.run(
        [sys.executable, "app.py"], cwd=app, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    resources = {
        (stack, id_): each
        for stack in ("Shop", "Boards")
        for id_, each in json.loads((out / f"{stack}.template.json").read_text("utf-8"))["Resources"].items()
    }
    assets = {id_: set(_files(out, each["Properties"])) for id_, each in resources.items()}
    # Those come with `Publish` and `timers` alone.
    served = [each for each in LAMBDAS if each.parent.name not in ("publisher", "timers")]
    assert sum("handler.py" in each for each in assets.values()) == len(served)
    library, same = (each for (_, id_), each in assets.items() if "Library" in id_ and each)
    assert library == same
    assert {"python/epochal/__init__.py", "python/epochal/hosting/function.py"} <= library
    assert not [each for each in library if each.startswith("python/epochal/cdk/")]
    vendor, _ = (each for (_, id_), each in assets.items() if "Vendor" in id_ and each)
    assert "python/aws_lambda_powertools/__init__.py" in vendor
    (packages,) = (each for (_, id_), each in assets.items() if "Packages" in id_ and each)
    assert "python/simplejson/__init__.py" in packages
    assert not [each for each in packages if each.startswith("python/epochal")]


def _files(out: Path, properties: dict[str, Any]) -> Iterator[str]:
    """What is in the folder that a function or layer is made of."""
    code = properties.get("Code") or properties.get("Content")
    if isinstance(code, dict) and "S3Key" in code:
        folder = out / f"asset.{code['S3Key'].removesuffix('.zip')}"
        yield from (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


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


@pytest.mark.proof
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
