"""The entry point of the reaction that arms timers: wiring and one call (`epochal.contrib.timers.hosting`)."""

from __future__ import annotations

import os

from epochal.contrib.timers.hosting import deployed_arming

handler = deployed_arming(os.environ)
