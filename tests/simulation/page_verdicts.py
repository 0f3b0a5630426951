"""Wrong verdicts on whether an append was applied, for mutants to put in the place of `epochal.pages.evidence`."""

from __future__ import annotations

from typing import Any

from epochal.pages.evidence import Applied, NotApplied, Unknowable, Verdict
from epochal.pages.items import read_page
from epochal.pages.writes import Planned
from epochal.plan.values import Item


def never_applied(*_: Any, **__: Any) -> NotApplied:
    """Whatever the page shows."""
    return NotApplied()


def unknowable(*_: Any, **__: Any) -> Unknowable:
    """Whatever the page shows."""
    return Unknowable()


def applied_if_anything_is_there(table: str, write: Planned, item: Item | None, **_: Any) -> Verdict:
    """Whoever has written the page."""
    if item is None:
        return NotApplied()
    page = read_page(item, table)
    return Applied(first=write.first, end=write.token.version, stamp=write.stamp, page=page)
