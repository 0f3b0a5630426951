"""The scripts that the documentation's pages run in a browser, fetched from npm, checked, and put into the site.

A page loads nothing from elsewhere, so the site has its own copies: Mermaid draws the diagrams, Redoc shows the OpenAPI
document. `python -m tests.docs.browser_scripts` fetches them once.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
CACHE: Final = ROOT / ".cache" / "browser-scripts"


@dataclass(frozen=True, slots=True)
class Script:
    """A file of a package of npm's."""

    package: str
    version: str
    sha256: str  # of the package's archive
    member: str
    remote_image: str | None = (
        None  # an address that the script would load from; the site replaces it by nothing
    )

    @property
    def name(self) -> str:
        """What it is called below assets/scripts of the site."""
        return Path(self.member).name

    @property
    def kept(self) -> Path:
        """Where it is once it has been fetched and checked."""
        return CACHE / f"{self.version}-{self.sha256[:12]}-{self.name}"


SCRIPTS: Final = (
    Script(
        "mermaid",
        "12.3.0",
        "be0684e8d20bfc874df12c0f04927a5c482f57f2200eec54cca52a4583fd4040",
        "package/dist/mermaid.min.js",
    ),
    Script(
        "redoc",
        "2.5.1",
        "01ba9840ed89ca7862268d8d21892bcaa54e0fce6a62941faf12021834cd2032",
        "package/bundles/redoc.standalone.js",
        remote_image="https://cdn.redoc.ly/redoc/logo-mini.svg",
    ),
)


def fetch(script: Script) -> None:
    """Keep the script, if it is not kept yet. Raises `SystemExit` where npm fails or the digest differs."""
    if script.kept.is_file():
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        named = f"{script.package}@{script.version}"
        command = ["npm", "pack", named, "--ignore-scripts", "--silent", "--pack-destination", scratch]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (archive,) = Path(scratch).glob("*.tgz")
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        if digest != script.sha256:
            sys.exit(f"{named} has the digest {digest}, not {script.sha256}")
        with tarfile.open(archive) as opened:
            opened.extract(script.member, scratch, filter="data")
        (Path(scratch) / script.member).replace(script.kept)


def put(docs: Path) -> None:
    """Copy what was fetched among the pages of a site."""
    folder = docs / "assets" / "scripts"
    folder.mkdir(parents=True, exist_ok=True)
    for script in SCRIPTS:
        text = script.kept.read_text("utf-8")
        if script.remote_image:
            if text.count(script.remote_image) != 1:
                raise ValueError(f"{script.name} no longer loads {script.remote_image}")
            text = text.replace(script.remote_image, "data:,")
        (folder / script.name).write_text(text, "utf-8")


if __name__ == "__main__":
    for each in SCRIPTS:
        fetch(each)
