"""Marks: the next index of a stream that its partition's two newest epochs have forgotten (DESIGN §5.10).

Marks are written before an epoch closes, for every stream of its predecessor that it does not contain, and are never
lowered. They are packed: one item, a leaf, has the marks of all streams whose hashes are in its range, so a write unit
carries a hundred. FORMATS §4.

    write     a leaf is replaced under its version; refused, it is read again, and what was to be raised is merged again
    split     a leaf that has grown too large becomes several, in one transaction: no mark is ever in none, or in two
    read      leaf by leaf, or all between the first hash and the last where that is most of them

What was read is kept while the epoch is active: until the next one nobody raises the mark of a stream that neither the
epoch nor its predecessor knows. Marks of an item each, as they were written before, are read where a leaf says that
there may be some.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from epochal.errors import CorruptData
from epochal.index.checkpoints import REMOVALS, calf_key, mark_name, marks_name
from epochal.lazy_dataclasses import dataclass, field
from epochal.plan.batches import get_all, side_by_side
from epochal.plan.conditions import Absent, equals
from epochal.plan.ops import Done, Put, Query, Refusal, Steps, Transact
from epochal.plan.values import Item, number, read_number, text

HASH: Final = 9
"""Bytes of a stream's hash. Among a hundred million streams, two have the same hash in only one index of a million."""

PLACES: Final = 1 << 48
"""Leaves divide the first six bytes of a hash."""

FLOOR: Final = 1 << 48
"""Added to a leaf's place to make its sort key, which must not be that of a Tip."""

LEAF: Final = 4_000
"""Largest bytes of marks in a leaf, so that reading it costs one read unit."""

MAX_SPLIT: Final = 48
"""Largest number of leaves that one is split into: a transaction has a hundred items."""

AT_ONCE: Final = 500
"""Number of leaves that are encoded and written at the same time."""

MOST_OF: Final = 8
"""All leaves are read where one in so many is wanted: by the page they take a third fewer units, and few requests."""

ROUNDS: Final = 20
"""Tries before a leaf counts as missing: one that is being split may show before the leaf that takes its other part."""

