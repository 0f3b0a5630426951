"""The publisher's entry point: wiring, and one call. What it does is `epochal.contrib.publish.publication`."""

from __future__ import annotations

import os

from epochal.contrib.publish.publication import deployed_publisher

handler = deployed_publisher(os.environ)
