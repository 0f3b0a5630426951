"""How many examples a property is tried with: fewer in `make test`, and still fewer in `make check`."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

CHECK: Final = 20
TEST: Final = 40
"""Where a test does not say how many; hypothesis has a hundred, which `make proof` tries."""


def examples(number: int) -> settings:
    """So many examples, a third of them in `make test`, and as few as there may be in `make check`."""
    few = {"check": CHECK, "test": max(CHECK, number // 3)}
    return settings(max_examples=few.get(settings.get_current_profile_name(), number))
