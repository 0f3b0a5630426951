"""The entry point of the function that fires timers: wiring and one call (`epochal.contrib.timers.hosting`)."""

from __future__ import annotations

from epochal.http import coldstart  # before all others: see there

# isort: split
import os

from epochal.contrib.timers.hosting import deployed_timers

handler = deployed_timers(os.environ)
coldstart.over()
