"""The publisher's entry point: wiring, and one call. What it does is `epochal.contrib.publish.recipients`."""

from __future__ import annotations

import os

from epochal.contrib.publish.recipients import deployed_publisher

handler = deployed_publisher(os.environ)
