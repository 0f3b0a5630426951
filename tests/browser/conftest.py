"""A headless Chromium, from the npm registry by the digests of the lock file. Where it cannot be had, its tests are
left out, and say so, unless `EPOCHAL_BROWSER=required` is set.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

HERE = Path(__file__).resolve().parent
SECONDS = 240
"""Longer is a hang."""

Look = Callable[[dict[str, Any]], dict[str, Any]]


@pytest.fixture(scope="session")
def look() -> Look:
    """Has a browser visit what it is told to, as `look.mjs` has it."""
    node = shutil.which("node")
    if node is None:
        _left_out("node is missing: `make setup` says how to get it")
    _install()

    def looked(asked: dict[str, Any]) -> dict[str, Any]:
        ran = subprocess.run(
            [node, "look.mjs"],
            cwd=HERE,
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if ran.returncode and "Failed to launch the browser" in ran.stderr:
            _left_out(f"no Chromium runs here (EPOCHAL_CHROMIUM names another): {ran.stderr.strip()[:300]}")
        assert ran.returncode == 0, ran.stderr
        return dict(json.loads(ran.stdout))

    return looked


def _install() -> None:
    lock = HERE / "package-lock.json"
    installed = HERE / "node_modules" / ".package-lock.json"
    if installed.exists() and installed.stat().st_mtime >= lock.stat().st_mtime:
        return
    npm = shutil.which("npm")
    if npm is None:
        _left_out("npm is missing: `make setup` says how to get it")
    ran = subprocess.run(
        [npm, "ci", "--ignore-scripts", "--omit=optional"],
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        _left_out(f"the browser cannot be fetched: {ran.stderr.strip()[:300]}")


def _left_out(why: str) -> NoReturn:
    if os.environ.get("EPOCHAL_BROWSER") == "required":
        pytest.fail(why)
    pytest.skip(why)
