"""Spans of OpenTelemetry around what stores and reactions do."""
