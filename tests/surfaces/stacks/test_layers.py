"""The layers as they are deployed, filled by the real installer: this asks a registry once, as `make synth` does."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from importlib.metadata import version
from importlib.util import find_spec, source_from_cache
from pathlib import Path

import pytest

from epochal.cdk.parts.functions import DEVELOPERS_ONLY
from epochal.cdk.parts.layers import Platform
from epochal.cdk.sources import Sources
from epochal.cdk.targets import Target, wheels
from tests.surfaces.stacks.templates import ROOT, Synthesise, sources_in, synthesiser

AARCH64 = 183
"""`e_machine` of an ELF file."""

LAMBDA = wheels(Target.AWS)

RUNTIME = ("boto3", "botocore", "s3transfer", "dateutil", "urllib3", "six")
"""What Lambda's Python brings along."""

IMPORTS = """
import importlib, pkgutil, sys
sys.path[:0] = sys.argv[1:]
import epochal
# Who uses them brings their packages, and those of `aio`.
BROUGHT = {
    "epochal.contrib.otel.tracing",
    "epochal.contrib.sql.read_models",
    "epochal.deciders.msgspec_checks",
    "epochal.deciders.pydantic_checks",
}
for module in pkgutil.walk_packages(epochal.__path__, "epochal."):
    if "aio" not in module.name.split(".") and module.name not in BROUGHT:
        importlib.import_module(module.name)
from aws_lambda_powertools import Logger
print(len(sys.modules))
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    """A copy of the library, which may be edited while tests run."""
    place = tmp_path_factory.mktemp("library")
    shutil.copytree(ROOT / "layers" / "epochal", place / "epochal")
    return sources_in(place)


@pytest.fixture(scope="module")
def synthesise(sources: Sources) -> Synthesise:
    return synthesiser(sources)


def filled(platform: Platform) -> Path:
    return Sources.in_repository(ROOT).vendor(platform) / "python"


def test_layer_one_is_the_library_without_what_only_developers_use(
    synthesise: Synthesise, sources: Sources
) -> None:
    shipped = modules_of(library_of(synthesise))
    whole = modules_of(sources.library(LAMBDA.python))
    left_out = {
        name: next(
            (each for each in DEVELOPERS_ONLY if fnmatch(f"{name}/", f"python/epochal/{each}/*")), None
        )
        for name in whole - shipped
    }
    assert set(left_out.values()) == set(DEVELOPERS_ONLY)
    assert shipped <= whole


def test_layer_one_has_no_page_for_readers(synthesise: Synthesise, sources: Sources) -> None:
    assert len(list(sources.library(LAMBDA.python).rglob("README.md"))) > 10
    assert list(library_of(synthesise).rglob("README.md")) == []


def test_the_two_layers_and_the_runtime_are_all_the_library_needs(
    synthesise: Synthesise, tmp_path: Path
) -> None:
    """In an interpreter that sees nothing else, every module of layer 1 imports."""
    for name in RUNTIME:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        source = origin.parent if origin.name == "__init__.py" else origin
        (tmp_path / source.name).symlink_to(source)
    paths = [str(library_of(synthesise) / "python"), str(filled(wheels(Target.EMBEDDED))), str(tmp_path)]
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", IMPORTS, *paths], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_wheels_for_aws_are_for_its_processor_and_its_python() -> None:
    compiled = list(filled(LAMBDA).rglob("*.so"))
    assert {path.name.split(".")[0] for path in compiled} >= {"_brotli", "_speedups"}
    for path in compiled:
        assert int.from_bytes(path.read_bytes()[18:20], "little") == AARCH64
        # Or built against the part of Python's interface that does not change between versions.
        assert f"cpython-{LAMBDA.python.replace('.', '')}-" in path.name or ".abi3." in path.name


PINS = "".join((ROOT / "layers" / "vendor" / f"{name}.txt").read_text() for name in ("requirements", "boto3"))


@pytest.mark.parametrize(("name", "pinned"), re.findall(r"^([\w.-]+)==([\w.]+)", PINS, re.MULTILINE))
def test_what_is_deployed_is_what_the_tests_ran_with(name: str, pinned: str) -> None:
    assert version(name) == pinned


def test_every_module_that_is_shipped_has_its_bytecode_and_nothing_else_has(synthesise: Synthesise) -> None:
    """On this machine's interpreter, which the embedded AWS runs functions on."""
    for layer in (library_of(synthesise, "embedded"), filled(wheels(Target.EMBEDDED)).parent):
        compiled = {
            source_from_cache(str(path)).removeprefix(f"{layer}/")
            for path in layer.rglob("__pycache__/*.pyc")
        }
        assert compiled == modules_of(layer)


def modules_of(layer: Path) -> set[str]:
    return {str(path.relative_to(layer)) for path in layer.rglob("*.py")}


def library_of(synthesise: Synthesise, target: str = "aws") -> Path:
    """Layer 1 as it was staged."""
    deployment = synthesise(target=target)
    key = deployment.named("api", "AWS::Lambda::LayerVersion", "LayersLibrary")["Properties"]["Content"][
        "S3Key"
    ]
    digest = key.removesuffix(".zip")
    (folder,) = Path(deployment.directory).glob(f"asset.{digest}")
    return folder
