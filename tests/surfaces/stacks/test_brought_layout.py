"""A layout of another package is deployed: functions are told of it, and its package is in a layer of theirs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App

from epochal.cdk.parts.layers import InstallerFailed, Platform, brought
from epochal.cdk.sources import Sources
from epochal.plugins import GROUP, PLUGINS
from stacks.deployment import deployment
from tests.layouts.test_toy_layout import TOY
from tests.surfaces.stacks.templates import Deployment, context_of_repository

ROOT = Path(__file__).parents[3]
HERE = Platform(python=f"{sys.version_info.major}.{sys.version_info.minor}")
TOY_MODULE = "tests.layouts.test_toy_layout"
SHELF = f"""
from epochal.deferred import DeferredModule
from epochal.plugins import Layout, Plugin

toy = DeferredModule("{TOY_MODULE}")

def port():
    from {TOY_MODULE} import PORT
    return PORT

ENTRY = Layout(
    name="shelf",
    base=70_000,
    table="{TOY.table}",
    partitions="{TOY.partitions}",
    of=Plugin(port=port, open_history=toy.open_history),
)
"""
METADATA = """Metadata-Version: 2.1
Name: book-shelf
Version: 1.5
Requires-Dist: epochal>=0.1
Requires-Dist: bookends==2.0
Requires-Dist: pytest; extra == "test"
"""
TOLD = {"append", "replay", "feed", "indexer", "auditor"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A package that brings one, and is named."""
    place = tmp_path_factory.mktemp("installed")
    (place / "shelf").mkdir()
    (place / "shelf" / "__init__.py").write_text(SHELF)
    metadata = place / "book_shelf-1.5.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(METADATA)
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\nshelf = shelf:ENTRY\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(place))
        patch.setenv(PLUGINS, "shelf")
        yield place


class Pip:
    """Keeps what it is asked for, and installs a file."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, arguments: Any) -> subprocess.CompletedProcess[str]:
        self.asked.append([*arguments])
        packages = Path(arguments[arguments.index("--target") + 1])
        packages.mkdir(parents=True)
        (packages / "bookends.py").write_text("")
        return subprocess.CompletedProcess([], 0, "", "")


@pytest.fixture
def layer(installed: Path, tmp_path: Path) -> Path:
    return brought(("shelf",), HERE, tmp_path, run=Pip())


@pytest.fixture(scope="module")
def deployed(
    installed: Path, sources: Sources, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Deployment]:
    cache = tmp_path_factory.mktemp("layouts")
    sources = replace(sources, layouts=lambda names, platform: brought(names, platform, cache, run=Pip()))
    found = {}
    for layouts in ("shelf,pages", "pages"):
        app = App(context={**context_of_repository(), "stage": "dev", "target": "aws", "layouts": layouts})
        with pytest.MonkeyPatch.context() as patch:
            # As an app that is run with the variable has it: rules are made when they are imported.
            patch.setattr("stacks.stages.obeying", lambda _where, _key, value: tuple(value))
            deployment(app, sources)
        found[layouts] = Deployment(app)
    return found


def functions(found: Deployment) -> dict[str, dict[str, Any]]:
    made = [
        each["Properties"]
        for kind in ("api", "feed")
        for each in found.of_type(kind, "AWS::Lambda::Function").values()
    ]
    return {each["FunctionName"].removeprefix("epochal-dev-"): each for each in made}


def test_functions_that_look_at_events_are_told_its_name(deployed: dict[str, Deployment]) -> None:
    found = functions(deployed["shelf,pages"])
    told = {name: each["Environment"]["Variables"].get(PLUGINS) for name, each in found.items()}
    assert told == dict.fromkeys(TOLD, "shelf")


def test_their_layers_have_its_package(deployed: dict[str, Deployment], installed: Path) -> None:
    found = deployed["shelf,pages"]
    for kind in ("api", "feed"):
        (id_,) = (
            id_
            for id_, each in found.of_type(kind, "AWS::Lambda::LayerVersion").items()
            if each["Properties"]["Description"] == "Epochal: Layouts of other packages"
        )
        for each in found.of_type(kind, "AWS::Lambda::Function").values():
            assert {"Ref": id_} in each["Properties"]["Layers"]


def test_a_stage_that_leaves_it_out_has_neither(deployed: dict[str, Deployment]) -> None:
    found = functions(deployed["pages"])
    assert not any(PLUGINS in each["Environment"]["Variables"] for each in found.values())
    assert {len(each["Layers"]) for each in found.values()} == {2}


@pytest.mark.slow
def test_a_process_with_the_layer_alone_has_the_layout(layer: Path) -> None:
    library = ROOT / "layers" / "epochal" / "python"
    paths = [
        str(layer / "python"),
        str(library),
        str(ROOT),
        *(each for each in sys.path if "site-packages" in each),
    ]
    asked = [
        sys.executable,
        "-c",
        "from epochal.plugins import brought; print(*(each.base for each in brought()))",
    ]
    ran = subprocess.run(
        asked,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), PLUGINS: "shelf"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == ("70000\n", "")


def test_what_it_needs_beside_the_library_is_fetched(installed: Path, tmp_path: Path) -> None:
    pip = Pip()
    layer = brought(("shelf",), HERE, tmp_path, run=pip)
    assert [asked[asked.index("--target") + 2 :] for asked in pip.asked] == [["bookends==2.0"]]
    assert (layer / "python" / "bookends.py").exists()
    assert brought(("shelf",), HERE, tmp_path, run=pip) == layer
    assert len(pip.asked) == 1


def test_a_package_that_has_changed_is_another_layer(
    layer: Path, tmp_path: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = installed / "shelf" / "more.py"
    code.write_text("MORE = 1")
    try:
        assert brought(("shelf",), HERE, tmp_path, run=Pip()) != layer
    finally:
        code.unlink()


def test_a_package_without_files_of_its_own_is_refused(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "several" / "shelves").mkdir(parents=True)
    metadata = tmp_path / "several-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: several\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\nshelves = several.shelves:ENTRY\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InstallerFailed, match="several provides a layout"):
        brought(("shelves",), HERE, tmp_path / "cache", run=Pip())
