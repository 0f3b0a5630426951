"""What the library needs from others is a dependency, or in an extra that the error names."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "layers" / "epochal" / "python"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

BROUGHT = {
    "boto3": {"botocore", "urllib3"},
    "aiohttp": {"yarl"},
    "aws-cdk-lib": {"jsii"},
    "pydantic": {"pydantic-core"},
}
"""What a dependency brings that is as much its own."""

OF_USERS = {"kurrentdbclient"}
"""Clients of other systems that users install for one import, so that no extra has them."""

LATER = {"compression"}
"""Part of Python since a version that this one may be before."""

BARE = """
import sys
from importlib.abc import MetaPathFinder

class Bare(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {missing}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Bare())
{code}
"""


def named(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w.-]+", each)[0].lower() for each in requirements}  # type: ignore[index]


distributions_of = cache(packages_distributions)

OURS = {*sys.stdlib_module_names, *LATER, "epochal"}


def imported() -> Iterator[tuple[str, Path]]:
    """Every package that a module of the library imports at run time, from outside."""
    for path in (LIBRARY / "epochal").rglob("*.py"):
        nodes = [*ast.walk(ast.parse(path.read_text("utf-8")))]
        checked = {
            inner
            for node in nodes
            if isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and node.test.id == "TYPE_CHECKING"
            for inner in ast.walk(node)
        }
        for node in nodes:
            if node in checked:
                continue
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names.append(node.module)
            for name in names:
                package = name.partition(".")[0]
                if package not in OURS:
                    yield package, path


@pytest.mark.slow
def test_every_package_that_the_library_imports_is_a_dependency_or_in_an_extra() -> None:
    extras = [each for extra in PROJECT["optional-dependencies"].values() for each in extra]
    known = named(PROJECT["dependencies"] + extras) | OF_USERS
    known = known.union(*(BROUGHT.get(each, set()) for each in known))
    distributions = distributions_of()
    lacking = {
        f"{path.name}: {package}"
        for package, path in imported()
        if not {name.lower().replace("_", "-") for name in distributions.get(package, [package])} & known
    }
    assert lacking == set()


@cache
def missing() -> set[str]:
    """The packages that extras bring."""
    extras = named([each for extra in PROJECT["optional-dependencies"].values() for each in extra])
    return {
        package
        for package, distributions in distributions_of().items()
        if {each.lower().replace("_", "-") for each in distributions} & extras
    }


def bare(code: str) -> subprocess.CompletedProcess[str]:
    """Run without what the extras bring."""
    script = BARE.format(missing=missing(), code=code)
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env={"PYTHONPATH": str(LIBRARY), "AWS_DEFAULT_REGION": "eu-central-1", "EPOCHAL_REACTION": "r"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_every_public_name_can_be_imported_without_any_extra() -> None:
    done = bare("from epochal import *; print(lambda_handler.__name__, open_streams.__name__)")
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout == "lambda_handler open_streams\n"


@pytest.mark.slow
def test_a_function_without_its_extra_says_which_it_is() -> None:
    code = "from epochal import lambda_handler, reaction\n"
    code += "lambda_handler(reaction(name='r', categories=['A'])(lambda delivery: None))"
    done = bare(code)
    assert done.returncode == 1
    assert "pip install 'epochal[lambda]'" in done.stderr.splitlines()[-1]


NEEDED = {
    "subjects": "import epochal.contrib.subjects.testing",
    "async": "import epochal.aio.stores",
    "otel": "import epochal.contrib.otel.tracing",
    "eventsourcing": "import epochal.contrib.eventsourcing",
    "cdk": "from epochal.cdk import EventStore",
    "sql": "import epochal.contrib.sql.read_models",
    "export": "from epochal.contrib.transfer.export.files import Columns, arrow_schema; arrow_schema(Columns())",
    "mcp": "import epochal.contrib.mcp.server",
}
"""What is imported by who uses an extra; the command line, the console and functions say it in their own words, classes
of attrs, Pydantic and msgspec are made with their library, and pytest is there where its plugin is."""


@pytest.mark.slow
@pytest.mark.parametrize("extra", NEEDED)
def test_what_needs_an_extra_that_is_missing_says_how_to_install_it(extra: str) -> None:
    done = bare(NEEDED[extra])
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "which an extra installs" in last, last
    assert f"pip install 'epochal[{extra}]'" in last


def test_every_extra_says_what_lacks_it() -> None:
    others = {"cli", "console", "lambda", "local", "attrs", "pydantic", "msgspec", "pytest"}
    assert PROJECT["optional-dependencies"].keys() == NEEDED.keys() | others


@pytest.mark.parametrize("extra", sorted(PROJECT["optional-dependencies"]))
def test_every_extra_is_told_of_in_the_documents(extra: str) -> None:
    texts = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert any(f"`[{extra}]`" in path.read_text("utf-8") for path in texts)
