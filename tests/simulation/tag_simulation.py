"""One seed of tagged events in pages: as in Sekiban's tables, with pages that fill and bodies on other pages."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from epochal.store.listings import Listings, listings_of
from tests.simulation.dcb_simulation import TAGS, TYPES, Tagged
from tests.simulation.histories import played
from tests.simulation.tag_world import TagHistory, World

LARGE = 900
"""Bytes of an event that fills a page with three of its like, and that a second tag only refers to."""


def data(luck: random.Random) -> str:
    """A body; some do not compress."""
    return luck.choice(("{}", "{}", f'"{luck.randbytes(LARGE).hex()}"'))


@dataclass(slots=True)
class TaggedPages(Tagged):
    """Processes at work on a few tags of pages."""

    world: World = field(default_factory=World)  # type: ignore[assignment]

    def prepare(self) -> None:
        """As of Sekiban's tables."""
        self.data = data
        if self.seed % 4 == 0:
            self.world.with_types(TYPES)
        self.history = TagHistory(self.world)  # type: ignore[arg-type]

    def check_listing(self, luck: random.Random) -> None:
        """Who lists a tag, and goes on after any of its events, has had all of them once, in order."""
        listings = listings_of(self.world.store("lister"))
        places = self.world.tables.places
        for tag in TAGS:
            assert _listed(listings, tag, luck) == places.get(tag, []), "lost by a listing"
            assert listings.counted([tag])[0].events == len(places.get(tag, []))
        if self.world.type_heads:
            assert [each.id for each in listings.all_events()] == places.get("$all", [])


def _listed(listings: Listings, tag: str, luck: random.Random) -> list[str]:
    found, since = list[str](), None
    while True:
        wanted = luck.randint(1, 3)
        part = [
            each
            for each, _ in zip(listings.tagged(tag, since=since, page=wanted), range(wanted), strict=False)
        ]
        if not part:
            return found
        found += [event.id for event in part]
        since = part[-1].place


def replay(seed: int) -> TaggedPages:
    """Play a seed and check what came of it; a failure names it."""
    return played(TaggedPages(seed))
