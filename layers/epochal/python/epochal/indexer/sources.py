"""The sources that a deployment has: those whose tables of heads its settings name."""

from __future__ import annotations

from collections.abc import Iterator

from epochal.index.sources import Source, dcb_source, journal_source, tips_source
from epochal.settings import Settings
from epochal.store.aggregates import site_of
from epochal.store.tagged import tag_site_of


def sources_of(settings: Settings) -> tuple[Source, ...]:
    """A source for each table of heads that is named."""
    return tuple(_sources(settings))


def _sources(settings: Settings) -> Iterator[Source]:
    if settings.tips_table:
        yield tips_source(settings.tips_table, settings.partitions)
    if settings.snapshot_table:
        yield journal_source(site_of(settings), settings.journal_partitions)
    if settings.tags_table:
        yield dcb_source(tag_site_of(settings), settings.dcb_partitions)
