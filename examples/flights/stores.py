"""The two ways to the store, as the demo sees them: over HTTP, or through the library.

Both answer the same questions, so that writers, follower and verification do not know which one they use.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from epochal.model.events import Unfold
from examples.flights.aircraft import Aircraft
from examples.flights.happenings import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An append was made: the stream is at `version`, `token` makes the next append one request, `units` it cost."""

    version: int
    token: str
    units: float


@dataclass(frozen=True, slots=True)
class Conflict:
    """Someone else wrote to the stream since its token was handed out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a stream is: its snapshot, if it has one, and its token."""

    state: Aircraft | None
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An event of the feed; `body` as sent, None where only the index was read."""

    stream: str
    index: int
    type: str
    body: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Items of the feed, and the checkpoint after them."""

    items: tuple[Item, ...]
    next: str
    at_tail: bool


class Store(Protocol):
    """What the demo needs of a store. Safe under threads."""

    def append(self, batch: Batch, snapshot: Unfold | None, token: str | None) -> Written | Conflict:
        """Append on exactly the state that `token` names; None: the stream must be new."""

    def load(self, stream: str) -> Standing | None:
        """Where a stream is; None where there is none."""

    def tails(self) -> dict[int, str]:
        """Every partition of the feed with the checkpoint of its end."""

    def page(self, partition: int, start: str, *, data: bool, wait: int = 0) -> Page:
        """Part of the feed from a checkpoint on, waiting up to so many seconds for something to come."""


BEGINNING = "0@0"


def walk(store: Store, partition: int, *, data: bool) -> Iterator[Page]:
    """A partition's whole feed, from the start of its first epoch to its present end."""
    at, at_tail = BEGINNING, False
    while not at_tail:
        page = store.page(partition, at, data=data)
        at, at_tail = page.next, page.at_tail
        yield page
