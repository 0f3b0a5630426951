"""Searches the tables themselves for names of streams: no index is ordered by name."""

from __future__ import annotations

from typing import Final

from epochal.care.heads import read_heads, scan
from epochal.layout.source import Source
from epochal.lazy_dataclasses import dataclass
from epochal.plan.values import Key
from epochal.store.driver import Driver

PAGE_BYTES: Final = 1024 * 1024
PAGE_UNITS: Final = 128
"""Read units of one request, at most: 1 MB, read without consistency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """A page of a search: names of streams in no order, and the key to go on from; None at the table's end."""

    streams: tuple[str, ...]
    after: Key | None


def search_streams(
    driver: Driver, source: Source, prefix: str, *, after: Key | None, requests: int
) -> SearchPage:
    """Find a source's streams whose names begin with `prefix`, by at most `requests` scan requests."""
    streams: dict[str, None] = {}
    for _ in range(requests):
        page = driver.ask(scan(source, after=after, consistent=False))
        names = (head.end.stream for head in read_heads(source, page.items))
        streams.update(dict.fromkeys(stream for stream in names if stream.startswith(prefix)))
        after = page.last
        if after is None:
            break
    return SearchPage(streams=tuple(streams), after=after)
