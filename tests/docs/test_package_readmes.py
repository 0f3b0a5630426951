"""README.md of the library and of each optional package: complete, true about imports and extras, and they run."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.public import command_names

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "layers" / "epochal" / "python" / "epochal"
MAP = (LIBRARY / "README.md").read_text("utf-8")
PACKAGES = sorted(path.parent.name for path in (LIBRARY / "contrib").glob("*/__init__.py"))
NOT_EXECUTED = {"console", "http_client", "lake", "local", "mcp", "proving"}
"""What they show needs AWS, Node, a browser or a server."""


def readme(package: str) -> str:
    return (LIBRARY / "contrib" / package / "README.md").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("package", [name for name in PACKAGES if name not in NOT_EXECUTED])
def test_the_example_of_a_package_prints_what_it_says(
    package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    page = ModuleType(f"readme_of_{package}")
    monkeypatch.setitem(
        sys.modules, page.__name__, page
    )  # the library eventsourcing finds classes by their modules
    text, shown = readme(package), io.StringIO()
    examples = re.findall(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", text, re.MULTILINE | re.DOTALL)
    assert len(examples) == text.count("```python") == 1
    code, printed = examples[0]
    with contextlib.redirect_stdout(shown):
        exec(compile(code, package, "exec", dont_inherit=True), vars(page))  # noqa: S102  the page is ours
    assert shown.getvalue() == printed


def imported(package: str) -> Iterator[str]:
    """The optional packages that one imports, anywhere in its code."""
    for path in (LIBRARY / "contrib" / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    words = f"{node.module}.{alias.name}".split(".")
                    if words[:2] == ["epochal", "contrib"]:
                        yield words[2]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_which_other_optional_packages_it_imports(package: str) -> None:
    (sentence,) = re.findall(r"^Other optional packages: (.*)$", readme(package), re.MULTILINE)
    named = set(re.findall(r"\]\(\.\./(\w+)/README\.md\)", sentence))
    assert named == set(imported(package)) - {package}
    assert named or sentence == "none."


def test_the_map_has_every_package_and_module_of_the_library() -> None:
    linked = {path.removesuffix("/__init__.py") for path in re.findall(r"\]\(([\w./]+\.py)\)", MAP)}
    packages = {path.parent.name for path in LIBRARY.glob("*/__init__.py")} - {"contrib"}
    assert packages <= linked
    assert re.findall(r"^\d+\. \[`(\w+)`\]", MAP, re.MULTILINE) == [
        "model",
        "plan",
        "codec",
        "pages",
        "store",
        "index",
        "feed",
        "deciders",
        "reactions",
        "read_models",
    ]


def test_the_map_has_a_line_for_every_optional_package_with_an_extra_that_there_is() -> None:
    rows = re.findall(r"^\| \[`contrib/(\w+)`\]\(contrib/(\w+)/README\.md\) \| (\S*) ?\|", MAP, re.MULTILINE)
    assert [name for name, _, _ in rows] == [link for _, link, _ in rows] == PACKAGES
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert {extra.strip("`") for _, _, extra in rows if extra} <= set(extras)


def test_commands_that_packages_show_are_there() -> None:
    names = set(command_names.names())
    lines = [line for package in PACKAGES for line in readme(package).splitlines()]
    commands = [line.split() for line in lines if line.startswith("epochal ")]
    assert len(commands) > 5
    for words in commands:
        command = ["epochal"]
        for word in words[1:]:
            if " ".join([*command, word]) in names:
                if not word.startswith("-"):
                    command.append(word)
            else:
                assert not word.startswith("-"), words
        assert len(command) > 1, words
