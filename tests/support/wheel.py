"""The package as whoever publishes it builds it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def build(folder: Path, *options: str) -> Path:
    """Build wheel and source distribution into a folder, or with `--wheel` the wheel alone; return the wheel."""
    command = [sys.executable, "-m", "build", "--no-isolation", *options, "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


def installed(wheel: Path, folder: Path) -> Path:
    """An environment that has the wheel, and beside it what this one has of others; returns its `bin`.

    It has no `epochal` but the wheel's: what makes a checkout's editable is not read along a path.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    bin_ = folder / "bin"
    (packages,) = (folder / "lib").glob("python*/site-packages")
    (packages / "others.pth").write_text(
        "\n".join(path for path in sys.path if path.endswith("site-packages"))
    )
    python = str(bin_ / "python")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
    (bin_ / "pytest").write_text(f'#!/bin/sh\nexec {python} -m pytest "$@"\n')
    (bin_ / "pytest").chmod(0o755)
    return bin_
