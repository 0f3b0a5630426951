"""The Python in the README and the guides passes `mypy --strict` and pyright, each document as one program.

A block that begins with the name of a file is a program of its own. One that begins with `# in` and a name is a part
of an example, which is checked as a whole elsewhere.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = {"tutorial.md", "generated-clients.md"}
"""The first is of parts, which test_tutorial.py joins; for the other tests/deploy generates a client."""

DOCUMENTS = [
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "```python\n" in path.read_text("utf-8") and path.name not in ELSEWHERE
]
SECONDS = 240
"""Ten on an idle machine, with the library's own types to be found first."""


def programs(document: Path) -> dict[str, str]:
    """All Python of a document, by the program's name, each line under the number that it has there."""
    # With a prefix, no page hides a module of Python, as `platform` would.
    text, stem = document.read_text("utf-8"), f"page_{document.stem.replace('-', '_').lower()}"
    found: dict[str, list[str]] = {}
    for block in re.finditer(r"^```python\n(?!# in )(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        file = re.match(r"# (?:\w+/)*(\w+)\.py\n", block[1])
        lines = found.setdefault(f"{stem}_{file[1]}" if file else stem, [])
        lines += [""] * (text.count("\n", 0, block.start(1)) - len(lines)) + block[1].splitlines()
    joined = {name: "\n".join(lines) + "\n" for name, lines in found.items()}
    files = "|".join(name.removeprefix(f"{stem}_") for name in joined if name != stem)
    return {
        name: re.sub(rf"^from ({files}) import", rf"from {stem}_\1 import", source, flags=re.MULTILINE)
        if files
        else source
        for name, source in joined.items()
    }


def written(place: Path) -> dict[str, str]:
    """Write the programs of all documents, and one more that is wrong in its second line; by their names."""
    lost = "from epochal.testing.stores import memory_streams\nmemory_streams().append('A-1', 5)\n"
    sources = {"wrong": lost}
    for document in DOCUMENTS:
        sources |= programs(document)
    for name, source in sources.items():
        if "_test_" in name:  # who writes tests leaves what fixtures are to pytest
            source += "# mypy: allow-untyped-defs, allow-untyped-calls\n"  # noqa: PLW2901  the same program
        (place / f"{name}.py").write_text(source, "utf-8")
    return sources


def by_mypy(place: Path) -> list[str]:
    """What it says of these programs, as one line each."""
    # It takes minutes for the types of CDK: those programs are pyright's alone.
    names = [name for name, source in written(place).items() if "aws_cdk" not in source]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--python-version", "3.11"),
            *("--config-file", os.devnull, "--disable-error-code", "import-untyped"),
            *("--cache-dir", str(place / "cache"), "--no-error-summary"),
            *(f"{name}.py" for name in names),
        ],
        cwd=place,
        env={**os.environ, "MYPYPATH": str(ROOT / "layers" / "epochal" / "python")},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.splitlines()


def by_pyright(place: Path) -> list[str]:
    """What it says of these programs, as one line each."""
    written(place)
    settings = {
        "extraPaths": [str(ROOT / "layers" / "epochal" / "python")],
        "pythonVersion": "3.11",
        "typeCheckingMode": "standard",
        "reportMatchNotExhaustive": "error",
    }
    (place / "pyrightconfig.json").write_text(json.dumps(settings), "utf-8")
    done = subprocess.run(
        [
            *(str(ROOT / "node_modules" / ".bin" / "pyright"), "--outputjson"),
            *("--pythonpath", sys.executable, "--project", str(place)),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode in (0, 1), done.stderr
    return [
        f"{Path(each['file']).name}:{each['range']['start']['line'] + 1}: {each['message']}"
        for each in json.loads(done.stdout)["generalDiagnostics"]
        if 'Unhandled type: "object"' not in each["message"]  # a process is given what nobody can list
    ]


@pytest.mark.timeout(SECONDS + 30)
@pytest.mark.parametrize(
    "checked",
    [
        pytest.param(by_mypy, marks=pytest.mark.proof),
        pytest.param(by_pyright, marks=pytest.mark.proof),  # it takes half a minute
    ],
)
def test_what_the_documents_show_passes_a_strict_type_checker(
    checked: Callable[[Path], list[str]], tmp_path: Path
) -> None:
    assert len(DOCUMENTS) >= 7
    # The wrong program shows that it is our types that are checked, and by lines.
    said = checked(tmp_path)
    assert [line.split(":")[:2] for line in said] == [["wrong.py", "2"]], "\n".join(said)
