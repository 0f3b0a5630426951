"""What a copy of the library has and offers, in a process of its own: `offered(copy(to, without=("contrib/timers",)))`.

python -m tests.support.remaining      prints it, of the library that is first on the path
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
LIBRARY: Final = ROOT / "layers" / "epochal" / "python"

PACKAGES: Final = sorted(path.parent.name for path in LIBRARY.glob("epochal/contrib/*/__init__.py"))
"""The optional packages."""

HIDDEN: Final = ("aws_cdk", "constructs", "jsii", "mcp")
"""Packages of extras that this does without, since they start Node, or take longer to import than all the others."""


def copy(to: Path, without: Collection[str]) -> Path:
    """A copy of the library without some files and folders of `epochal`, with the bytecode of the others."""
    left_out = {LIBRARY / "epochal" / each for each in without}
    assert all(map(Path.exists, left_out))

    def ignored(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(folder, name) in left_out]

    shutil.copytree(LIBRARY / "epochal", to / "epochal", ignore=ignored)
    return to


def run(library: Path, *arguments: str, within: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, with this copy of the library first on its path."""
    environment = os.environ | {"PYTHONPATH": str(library)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=within, env=environment, capture_output=True, text=True, check=False
    )


def offered(library: Path) -> dict[str, Any]:
    """What `main` prints of a copy of the library."""
    done = run(library, "-m", "tests.support.remaining")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert Path(found["place"]).is_relative_to(library)
    return found


@cache
def imports() -> list[tuple[str, str]]:
    """Which optional package is imported by what: by a package, `epochal.contrib.<name>.**`, or by a module of one.

    The contract `optional` of import-linter lists them. A line with a pattern on its left says that the package needs
    the other; one with a module says that this module alone does.
    """
    contracts: list[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"][
        "importlinter"
    ]["contracts"]
    (contract,) = (each for each in contracts if each["id"] == "optional")
    lines = (line.split(" -> ") for line in contract["ignore_imports"])
    return [(left, right.split(".")[2]) for left, right in lines]


def needing(package: str) -> set[str]:
    """A package, and all that need it."""
    found = {left.split(".")[2] for left, right in imports() if left.endswith(".**") and right == package}
    return {package}.union(*map(needing, found))


def missing_imports() -> dict[str, str]:
    """Import every module. Which package others lack, by their names, unless it is hidden."""
    sys.modules |= dict.fromkeys(HIDDEN)  # type: ignore[arg-type]  # None says that there is no such module
    missing = {}
    epochal = import_module("epochal")
    for module in walk_packages(epochal.__path__, "epochal.", onerror=lambda _: None):
        try:
            import_module(module.name)
        except ModuleNotFoundError as error:
            missing[module.name] = error.name or ""
    return {module: name for module, name in missing.items() if name.partition(".")[0] not in HIDDEN}


def commands() -> Iterator[str]:
    """The commands of the command line, each with its help."""
    from click import Context  # noqa: PLC0415  a copy may be without a command line

    from epochal.cli.main import epochal  # noqa: PLC0415

    context = Context(epochal)
    for name, command in epochal.commands.items():
        assert command.get_help(Context(command, parent=context))
        yield name


def paths() -> Iterator[str]:
    """The first parts of the paths of the HTTP API: of its operations, each of which is in the document."""
    from epochal.http.openapi import document  # noqa: PLC0415
    from epochal.http.routes import operations  # noqa: PLC0415

    described = document()["paths"]
    for operation in operations():
        assert operation.method.lower() in described[operation.path]
        yield "/" + operation.path.split("/")[1]


def main() -> None:
    """Print it as JSON."""
    missing = missing_imports()
    from epochal import plugins  # noqa: PLC0415

    found = {
        "place": plugins.__file__,
        "missing": missing,
        "layouts": [each.name for each in plugins.layouts()],
        "offered": sorted({*commands(), *paths()}),
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
