"""Fixtures of the command line, for the commands of optional packages."""

from __future__ import annotations

from tests.surfaces.cli.conftest import error_line, exits, terminal

__all__ = ["error_line", "exits", "terminal"]
