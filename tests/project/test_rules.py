"""Rules of the repository that no linter knows."""

from __future__ import annotations

import ast
import importlib.util
import re
import socket
import tomllib
import urllib.request
from collections import Counter
from pathlib import Path

import boto3
import pytest

from tests.support.sockets import SocketOpened

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS = sorted(path for path in (ROOT / "lambdas").iterdir() if path.is_dir() and any(path.glob("*.py")))


def imported(folder: Path) -> set[str]:
    """The first names of all that a folder's modules import."""
    names: set[str] = set()
    for module in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add((node.module or "").split(".")[0] if node.level == 0 else ".")
    return names


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda path: path.name)
def test_a_function_imports_no_other_function_and_no_stack(function: Path) -> None:
    others = {other.name for other in FUNCTIONS if other != function}
    assert imported(function).isdisjoint(others | {"lambdas", "stacks"})


def test_every_function_is_looked_at() -> None:
    assert {"append", "feed", "indexer", "replay"} <= {function.name for function in FUNCTIONS}


def test_workflows_name_what_others_made_by_its_commit() -> None:
    """A tag can be moved, to something that is handed the release's rights. `.github/dependabot.yml` keeps them new."""
    workflows = [path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml")]
    used = [name for text in workflows for name in re.findall(r"\buses: *(.*)", text)]
    theirs = [name for name in used if not name.startswith("./")]
    assert len(theirs) > 10
    assert [name for name in theirs if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[0-9.]+", name)] == []


def services() -> set[str]:
    """The parts of CDK that constructs and stacks import."""
    found: set[str] = set()
    library = ROOT / "layers" / "epochal" / "python" / "epochal"
    constructs = (*(library / "cdk").rglob("*.py"), *library.glob("contrib/*/cdk.py"))
    for module in (*constructs, *(ROOT / "stacks").rglob("*.py"), ROOT / "app.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "aws_cdk":
                found |= {alias.name for alias in node.names if alias.name.startswith("aws_")}
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("aws_cdk."):
                found.add((node.module or "").split(".")[1])
    return found


def test_mypy_reads_the_types_of_each_service_that_stacks_import_and_of_no_other() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    skipped, read = (
        [each for each in settings if each.get("follow_imports") == how] for how in ("skip", "normal")
    )
    assert "aws_cdk.*" in [each["module"] for each in skipped]
    (modules,) = (each["module"] for each in read)
    named = {module.removeprefix("aws_cdk.") for module in modules if module.startswith("aws_cdk.aws_")}
    assert named == services()
    references = {
        module.removeprefix("aws_cdk.interfaces.") for module in modules if ".interfaces." in module
    }
    spec = importlib.util.find_spec("aws_cdk")
    assert spec is not None
    cdk = Path(*spec.submodule_search_locations or ())
    assert references == {each for each in named if (cdk / "interfaces" / each).is_dir()}


def test_mypy_reads_the_types_of_every_module_that_the_library_imports() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    skipped = tuple(
        module.removesuffix("*").removesuffix(".") + "."
        for each in settings
        if each.get("follow_imports") == "skip" and each["module"] != "aws_cdk.*"
        for module in each["module"]
    )
    imported = set()
    for path in (ROOT / "layers" / "epochal" / "python" / "epochal").rglob("*.py"):
        text = path.read_text()
        imported |= {f"{name}." for name in re.findall(r"^\s*import ([\w.]+)", text, re.MULTILINE)}
        for package, names in re.findall(r"^\s*from ([\w.]+) import (\([^)]*\)|.*)", text, re.MULTILINE):
            imported |= {f"{package}.{name}." for name in re.findall(r"\w+", names)}
    assert {"boto3.", "sqlalchemy.Engine."} <= imported
    assert "sqlalchemy.orm." in skipped
    assert [name for name in imported if name.startswith(skipped)] == []


def test_a_unit_test_that_opens_a_socket_fails() -> None:
    with pytest.raises(SocketOpened):
        socket.create_connection(("127.0.0.1", 9))
    with pytest.raises(SocketOpened), socket.socket() as way_out:
        way_out.connect(("127.0.0.1", 9))
    with pytest.raises(SocketOpened), socket.socket() as way_in:
        way_in.bind(("127.0.0.1", 0))


def test_a_unit_test_that_sends_a_request_fails() -> None:
    with pytest.raises(SocketOpened):
        urllib.request.urlopen("http://127.0.0.1:9/")


def test_no_test_sees_credentials_but_made_up_ones() -> None:
    credentials = boto3.Session().get_credentials()
    assert credentials is not None
    assert (credentials.access_key, credentials.secret_key) == ("test", "test")
    assert boto3.Session().available_profiles == []


TWICE = {
    "Done": "a plan's answer, and what ends an instance of a process",
    "Earlier": "an append that was made before, of each layout",
    "Page": "an item of a layout, and what a read answers",
    "Planned": "a write made ready, of each layout",
    "Process": "as it runs, and the construct that deploys it",
    "Publish": "a process's output, and the construct that sends events on",
    "Query": "of tagged events, and DynamoDB's own",
    "Reaction": "as it runs, and the construct that deploys it",
    "TaggedBatch": "what is appended, of each layout",
    "Target": "of a process's outputs, and of a deployment",
}
"""Names of more than one class, each of which is one word for one thing in its room."""


@pytest.mark.slow
def test_a_class_name_means_one_thing() -> None:
    library = ROOT / "layers" / "epochal" / "python" / "epochal"
    names = Counter(
        node.name
        for path in library.rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert len(names) > 500
    assert {name for name, count in names.items() if count > 1} == TWICE.keys()
