"""Training dictionaries on what an audit meets anyway: at most one category at a time, and each once a week."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from epochal.care.dictionaries import in_category
from epochal.errors import EpochalError
from epochal.layout.port import Source
from epochal.model.times import Ticks
from epochal.model.training import Trained
from epochal.plan.values import Item
from epochal.store.driver import Driver

ENOUGH: Final = 100
"""Heads of a category, met in one audit, from which on it is worth a try."""

KEPT: Final = 200
"""Of those, images that are held: a few hundred events are as good as all."""

CATEGORIES: Final = 20
"""Held at once, so that a table of many does not fill the memory: some 4 MB."""


@dataclass(slots=True)
class Sample:
    """Heads of a source's categories, as an audit meets them."""

    source: Source
    met: dict[str, int] = field(default_factory=dict)
    kept: dict[str, list[Item]] = field(default_factory=dict)

    def take(self, images: Iterable[Item]) -> None:
        """Take in a page of a scan."""
        if self.source.train is None:
            return
        for category, image in in_category(self.source, images):
            if category not in self.kept and len(self.kept) == CATEGORIES:
                continue
            kept = self.kept.setdefault(category, [])
            self.met[category] = self.met.get(category, 0) + 1
            if len(kept) < KEPT:
                kept.append(image)

    def train(self, driver: Driver, now: Ticks, troubles: list[str]) -> Trained | None:
        """Train for the largest category whose turn it is; None where there is none."""
        train, due = self.source.train, self.source.due
        for category in sorted(self.met, key=lambda each: (-self.met[each], each)):
            if train is None or due is None or self.met[category] < ENOUGH:
                return None
            try:
                if driver.run(due(category, now)):
                    return driver.run(train(category, self.kept[category]))
            except EpochalError as error:
                troubles.append(f"{self.source.name}: no dictionary for {category}: {error}")
                return None
        return None
