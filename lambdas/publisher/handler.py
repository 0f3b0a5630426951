"""The publisher's entry point: wiring, and one call. What it does is `epochal.hosting.publishing`."""

from __future__ import annotations

import os

from epochal.dynamo.deployed import deployed
from epochal.hosting.function import lambda_handler
from epochal.hosting.publishing import publication_of, publisher
from epochal.settings import Settings

settings = Settings.from_environment(os.environ)
bodies = deployed(settings).bucket.bodies
handler = lambda_handler(publisher(publication_of(os.environ), bodies, settings.bucket))
