"""Nothing that is archived is ever missing, by seed: whatever was pruned, and wherever in a page or a calf that ended,
reads, pages, decisions, copies and the feed have every event.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from epochal import Event
from epochal.contrib.equinox.calving import Fixed
from epochal.contrib.equinox.port import TIPS
from epochal.contrib.equinox.streams import Tips
from epochal.contrib.transfer.copying.sources import StreamSource
from epochal.contrib.transfer.copying.stream_copy import StreamCopier
from epochal.deciders.codecs import EventCodec
from epochal.deciders.on_streams import Decider, Deciders
from epochal.feed.stream_history import StreamHistory
from epochal.layout.streams import AnyStreamLayout
from epochal.pages.layout import Pages
from epochal.store.driver import Driver, Meter
from epochal.store.reading import Direction
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from tests.simulation.seeds import ranges

SIZE, COUNT = 100, 20
STREAM = "Flight-1"
LAYOUTS: dict[str, AnyStreamLayout] = {
    "pages": Pages(),
    "tips": Tips(),
    "tips, three events": Tips(calving=Fixed(max_events=3, mode="two-step")),
}
BODIES: Decider[None, tuple[bytes, ...], bytes] = Decider(
    initial=tuple, evolve=lambda state, body: (*state, body), decide=lambda _, _state: ()
)
CODEC: EventCodec[bytes] = EventCodec(
    encode=lambda body: Event(type="E", data=body), decode=lambda stored: bytes(stored.data)
)


@dataclass(slots=True)
class History:
    """A stream that grows, and whose beginning moves to the archive.

    Attributes:
        bodies: of all events that it has had.
    """

    luck: random.Random
    store: Streams
    bodies: list[bytes]

    def live(self) -> None:
        size = self.luck.choice((30, 300, 1_200, 9_000))
        for _ in range(self.luck.randint(3, 25)):
            match self.luck.choice(("append",) * 6 + ("archive", "prune", "both")):
                case "append":
                    new = [self.luck.randbytes(size) for _ in range(self.luck.randint(1, 4))]
                    self.store.append(STREAM, [Event(type="E", data=body) for body in new])
                    self.bodies += new
                case "archive":
                    self.store.copy_to_archive(STREAM, self.luck.randint(0, len(self.bodies) + 1))
                case "prune":
                    self.store.prune(STREAM, self.luck.randint(0, self._archived()))
                case _:
                    self.store.archive_and_prune(STREAM, self.luck.randint(0, len(self.bodies)))

    def check(self) -> None:
        whole = list(enumerate(self.bodies))
        directions: tuple[Direction, ...] = ("forward", "backward")
        for direction in directions:
            ordered = whole if direction == "forward" else whole[::-1]
            assert list(self._read(None, direction)) == ordered
            start = self.luck.randrange(len(whole)) if whole else 0
            ahead = whole[start:] if direction == "forward" else whole[: start + 1][::-1]
            assert list(self._read(start, direction)) == ahead
            assert list(self._pages(direction, self.luck.randint(1, 30))) == ordered
        deciders = Deciders(streams=self.store, decider=BODIES, codec=CODEC)
        assert list(deciders.query(STREAM, lambda state: state)) == self.bodies
        first, end = sorted((self.luck.randint(0, len(whole)), self.luck.randint(0, len(whole))))
        fed = StreamHistory(self.store).events()(STREAM, first, end)
        assert [(event.gone, event.data) for event in fed] == [
            (None, body) for body in self.bodies[first:end]
        ]
        self._check_copy()

    def _check_copy(self) -> None:
        target = replace(self.store, table="copies", archive=None)
        copier = StreamCopier(source=StreamSource(self.store), target=target)
        if self.bodies:
            copied = copier.copy(STREAM)
            assert (copied.ending, copied.events, copied.first) == ("copied", len(self.bodies), 0), copied.why

    def _archived(self) -> int:
        head = None if self.store.archive is None else self.store.archive.head(STREAM)
        return 0 if head is None else head.version

    def _read(self, start: int | None, direction: Direction) -> Iterator[tuple[int, bytes]]:
        for event in self.store.read(STREAM, start=start, direction=direction):
            assert isinstance(event.data, bytes)
            yield event.index, event.data

    def _pages(self, direction: Direction, limit: int) -> Iterator[tuple[int, object]]:
        at = 0 if direction == "forward" else None
        while True:
            page = self.store.page(STREAM, start=at, limit=limit, direction=direction)
            assert page.hole is None
            yield from ((event.index, event.data) for event in page.events)
            at = page.next
            if at is None:
                return


def play(seed: int, layout: str) -> None:
    """Play a seed and check what came of it; a failure names it."""
    luck = random.Random(seed)
    tables = MemoryTables({name: replace(TIPS, kind=name) for name in ("live", "archive", "copies")})
    driver = Driver(execute=tables.execute, meter=Meter())
    archive = Streams(
        driver=driver, table="archive", layout=LAYOUTS[layout], now=lambda: 0, fresh=luck.randbytes
    )
    history = History(luck, replace(archive, table="live", archive=archive), [])
    try:
        history.live()
        history.check()
    except Exception as error:
        raise AssertionError(f"seed {seed}: {error!r}") from error


@pytest.mark.parametrize("layout", LAYOUTS)
@ranges(SIZE, COUNT)
def test_whatever_is_archived_and_pruned_nothing_is_missing(seeds: range, layout: str) -> None:
    for seed in seeds:
        play(seed, layout)
