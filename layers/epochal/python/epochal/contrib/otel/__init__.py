"""Spans of OpenTelemetry around what stores and reactions do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from epochal.plugins import named_later

if TYPE_CHECKING:
    from epochal.contrib.otel.tracing import instrument as instrument
    from epochal.contrib.otel.tracing import uninstrument as uninstrument

__all__ = ["instrument", "uninstrument"]

_FILES: Final = dict.fromkeys(__all__, "tracing")
__getattr__ = named_later(__name__, _FILES)
