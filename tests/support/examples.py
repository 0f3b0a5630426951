"""How many examples a property is tried with: fewer in `make check`."""

from __future__ import annotations

from hypothesis import settings


def examples(number: int) -> settings:
    """So many examples, or as many as `make check` draws; however long each takes."""
    few = settings.get_current_profile_name() == "check"
    return settings(max_examples=settings().max_examples if few else number, deadline=None)
