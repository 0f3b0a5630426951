"""The sources that a deployment has: those of the layouts whose tables of heads its settings name."""

from __future__ import annotations

from epochal.layout.port import Source
from epochal.layout.registry import layouts_in
from epochal.settings import Settings


def sources_of(settings: Settings) -> tuple[Source, ...]:
    """A source for each layout of the deployment."""
    return tuple(each.port.source(settings) for each in layouts_in(settings))
