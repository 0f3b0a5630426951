"""The folder in which fetched programs and packages are kept for all projects of this user."""

from __future__ import annotations

import os
import sys
from pathlib import Path

CACHE = "EPOCHAL_CACHE"
"""Environment variable with the folder for fetched packages, instead of one among the user's caches."""


def user_cache() -> Path:
    """Return the folder for fetched packages, shared by all projects of this user."""
    if folder := os.environ.get(CACHE):
        return Path(folder)
    if caches := os.environ.get("XDG_CACHE_HOME"):
        return Path(caches) / "epochal"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "epochal"
