"""Spans of OpenTelemetry around what stores and reactions do."""

from epochal.contrib.otel.tracing import instrument, uninstrument

__all__ = ["instrument", "uninstrument"]
