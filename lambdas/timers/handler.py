"""The entry point of the function that fires timers: wiring, and one call. What it does is `epochal.hosting.timers`."""

from __future__ import annotations

import os

from epochal.hosting.timers import deployed_timers

handler = deployed_timers(os.environ)
