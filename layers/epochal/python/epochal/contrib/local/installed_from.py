"""What this library was installed from, as a requirement of a project that `epochal new` writes.

Installers record it in `direct_url.json` beside the package (PEP 610), unless it came from an index:

    a wheel on this machine             the project takes the wheel along, so that its first command works anywhere
    a repository, or a file's address   the project installs from there
    an index, a checkout                the project names the version
"""

from __future__ import annotations

import json
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from epochal.lazy_dataclasses import dataclass

WHEELS: Final = "wheels"
"""Folder of the project for the wheel that it takes along."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A line of `requirements.txt`, and the wheel that it needs in the project; None for none."""

    line: str
    wheel: Path | None = None


def requirement_of_project(extras: str) -> Requirement:
    """Return how a project should require this library, by what it was installed from.

    Args:
        extras: extras of the library that the work on the project needs, separated by commas.
    """
    package = distribution("epochal")
    source: dict[str, Any] = json.loads(package.read_text("direct_url.json") or "{}")
    url = source.get("url", "")
    if "vcs_info" in source:
        version = source["vcs_info"]
        return Requirement(line=f"epochal[{extras}] @ {version['vcs']}+{url}@{version['commit_id']}")
    if "archive_info" in source and not url.startswith("file:"):
        return Requirement(line=f"epochal[{extras}] @ {url}")
    wheel = Path(url2pathname(urlsplit(url).path))
    if "archive_info" in source and wheel.suffix == ".whl" and wheel.is_file():
        return Requirement(line=f"./{WHEELS}/{wheel.name}[{extras}]", wheel=wheel)
    return Requirement(line=f"epochal[{extras}]=={package.version}")
