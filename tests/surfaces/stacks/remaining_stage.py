"""The default stage as the library on the path synthesises it: a process of its own for a copy that lacks a package.

python -m tests.surfaces.stacks.remaining_stage      prints its templates as JSON
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.surfaces.stacks.templates import library_in, sources_in, synthesiser


def main() -> None:
    """Print the templates by the names of their stacks, in the order in which these are deployed."""
    with tempfile.TemporaryDirectory() as folder:
        synthesise = synthesiser(sources_in(library_in(Path(folder))))
        json.dump(synthesise("dev").in_order(), sys.stdout)


if __name__ == "__main__":
    main()
