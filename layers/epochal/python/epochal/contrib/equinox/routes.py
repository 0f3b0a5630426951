"""Streams as tips over HTTP, below `/tips`."""

from __future__ import annotations

from typing import Final

from epochal.http.operation import stream_operations

OPERATIONS: Final = stream_operations("tips", rare=True)
