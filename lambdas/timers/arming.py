"""The entry point of the reaction that arms timers: wiring, and one call. What it does is `epochal.hosting.timers`."""

from __future__ import annotations

import os

from epochal.hosting.timers import deployed_arming

handler = deployed_arming(os.environ)