MOST_HELD: Final = 64 * 1024 * 1024
"""Bytes of leaves kept: those of some five million streams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One item with the marks of all streams whose hashes are in a range.

    Attributes:
        start: first place of the range.
        end: place after the last.
        hashes: hashes of the streams in order, `HASH` bytes each.
        nexts: next indices of the streams, `width` bytes each.
        width: bytes of a next index.
        version: 1 for its first write, one more for each further.
        single: whether there may also be marks that are items of their own.
    """

    start: int
    end: int
    hashes: bytes = b""
    nexts: bytes = b""
    width: int = 1
    version: int = 0
    single: bool = False

    def __len__(self) -> int:
        return len(self.hashes) // HASH

    @property
    def size(self) -> int:
        """Bytes of the marks."""
        return len(self.hashes) + len(self.nexts)

    def mark(self, hashed: bytes) -> int:
        """Return the mark of a stream by its hash; 0 if there is none."""
        position = bisect_left(range(len(self)), hashed, key=self._hash)
        return self._next(position) if position < len(self) and self._hash(position) == hashed else 0

    def marks(self) -> dict[bytes, int]:
        """Return all marks by hash."""
        return {self._hash(position): self._next(position) for position in range(len(self))}

    def with_marks(self, marks: Mapping[bytes, int]) -> Leaf:
        """Return a new version of the leaf with these marks instead."""
        width = max(1, (max(marks.values(), default=0).bit_length() + 7) // 8)
        ordered = sorted(marks)
        return Leaf(
            start=self.start,
            end=self.end,
            hashes=b"".join(ordered),
            nexts=b"".join(marks[hashed].to_bytes(width, "big") for hashed in ordered),
            width=width,
            version=self.version + 1,
            single=self.single,
        )

    def with_raised_marks(self, marks: Mapping[bytes, int]) -> Leaf:
        """Return the leaf with these marks raised, or the leaf itself if none is higher."""
        present = self.marks()
        higher = {
            hashed: following for hashed, following in marks.items() if following > present.get(hashed, 0)
        }
        return self.with_marks({**present, **higher}) if higher else self

    def split(self) -> list[Leaf]:
        """Return the leaf alone or, if too large, divided into several; equal hash beginnings stay together."""
        if self.size <= LEAF:
            return [self]
        ways = min(MAX_SPLIT, -(-self.size * 3 // (2 * LEAF)))
        cuts = {hash_place(self._hash(len(self) * way // ways)) for way in range(1, ways)} - {self.start}
        places = [self.start, *sorted(cuts), self.end]
        marks = self.marks()
        ordered, begin = sorted(marks), 0
        parts = []
        for start, end in pairwise(places):
            until = bisect_left(ordered, end, lo=begin, key=hash_place)
            part = Leaf(
                start=start,
                end=end,
                single=self.single,
                version=self.version - 1 if start == self.start else 0,
            )
            parts.append(part.with_marks({hashed: marks[hashed] for hashed in ordered[begin:until]}))
            begin = until
        return parts

    def _hash(self, position: int) -> bytes:
        """Return the hash at a position."""
        return self.hashes[position * HASH : (position + 1) * HASH]

    def _next(self, position: int) -> int:
        """Return the next index at a position."""
        return int.from_bytes(self.nexts[position * self.width : (position + 1) * self.width], "big")


@dataclass(slots=True)
class Leaves:
    """The leaves of a partition's marks that have been read.

    Attributes:
        by_start: leaves by the start of their range.
        starts: these starts, in order.
        size: bytes of all marks.
        bare: whether the partition had no leaf at all.
        lenient: whether a missing leaf counts as one without marks; for repairs.
    """

    by_start: dict[int, Leaf] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)
    size: int = 0
    bare: bool = False
    lenient: bool = False

    def of(self, hashed: bytes) -> Leaf | None:
        """Return the kept leaf that covers a hash, or None."""
        place = hash_place(hashed)
        leaf_number = bisect_right(self.starts, place) - 1
        leaf = self.by_start[self.starts[leaf_number]] if leaf_number >= 0 else None
        return leaf if leaf is not None and place < leaf.end else None

    def keep(self, leaf: Leaf) -> None:
        """Keep a leaf, replacing those that it overlaps."""
        first = max(0, bisect_right(self.starts, leaf.start) - 1)
        for start in self.starts[first : bisect_left(self.starts, leaf.end)]:
            if self.by_start[start].end > leaf.start:
                self.drop(self.by_start[start])
        self.starts.insert(bisect_left(self.starts, leaf.start), leaf.start)
        self.by_start[leaf.start] = leaf
        self.size += leaf.size
        self.bare = False

    def drop(self, leaf: Leaf) -> None:
        """Forget a leaf."""
        del self.starts[bisect_left(self.starts, leaf.start)]
        self.size -= self.by_start.pop(leaf.start).size

    def before(self, place: int) -> int:
        """Return where the last kept leaf before a place ends."""
        leaf_number = bisect_right(self.starts, place) - 1
        return self.by_start[self.starts[leaf_number]].end if leaf_number >= 0 else 0

    def lacking(self, hashes: Iterable[bytes]) -> list[bytes]:
        """Return, in order, the hashes whose leaves are not kept."""
        return [] if self.bare else [hashed for hashed in sorted(hashes) if self.of(hashed) is None]


def hash_of(stream: str) -> bytes:
    """Return the hash that identifies a stream among the marks."""
    return hashlib.sha256(stream.encode()).digest()[:HASH]


def hash_place(hashed: bytes) -> int:
    """Return the place of a hash in the ranges of leaves."""
    return int.from_bytes(hashed[:6], "big")


def read_marks(table: str, partition: int, leaves: Leaves, streams: Sequence[str]) -> Steps[dict[str, int]]:
    """Read the marks of streams, by stream; those without a mark are missing from the result.

    `leaves` keeps what is read.
    """
    hashes = {stream: hash_of(stream) for stream in streams}
    yield from _read_leaves(table, partition, leaves, hashes.values())
    marks, without_leaf = dict[str, int](), list[str]()
    for stream, hashed in hashes.items():
        leaf = leaves.of(hashed)
        mark = 0 if leaf is None else leaf.mark(hashed)
        if mark:
            marks[stream] = mark
        elif (leaf is None or leaf.single) and not stream.startswith(REMOVALS):
            without_leaf.append(stream)
    if without_leaf:
        marks.update((yield from _single_marks(table, partition, without_leaf)))
    return marks


def write_marks(
    table: str, partition: int, leaves: Leaves, marks: Iterable[tuple[str, int]], *, single: bool = True
) -> Steps[None]:
    """Raise the marks of streams to these next indices; a higher mark stays.

    Args:
        single: whether, if there is no leaf yet, there may be marks that are items of their own.
    """
    due: dict[bytes, int] = {}
    for stream, following in marks:
        hashed = hash_of(stream)
        due[hashed] = max(following, due.get(hashed, 0))
    while due:
        yield from _read_leaves(table, partition, leaves, due)
        if leaves.bare:
            leaves.keep(Leaf(start=0, end=PLACES, single=single))
        due = yield from _raise_marks(table, partition, leaves, due)


def begin_marks(table: str, partition: int) -> Steps[None]:
    """Write the first leaf of a new index, which says that no mark is an item of its own."""
    root = Leaf(start=0, end=PLACES).with_marks({})
    yield Put(table=table, item=_encode_leaf(partition, root), condition=Absent("p"))


def decode_leaf(item: Item) -> Leaf:
    """Decode a stored leaf; raise `CorruptData` if it is malformed."""
    hashes, nexts, width = item["h"]["B"], item["n"]["B"], read_number(item, "w") or 1
    start, end = read_number(item, "i"), read_number(item, "z")
    if start is None or end is None or len(hashes) % HASH or len(hashes) // HASH * width != len(nexts):
        raise CorruptData("a leaf of marks is malformed")
    return Leaf(
        start=start - FLOOR,
        end=end,
        hashes=hashes,
        nexts=nexts,
        width=width,
        version=read_number(item, "v") or 0,
        single="s" in item,
    )


def _encode_leaf(partition: int, leaf: Leaf) -> Item:
    """Encode a leaf as an item."""
    item: Item = {
        **calf_key(marks_name(partition), FLOOR + leaf.start),
        "z": number(leaf.end),
        "v": number(leaf.version),
        "w": number(leaf.width),
        "h": {"B": leaf.hashes},
        "n": {"B": leaf.nexts},
    }
    return {**item, "s": {"BOOL": True}} if leaf.single else item


def _put(table: str, partition: int, leaf: Leaf) -> Put:
    """Build the conditional write of a leaf, which is refused if another version is stored."""
    before = Absent("p") if leaf.version == 1 else equals("v", number(leaf.version - 1))
    return Put(table=table, item=_encode_leaf(partition, leaf), condition=before)


def _raise_marks(
    table: str, partition: int, leaves: Leaves, due: Mapping[bytes, int]
) -> Steps[dict[bytes, int]]:
    """Raise marks in their leaves, dividing large ones; return the marks whose writes were refused."""
    by_leaf: dict[int, dict[bytes, int]] = {}
    for hashed, following in due.items():
        leaf = leaves.of(hashed)
        if leaf is None:
            raise CorruptData("no leaf of marks covers a stream: repair the index")
        by_leaf.setdefault(leaf.start, {})[hashed] = following
    changed = [
        (leaves.by_start[start].with_raised_marks(leaf_marks), start) for start, leaf_marks in by_leaf.items()
    ]
    splits = [(leaf.split(), start) for leaf, start in changed if leaf is not leaves.by_start[start]]
    refused: dict[bytes, int] = {}
    for begin in range(0, len(splits), AT_ONCE):
        group = splits[begin : begin + AT_ONCE]
        writes = [tuple(_put(table, partition, part) for part in parts) for parts, _ in group]
        replies = yield from side_by_side(
            puts[0] if len(puts) == 1 else Transact(writes=puts) for puts in writes
        )
        for (parts, start), reply in zip(group, replies, strict=True):
            if isinstance(reply, Done):
                for part in parts:
                    leaves.keep(part)
                continue
            leaves.drop(leaves.by_start[start])
            refused.update(by_leaf[start])
            blocking = reply.items[0] if isinstance(reply, Refusal) else None
            if blocking is not None:
                leaves.keep(decode_leaf(blocking))
    return refused


def _read_leaves(table: str, partition: int, leaves: Leaves, hashes: Iterable[bytes]) -> Steps[None]:
    """Read the leaves of these hashes that `leaves` lacks; raise `CorruptData` if missing, unless lenient."""
    if leaves.size > MOST_HELD:
        leaves.by_start, leaves.starts, leaves.size = {}, [], 0
    lacking = leaves.lacking(hashes)
    if lacking and not leaves.starts:
        yield from _read_some(table, partition, leaves, lacking[:1])
        if not leaves.starts and (yield from _next_start(table, partition, 0)) == PLACES:
            leaves.bare = True
    for _ in range(ROUNDS):
        lacking = leaves.lacking(lacking)
        if not lacking:
            return
        width = _width(leaves)
        if len(lacking) * MOST_OF * width >= PLACES:
            yield from _read_all(table, partition, leaves, lacking)
            lacking = leaves.lacking(lacking)
        yield from _read_some(table, partition, leaves, list(_spread(lacking, width)))
    if not leaves.lenient:
        raise CorruptData("marks are missing: repair the index")
    while lacking := leaves.lacking(lacking):
        place = hash_place(lacking[0])
        following = yield from _next_start(table, partition, place)
        leaves.keep(Leaf(start=leaves.before(place), end=following, single=True))


def _read_some(table: str, partition: int, leaves: Leaves, hashes: Sequence[bytes]) -> Steps[None]:
    """Read into `leaves` the leaf that covers each of these stream hashes, with one request each."""
    name = text(marks_name(partition))
    replies = yield from side_by_side(
        Query(
            table=table,
            partition=("p", name),
            sort=("i", number(FLOOR), number(FLOOR + hash_place(hashed))),
            forward=False,
            limit=1,
        )
        for hashed in hashes
    )
    for item in (item for reply in replies for item in reply.items):
        leaves.keep(decode_leaf(item))


def _next_start(table: str, partition: int, place: int) -> Steps[int]:
    """Return where the first leaf from a place on begins; the end of all places if there is none."""
    reply = yield Query(
        table=table,
        partition=("p", text(marks_name(partition))),
        sort=("i", number(FLOOR + place), number(FLOOR + PLACES)),
        limit=1,
    )
    return next((decode_leaf(item).start for item in reply.items), PLACES)


def _read_all(table: str, partition: int, leaves: Leaves, hashes: Sequence[bytes]) -> Steps[None]:
    """Read into `leaves` every leaf that begins between the first hash and the last."""
    first, last = FLOOR + hash_place(hashes[0]), FLOOR + hash_place(hashes[-1])
    after = None
    while True:
        reply = yield Query(
            table=table,
            partition=("p", text(marks_name(partition))),
            sort=("i", number(first), number(last)),
            after=after,
        )
        for item in reply.items:
            leaves.keep(decode_leaf(item))
        after = reply.last
        if after is None:
            return


def _width(leaves: Leaves) -> int:
    """Estimate the width of a leaf's range from some of those that are kept."""
    some = [leaves.by_start[start] for start in leaves.starts[:: max(1, len(leaves.starts) // 16)]]
    return sum(leaf.end - leaf.start for leaf in some) // len(some) if some else PLACES


def _spread(hashes: Sequence[bytes], width: int) -> Iterator[bytes]:
    """Choose hashes that are probably in different leaves, so that each request reads another."""
    reached = -1
    for hashed in hashes:
        if hash_place(hashed) > reached:
            reached = hash_place(hashed) + width // 2
            yield hashed


def _single_marks(table: str, partition: int, streams: Sequence[str]) -> Steps[dict[str, int]]:
    """Read marks that are items of their own, by stream."""
    by_name = {mark_name(partition, stream): stream for stream in streams}
    items = yield from get_all(table, (calf_key(name, 0) for name in by_name))
    return {by_name[item["p"]["S"]]: read_number(item, "n") or 0 for item in items}
