"""The Python in the README and the guides passes `mypy --strict`, each document as one program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "```python\n" in path.read_text("utf-8")
    and path.name != "tutorial.md"  # of parts: test_tutorial.py joins them
]
SECONDS = 240
"""Ten on an idle machine, with the library's own types to be found first."""


def program(document: Path) -> str:
    """All Python of a document, each line under the number that it has there."""
    text = document.read_text("utf-8")
    lines: list[str] = []
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        lines += [""] * (text.count("\n", 0, block.start(1)) - len(lines)) + block[1].splitlines()
    return "\n".join(lines) + "\n"


def checked(programs: dict[str, str], place: Path) -> list[str]:
    """What mypy says of these programs, as one line each."""
    for name, source in programs.items():
        (place / f"{name}.py").write_text(source, "utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--python-version", "3.11"),
            *("--config-file", os.devnull, "--disable-error-code", "import-untyped"),
            *("--cache-dir", str(place / "cache"), "--no-error-summary"),
            *(f"{name}.py" for name in programs),
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


@pytest.mark.timeout(SECONDS + 30)
@pytest.mark.slow
def test_what_the_documents_show_passes_a_strict_type_checker(tmp_path: Path) -> None:
    assert len(DOCUMENTS) >= 7
    programs = {path.stem.replace("-", "_").lower(): program(path) for path in DOCUMENTS}
    lost = "from epochal.testing.stores import memory_streams\nmemory_streams().append('A-1', 5)\n"
    said = checked({**programs, "wrong": lost}, tmp_path)
    # The last shows that it is our types that are checked, and by lines.
    assert [line.split(":")[:2] for line in said] == [["wrong.py", "2"]], "\n".join(said)
