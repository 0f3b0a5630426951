"""The client in TypeScript: how it is built, and how it makes the calls of cases."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGE: Final = ROOT / "packages" / "client-typescript"
TOOLS: Final = ROOT / "node_modules" / ".bin"
RUNNER: Final = Path(__file__).with_name("typescript_cases.mjs")

SECONDS: Final = 120
"""Seconds that a program may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """Calls that a client makes, one after the other.

    Attributes:
        url: address of the API.
        options: settings of the client, as a case has them; `auth` may have the `region` to sign for.
        calls: the calls; what the last one comes to is what the caller sees.
    """

    url: str
    options: Mapping[str, Any]
    calls: tuple[Mapping[str, Any], ...]


def build(folder: Path) -> Path:
    """Compile the client into a folder, and return the module to import."""
    run(TOOLS / "tsc", "--project", PACKAGE, "--outDir", folder)
    (folder / "package.json").write_text('{"type": "module"}')
    return folder / "index.js"


def make_calls(client: Path, entries: Iterable[Played], **environment: str) -> list[Mapping[str, Any]]:
    """Make the calls of entries, some side by side, and return what the caller of each sees."""
    words = [{"url": entry.url, "options": entry.options, "calls": list(entry.calls)} for entry in entries]
    outcomes: list[Mapping[str, Any]] = json.loads(
        run("node", RUNNER, client, text=json.dumps(words), environment=environment)
    )
    return outcomes


def run(
    *words: str | Path, text: str = "", place: Path = ROOT, environment: Mapping[str, str] | None = None
) -> str:
    """Run a program that succeeds, and return what it prints."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=place,
        check=False,
        env={**os.environ, **(environment or {})},
        input=text,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout
