"""Fixtures of the command line, for the commands of optional packages."""

from __future__ import annotations

from tests.surfaces.cli.conftest import exits, terminal

__all__ = ["exits", "terminal"]
