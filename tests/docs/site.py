"""The documentation as a site: `python -m tests.docs.site build` makes build/site of docs/ and zensical.toml.

`SITE_URL` is where the site will be served: with it, the site has a sitemap. `REPOSITORY_URL` is the address of the
repository: with it, every page has a link to edit it. Both are the owner's to choose, so neither has a default.

It is built from a copy. The generator empties the `.cache` beside its configuration, and what the pages load, or what
machines read, is put among the copied pages first, so that a link to it is checked like any other.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

from tests.docs import awaited_methods, browser_scripts, machine_index

ROOT: Final = Path(__file__).resolve().parents[2]
LIBRARY: Final = Path("layers/epochal/python/epochal")
"""The library, whose docstrings are the pages of the Python API."""


def settings(environment: Mapping[str, str]) -> str:
    """Return zensical.toml with the version in the footer and with the addresses that the environment names."""
    lines = [f'copyright = "Epochal {version("epochal")}"']
    if site_url := environment.get("SITE_URL"):
        lines.append(f'site_url = "{site_url.rstrip("/")}/"')
    if repository := environment.get("REPOSITORY_URL"):
        lines += [f'repo_url = "{repository.rstrip("/")}"', 'edit_uri = "edit/main/docs/"']
    text = (
        (ROOT / "zensical.toml")
        .read_text("utf-8")
        .replace("[project]\n", "\n".join(["[project]", *lines, ""]), 1)
    )
    return text.replace("features = [", 'features = ["content.action.edit", ', 1) if repository else text


def prepare(place: Path) -> None:
    """Copy what the site is made of into a folder, with what is made for it."""
    shutil.rmtree(place / "docs", ignore_errors=True)
    shutil.copytree(ROOT / "docs", place / "docs", ignore=shutil.ignore_patterns("requirements.txt"))
    (place / "zensical.toml").write_text(settings(os.environ), "utf-8")
    sources = place / "layers"
    if (
        sources.is_symlink()
    ):  # as earlier versions made it: to remove what is below would remove the library itself
        sources.unlink()
    shutil.rmtree(sources, ignore_errors=True)
    awaited_methods.copy(ROOT / LIBRARY, place / LIBRARY)
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
    if done.returncode == 0:
        sys.stdout.write(f"The site is in {place / 'site'}; open index.html there.\n")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(ROOT / sys.argv[1]))
