"""The second layer's folder: fetched once for each set of pins and platform, complete or not there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from epochal.cdk.parts.layers import InstallerFailed, Platform, bundled, vendored
from tests.surfaces.stacks.templates import ROOT

GRAVITON = Platform(python="3.13", tags=("manylinux_2_28_aarch64", "manylinux2014_aarch64"))
HERE = Platform(python=f"{sys.version_info.major}.{sys.version_info.minor}")


class Installer:
    """Records what it is asked, and puts one module and one script where it is told to."""

    def __init__(self, *, fails: str = "") -> None:
        self.calls: list[list[str]] = []
        self._fails = fails

    def __call__(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        self.calls.append(list(arguments))
        self.pins = Path(arguments[arguments.index("--requirement") + 1]).read_text().splitlines()
        into = Path(arguments[arguments.index("--target") + 1])
        (into / "bin").mkdir(parents=True)
        (into / "bin" / "script").write_text(f"#!{sys.executable}\n")
        (into / "module.py").write_text("")
        return subprocess.CompletedProcess(list(arguments), int(bool(self._fails)), "", self._fails)


@pytest.fixture
def pins(tmp_path: Path) -> Path:
    path = tmp_path / "requirements.txt"
    path.write_text("simplejson==4.3.0\n")
    return path


def test_wheels_for_another_machine_are_asked_for_by_platform_and_version(pins: Path, tmp_path: Path) -> None:
    run = Installer()
    vendored(pins, GRAVITON, tmp_path / "cache", run=run)
    ((*arguments,),) = run.calls
    pairs = list(pairwise(arguments))
    assert ("--platform", "manylinux_2_28_aarch64") in pairs
    assert ("--platform", "manylinux2014_aarch64") in pairs
    assert ("--python-version", "3.13") in pairs
    assert run.pins == ["simplejson==4.3.0"]


def test_wheels_for_this_machine_are_asked_for_without_a_platform(pins: Path, tmp_path: Path) -> None:
    run = Installer()
    vendored(pins, HERE, tmp_path / "cache", run=run)
    assert not {"--platform", "--python-version"} & set(run.calls[0])


@pytest.mark.parametrize("platform", [GRAVITON, HERE], ids=["graviton", "here"])
def test_nothing_is_built_resolved_or_compiled(pins: Path, tmp_path: Path, platform: Platform) -> None:
    run = Installer()
    vendored(pins, platform, tmp_path / "cache", run=run)
    assert {"--only-binary=:all:", "--no-deps", "--no-compile"} <= set(run.calls[0])


def test_nothing_is_fetched_whose_hash_is_not_written_down(pins: Path, tmp_path: Path) -> None:
    run = Installer()
    vendored(pins, GRAVITON, tmp_path / "cache", run=run)
    assert "--require-hashes" in run.calls[0]
    for name in ("requirements", "boto3"):
        text = (ROOT / "layers" / "vendor" / f"{name}.txt").read_text()
        lines = [line for line in text.replace("\\\n", " ").splitlines() if not line.startswith("#")]
        assert lines
        assert not [line for line in lines if "--hash=sha256:" not in line]


@pytest.mark.parametrize("name", ["requirements", "boto3"])
def test_every_function_needs_the_same_wheels_whatever_its_python(name: str) -> None:
    """pip evaluates a marker such as `python_version` for the Python it runs on, not for the functions'."""
    lines = (ROOT / "layers" / "vendor" / f"{name}.txt").read_text().splitlines()
    assert not [line for line in lines if ";" in line and not line.startswith("#")]


@pytest.mark.slow
def test_a_wheel_with_another_hash_is_refused(pins: Path, tmp_path: Path) -> None:
    pins.write_text(f"simplejson==4.3.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(InstallerFailed, match="(?i)hash"):
        vendored(pins, GRAVITON, tmp_path / "cache")


def test_requirements_of_a_reaction_keep_their_hashes_without_the_library(pins: Path, tmp_path: Path) -> None:
    run = Installer()
    pins.write_text("epochal==0.1.0 \\\n    --hash=sha256:a\nsimplejson==4.3.0 \\\n    --hash=sha256:b\n")
    first = bundled(pins, GRAVITON, tmp_path / "cache", run=run)
    assert run.pins == ["simplejson==4.3.0 --hash=sha256:b"]
    assert bundled(pins, GRAVITON, tmp_path / "cache", run=run) == first, "hashes refer to no other file"
    assert len(run.calls) == 1


def test_a_layer_holds_packages_but_no_scripts(pins: Path, tmp_path: Path) -> None:
    folder = vendored(pins, GRAVITON, tmp_path / "cache", run=Installer())
    compiled = "__pycache__"  # where this machine has the functions' Python
    assert {each.name for each in (folder / "python").iterdir()} - {compiled} == {"module.py"}


def test_what_was_fetched_is_not_fetched_again(pins: Path, tmp_path: Path) -> None:
    run = Installer()
    first = vendored(pins, GRAVITON, tmp_path / "cache", run=run)
    assert vendored(pins, GRAVITON, tmp_path / "cache", run=run) == first
    assert len(run.calls) == 1


def test_other_pins_and_other_platforms_have_other_folders(pins: Path, tmp_path: Path) -> None:
    folders = {vendored(pins, each, tmp_path / "cache", run=Installer()) for each in (GRAVITON, HERE)}
    pins.write_text("simplejson==4.3.1\n")
    folders |= {vendored(pins, each, tmp_path / "cache", run=Installer()) for each in (GRAVITON, HERE)}
    assert len(folders) == 4


def test_a_failure_says_what_pip_said_and_leaves_nothing_behind(pins: Path, tmp_path: Path) -> None:
    with pytest.raises(InstallerFailed, match="No matching distribution"):
        vendored(pins, GRAVITON, tmp_path / "cache", run=Installer(fails="No matching distribution found"))
    assert list((tmp_path / "cache").iterdir()) == []


def test_an_environment_without_pip_is_told_where_it_comes_from(pins: Path, tmp_path: Path) -> None:
    with pytest.raises(InstallerFailed, match="uv pip install pip"):
        vendored(pins, GRAVITON, tmp_path / "cache", run=Installer(fails="python: No module named pip"))


def test_of_two_that_fetch_at_once_one_stands(pins: Path, tmp_path: Path) -> None:
    """The other one comes first while pip works."""
    inner = Installer()

    def run(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        vendored(pins, GRAVITON, tmp_path / "cache", run=inner)
        return Installer()(arguments)

    folder = vendored(pins, GRAVITON, tmp_path / "cache", run=run)
    assert [each.name for each in (tmp_path / "cache").iterdir()] == [folder.name]
    assert (folder / "python" / "module.py").exists()
