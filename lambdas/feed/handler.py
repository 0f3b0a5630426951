"""The `feed` function's entry point: wiring, and one call. What it does is in `epochal.http.operation`."""

from __future__ import annotations

from epochal.http import coldstart  # before all others: see there

# isort: split
import os

from epochal.dynamo.interpreter import open_deployment
from epochal.http.gateway import serve
from epochal.settings import Settings

deployment = open_deployment(Settings.from_environment(os.environ))
handler = serve("feed", deployment)
coldstart.over()
