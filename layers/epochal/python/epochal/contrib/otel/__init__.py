"""Makes OpenTelemetry spans of the calls of stores and reactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochal.deferred import deferred_names

if TYPE_CHECKING:
    from epochal.contrib.otel.tracing import instrument as instrument
    from epochal.contrib.otel.tracing import uninstrument as uninstrument

__all__ = ["instrument", "uninstrument"]

__getattr__ = deferred_names(__name__, {"tracing": __all__})


def __dir__() -> list[str]:
    return sorted(__all__)
