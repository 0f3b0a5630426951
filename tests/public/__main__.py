"""Every public name, one a line, so that a renaming shows in a difference.

python -m tests.public        writes down what they are today; read the difference before you commit it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.public import command_names, http_names, library_names

KEPT: Final = Path(__file__).with_name("names")

FILES: Final[Mapping[str, Callable[[], list[str]]]] = {
    "library": library_names.library,
    "constructs": library_names.constructs,
    "fixtures": library_names.fixtures,
    "http": http_names.names,
    "commands": command_names.names,
}
"""How each file is made, by its name."""


def main() -> None:
    """Write them down."""
    KEPT.mkdir(exist_ok=True)
    for name, names in FILES.items():
        (KEPT / f"{name}.txt").write_text("\n".join(names()) + "\n", "utf-8")


if __name__ == "__main__":
    main()
