"""The documentation as a site: `python -m tests.docs.site build` makes build/site of docs/ and zensical.toml.

It is built from a copy. The generator empties the `.cache` beside its configuration, and what the pages load, or what
machines read, is put among the copied pages first, so that a link to it is checked like any other.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.docs import browser_scripts, machine_index

ROOT: Final = Path(__file__).resolve().parents[2]


def prepare(place: Path) -> None:
    """Copy what the site is made of into a folder, with what is made for it."""
    shutil.rmtree(place / "docs", ignore_errors=True)
    shutil.copytree(ROOT / "docs", place / "docs", ignore=shutil.ignore_patterns("requirements.txt"))
    shutil.copy(ROOT / "zensical.toml", place)
    if not (library := place / "layers").exists():  # whose docstrings are the pages of the Python API
        library.symlink_to(ROOT / "layers")
    machine_index.write(place / "docs")


def build(place: Path) -> subprocess.CompletedProcess[str]:
    """Make `site` of what was prepared; a warning, a broken link for one, is an error."""
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--clean", "--strict"]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)


def main(place: Path) -> int:
    """Prepare and build, with the scripts that were fetched."""
    place.mkdir(exist_ok=True)
    prepare(place)
    browser_scripts.put(place / "docs")
    done = build(place)
    sys.stdout.write(done.stdout + done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(ROOT / sys.argv[1]))
