"""Generate the types of the client in TypeScript from the OpenAPI document.

python -m tests.clients.schema
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from epochal.http.openapi import documents
from tests.clients.typescript import PACKAGE, TOOLS, run

SCHEMA: Final = PACKAGE / "src" / "schema.ts"
"""The generated types, which are committed."""


def generate(file: Path) -> None:
    """Write the types of today's document to a file."""
    with tempfile.TemporaryDirectory() as folder:
        document = Path(folder) / "openapi.json"
        document.write_text(documents()["openapi.json"], "utf-8")
        options = ("--default-non-nullable", "false", "--output", file)
        run(TOOLS / "openapi-typescript", document, *options)


if __name__ == "__main__":
    generate(SCHEMA)
