"""A reaction that asks at once for what its folder has not got."""

from __future__ import annotations

from pathlib import Path

from epochal import Delivery, lambda_handler, reaction

FORGOTTEN = (Path(__file__).parent / "forgotten.json").read_text()


@reaction(name="broken")
def broken(delivery: Delivery) -> None:
    """Never called."""


handler = lambda_handler(broken)
