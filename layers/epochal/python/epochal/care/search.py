"""Names of streams in the tables themselves, by scans of as much as is asked for: no index is ordered by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from epochal.care.catch_up import ScannedHead, read_head
from epochal.care.head_scan import scan
from epochal.layout.port import Source
from epochal.plan.values import Key
from epochal.store.driver import Driver

PAGE_BYTES: Final = 1024 * 1024
PAGE_UNITS: Final = 128
"""Read units of one request, at most: 1 MB, read without consistency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """What a search has come upon: streams in no order, and the key to go on from; None at the end of the table."""

    streams: tuple[str, ...]
    after: Key | None


def named(driver: Driver, source: Source, prefix: str, *, after: Key | None, requests: int) -> SearchPage:
    """Streams of a source whose names begin with `prefix`, among those that so many requests read."""
    streams: dict[str, None] = {}
    for _ in range(requests):
        page = driver.ask(scan(source, after=after, consistent=False))
        for image in page.items:
            head = read_head(source, image)
            if isinstance(head, ScannedHead) and head.end.stream.startswith(prefix):
                streams.setdefault(head.end.stream)
        after = page.last
        if after is None:
            break
    return SearchPage(streams=tuple(streams), after=after)
