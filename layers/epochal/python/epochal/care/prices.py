"""What AWS asks for what a store uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PRICES: Final[Mapping[str, float]] = {
    "write units": 0.625e-6,
    "read units": 0.125e-6,
    "requests of the API": 3e-6,  # gateway, invocation, and a tenth of a second of a gigabyte
    "uploads": 5e-6,
    "metrics": 1e-5,
    "seconds of functions": 1.7e-5,
}
"""Dollars in us-east-1. What the feed's functions do with the events is in the bound of a check alone."""
