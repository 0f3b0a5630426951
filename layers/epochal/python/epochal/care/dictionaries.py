"""Training dictionaries for categories of streams, on what a scan of their table finds of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from epochal.care.catch_up import ScannedHead, read_head
from epochal.care.head_scan import scan
from epochal.errors import InvalidInput
from epochal.layout.port import Source
from epochal.model.names import TAG_STREAMS, category_of
from epochal.model.training import Trained
from epochal.plan.values import Item
from epochal.store.driver import Driver

HEADS: Final = 400
"""Heads of a category that are looked at: one is a few events, and some hundred events are enough."""

PAGES: Final = 100
"""Pages of a scan at most, 1 MB each; a category that is rarer is trained on what is found by then."""


def train(driver: Driver, source: Source, category: str) -> Trained:
    """Train a dictionary for a category, and put it in use where it pays.

    Raises:
        InvalidInput: the source's events are not packed under dictionaries.
    """
    if source.train is None:
        raise InvalidInput("source", f"{source.name} has no dictionaries")
    return driver.run(source.train(category, list(_sample(driver, source, category))))


def in_category(source: Source, images: Iterable[Item]) -> Iterator[tuple[str, Item]]:
    """Heads that can be read, each with its category. Events of tags are not packed under dictionaries."""
    for image in images:
        head = read_head(source, image)
        if isinstance(head, ScannedHead) and not head.end.stream.startswith(TAG_STREAMS):
            yield category_of(head.end.stream), image


def _sample(driver: Driver, source: Source, category: str) -> Iterator[Item]:
    found = 0
    pages = driver.pages(scan(source, consistent=False))
    for _, page in zip(range(PAGES), pages, strict=False):
        for name, image in in_category(source, page.items):
            if name == category:
                yield image
                found += 1
        if found >= HEADS:
            return
