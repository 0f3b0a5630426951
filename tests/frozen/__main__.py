"""What must not change unnoticed, as files: the HTTP API, and the requests of every operation.

python -m tests.frozen        writes down what they are today; read the difference before you commit it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.frozen import api, requests

KEPT: Final = Path(__file__).with_name("golden")

FILES: Final[Mapping[str, Callable[[], list[str]]]] = {
    "api": api.native,
    "api-of-others": api.others,
    **{f"requests-{name}": lines for name, lines in (requests.NATIVE | requests.OTHERS).items()},
}
"""How each file is made, by its name."""


def main() -> None:
    """Write them down."""
    KEPT.mkdir(exist_ok=True)
    for name, lines in FILES.items():
        (KEPT / f"{name}.txt").write_text("\n".join(lines()).strip() + "\n")


if __name__ == "__main__":
    main()
