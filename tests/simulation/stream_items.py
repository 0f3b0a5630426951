"""What the items of named streams say, read past their layout's own reads: what an auditor goes by, for each layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from epochal.contrib.equinox.calving import ByCost, Fixed
from epochal.contrib.equinox.port import TIPS
from epochal.contrib.equinox.streams import Tips
from epochal.index.checkpoints import is_tip, tip_key
from epochal.index.tip import append_id, read_span, read_tip
from epochal.layout.streams import AnyStreamLayout
from epochal.model.tokens import Token
from epochal.plan.ops import Op, Put, Transact, Update
from epochal.plan.tables import TableSpec
from epochal.plan.values import Item


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadSeen:
    """A stream's head, as a write left it.

    Attributes:
        mark: tells the write from all others.
        token: of this very state.
    """

    version: int
    etag: str | None
    mark: str
    deleted: bool
    token: Token


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSeen:
    """An event in an item: its append's id, if it is the first of one, and all of it."""

    index: int
    append_id: bytes | None
    content: object


@dataclass(slots=True)
class Sent:
    """What an operation would write: whose appends of events, and marks of heads."""

    ids: set[bytes] = field(default_factory=set)
    marks: set[str] = field(default_factory=set)

    def add(self, other: Sent) -> None:
        self.ids |= other.ids
        self.marks |= other.marks


def same(one: Token, other: Token) -> bool:
    """Return whether two tokens are of the same state."""
    return (one.version, one.etag) == (other.version, other.etag)


class StreamItems(Protocol):
    """A layout's items, in a table in memory that is called by its kind."""

    @property
    def spec(self) -> TableSpec:
        """Specification of the table."""

    @property
    def layouts(self) -> Sequence[AnyStreamLayout]:
        """The layout with each choice that a writer may make; what it chooses by itself is last."""

    def whose(self, append_id: bytes) -> bytes:
        """What of an append's id stays the same over all its tries."""

    def events(self, item: Item) -> Iterator[EventSeen]:
        """The events that an item holds, those below the low-water mark too."""

    def heads(self, images: Iterable[Item]) -> Iterator[HeadSeen]:
        """Each state of a stream's head, of the images of all its items in the order of writing."""

    def low(self, items: Sequence[Item]) -> int:
        """Every event of the stream below this is gone."""

    def is_as_good(self, expected: Token, found: Token) -> bool:
        """Whether an append on one token may be made on the head that the other is of."""

    def sent(self, op: Op, stream: str) -> Sent:
        """What an operation would write to a stream."""


class TipItems:
    """Tips and calves."""

    spec = TIPS
    layouts = (
        Tips(calving=Fixed(max_events=1, mode="two-step")),
        Tips(calving=Fixed(max_events=2, mode="two-step")),
        Tips(calving=Fixed(max_events=3, mode="transactional")),
        Tips(calving=ByCost()),
    )

    def whose(self, append_id: bytes) -> bytes:
        return append_id

    def events(self, item: Item) -> Iterator[EventSeen]:
        span = read_span(item)
        for offset, pair in enumerate(span.pairs):
            yield EventSeen(index=span.base + offset, append_id=append_id(pair[1]), content=pair)

    def heads(self, images: Iterable[Item]) -> Iterator[HeadSeen]:
        for tip in map(read_tip, filter(is_tip, images)):
            yield HeadSeen(
                version=tip.version,
                etag=tip.etag,
                mark=tip.etag or "",
                deleted=tip.deleted,
                token=tip.token(),
            )

    def low(self, items: Sequence[Item]) -> int:
        return max((read_tip(item).low_water for item in items if is_tip(item)), default=0)

    def is_as_good(self, expected: Token, found: Token) -> bool:
        return same(expected, found)

    def sent(self, op: Op, stream: str) -> Sent:
        found = Sent()
        match op:
            case Put(item=item) if item["i"] == tip_key(stream)["i"]:
                found.marks.add(item["etag"]["S"])
                found.ids.update(filter(None, map(append_id, item.get("e", {"L": []})["L"])))
            case Update(sets=sets):
                for change in sets:
                    if change.name == "etag":
                        found.marks.add(change.value["S"])
                    elif change.name == "e":
                        found.ids.update(filter(None, map(append_id, change.value["L"])))
            case Transact(writes=writes):
                for write in writes:
                    found.add(self.sent(write, stream))
        return found


TIP_ITEMS = TipItems()
