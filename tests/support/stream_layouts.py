"""The layouts of named streams, as tests play them: whatever a store of streams promises is asked of each.

Their tables have the same keys, so one table serves all of them, each stream in one layout.
"""

from __future__ import annotations

from typing import Final

from epochal.contrib.equinox.calving import ByCost, Fixed
from epochal.contrib.equinox.streams import Tips
from epochal.layout.streams import AnyStreamLayout
from epochal.pages.layout import Pages

LAYOUTS: Final[dict[str, AnyStreamLayout]] = {"tips": Tips(), "pages": Pages()}
"""Each with the choices that it makes by itself."""

WAYS: Final[dict[str, AnyStreamLayout]] = {
    **LAYOUTS,
    "tips, by cost, at once": Tips(calving=ByCost(mode="transactional")),
    "tips, every event": Tips(calving=Fixed(max_events=1, mode="two-step")),
    "tips, two events": Tips(calving=Fixed(max_events=2, mode="two-step")),
    "tips, four events, at once": Tips(calving=Fixed(max_events=4, mode="transactional")),
}
"""And with all others that a writer may make."""
