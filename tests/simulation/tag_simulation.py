"""One seed of tagged events in pages: as in Sekiban's tables, with pages that fill and bodies on other pages.

In every third seed all are threads of one process, which take turns under their tags.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from itertools import count

from epochal.plan.ops import Execute
from epochal.store.driver import TURN
from epochal.store.listings import Listings, listings_of
from epochal.store.tagged import TaggedStore
from tests.simulation.dcb_simulation import TAGS, TYPES, Tagged
from tests.simulation.histories import played
from tests.simulation.scheduler import Pause
from tests.simulation.tag_world import TagHistory, World

LARGE = 900
"""Bytes of an event that fills a page with three of its like, and that a second tag only refers to."""


def data(luck: random.Random) -> str:
    """Return a body; some do not compress."""
    return luck.choice(("{}", "{}", f'"{luck.randbytes(LARGE).hex()}"'))


ONE_PROCESS = 3
"""Each so many seeds, processes are threads of one."""

PLACES = count(-1, -1)
"""Places of the drivers of such processes, each of another one."""


@dataclass(slots=True, eq=False)
class ThreadsTurn:
    """A turn for which a thread waits while others continue."""

    execute: Execute
    is_over: bool = False

    def wait(self, timeout: float | None = None) -> object:  # noqa: ARG002  no time passes
        """Let other threads continue until the turn is set."""
        self.execute(Pause(until=self.is_set))  # type: ignore[arg-type]
        return self.is_over

    def set(self) -> None:
        """Let the waiting thread continue."""
        self.is_over = True

    def is_set(self) -> bool:
        """Return whether the turn was set."""
        return self.is_over


@dataclass(slots=True)
class TaggedPages(Tagged):
    """Processes that work on a few tags in the layout of pages."""

    world: World = field(default_factory=World)  # type: ignore[assignment]
    place: int = field(default_factory=lambda: next(PLACES))

    def prepare(self) -> None:
        """Choose what else differs from seed to seed."""
        self.data = data
        if self.seed % 4 == 0:
            self.world.with_types(TYPES)
        self.history = TagHistory(self.world)  # type: ignore[arg-type]

    def store(self, luck: random.Random, name: str, execute: Execute) -> TaggedStore:
        """As of Sekiban's tables; threads of one process share its queues."""
        store = super(TaggedPages, self).store(luck, name, execute)
        if self.seed % ONE_PROCESS != 1:
            return store
        TURN.set(lambda: ThreadsTurn(execute))
        return replace(store, driver=replace(store.driver, place=self.place))

    def check_listing(self, luck: random.Random) -> None:
        """Check that a reader who lists a tag, continuing after any event, gets all events once, in order."""
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
    """Play a seed and check the result; a failure names the seed."""
    return played(TaggedPages(seed))
