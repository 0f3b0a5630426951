"""Build the package of the client in TypeScript, as `npm install` takes it.

python -m tests.clients.packing build/dist
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.clients.typescript import PACKAGE, ROOT, TOOLS, run

PACKED: Final = ("package.json", "README.md", "tsconfig.json", "src")
"""What the package is made of, beside the project's license."""


def pack(destination: Path) -> Path:
    """Compile and pack the client; return the archive, which is in the folder `destination`."""
    destination.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in PACKED:
            source = PACKAGE / name
            (shutil.copytree if source.is_dir() else shutil.copy2)(source, place / name)
        shutil.copy2(ROOT / "LICENSE", place)
        run(TOOLS / "tsc", "--project", place)
        printed = run("npm", "pack", place, "--pack-destination", destination, "--loglevel", "error")
    return destination / printed.split()[-1]


if __name__ == "__main__":
    print(pack(Path(sys.argv[1])))  # noqa: T201
