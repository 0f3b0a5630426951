"""The progress of a consumer group in one partition, stored in one item under one etag (FORMATS §4).

    checkpoint   everything before it is handled, but for what is parked
    parked       streams set aside after failures: the first index of each that is not handled
    ahead        streams handled further than the checkpoint tells: the next index of each
    trying       streams whose events a process is about to handle, one by one, and how often that has begun
    unmet        categories that were asked for when the group began, and of which no stream has come yet
    unmet_types  types of events, likewise
    paused       since when its processes take nothing; empty where they do
    shares       of a group with several members the checkpoint of each; `checkpoint` is the least of them
    by           the pattern by which its streams are shared out
    resets       a number that each reset changes: after one, a member does not repeat a commit whose answer it lost,
                 and a replay does not count what it handled before. It is drawn at random, since a group that is
                 deleted and begins anew needs another: when a group of several members begins, else when it first parks
    reads        which categories and types its reaction asks for, as of its last write; so a lag counts these alone

Parking and committing are one write, so no checkpoint ever passes an event that is neither handled nor parked
(DESIGN §5.11). `ahead` only saves work: to forget it means to handle events again, never to skip one. `trying`
is written only after processes have died, to find out over what. `unmet` serves to report misspelt names.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from epochal.codec.bodies import decode_inline, encode
from epochal.errors import CorruptData
from epochal.index.checkpoints import BEGINNING, MAX_KEY_BYTES, Checkpoint, tip_key
from epochal.index.tip import Tip, load_tip, read_unfold
from epochal.index.tip_append import Ids, append_on, batch_of
from epochal.layout.registry import source_of
from epochal.layout.streams import EncodedUnfold, Written
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.stream_names import StreamName
from epochal.model.versions import Token
from epochal.plan.batches import get_all
from epochal.plan.ops import Delete, Put, Query, Steps
from epochal.plan.values import Key, number, read_number, read_text, text

READ_UP_TO: Final = "ReadUpTo"

STATES: Final = ("$ReaderCheckpoint-*", "$ReaderMembers-*", "$Parked-*", "$ReaderFailure-*")
"""What the keys of all items of groups are like."""

MAX_PARKED: Final = 1_000
"""Streams a group may park in one partition; then it blocks (DESIGN §5.11). So many failing at once are one
failure, not so many."""

MAX_AHEAD: Final = 2_000
"""Streams remembered as ahead: about 100 KB before compression, written only where a page takes long."""

MAX_NAMES: Final = 150 * 1024
"""Bytes of the names of those that are parked, and of those that are ahead: an item has room for both, even where
none of them repeats. With names of up to 76 bytes the other limits are reached first."""


MAX_READS: Final = 300
"""Bytes of the names of what a reaction reads: with more of them they are not kept, since each commit writes them."""


class Reads(NamedTuple):
    """The categories and event types that a reaction asks for; None for all."""

    categories: tuple[str, ...] | None
    types: tuple[str, ...] | None

    @classmethod
    def of(cls, categories: Collection[str] | None, types: Collection[str] | None) -> Reads | None:
        """Return the categories and types to record; None if they are everything, or too long to store."""
        size = sum(len(name.encode()) for names in (categories, types) for name in names or ())
        if (categories is None and types is None) or size > MAX_READS:
            return None
        return cls(*(None if names is None else tuple(sorted(names)) for names in (categories, types)))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState:
    """How far a group has come in one partition.

    The maps go from stream to index, or to the number of attempts. `unmet` are categories, `unmet_types` event types.
    """

    checkpoint: Checkpoint = BEGINNING
    parked: Mapping[str, int] = field(default_factory=dict)
    ahead: Mapping[str, int] = field(default_factory=dict)
    trying: Mapping[str, int] = field(default_factory=dict)
    unmet: tuple[str, ...] = ()
    unmet_types: tuple[str, ...] = ()
    paused: str = ""
    shares: tuple[Checkpoint, ...] = ()
    by: str = ""
    resets: int = field(default=0, compare=False)
    reads: Reads | None = field(default=None, compare=False)

    def next_of(self, stream: str) -> int:
        """Return the index below which a stream's events are known to be handled."""
        return self.ahead.get(stream, 0)

    @property
    def sharing(self) -> Sharing:
        """How streams were divided among members when the state was written."""
        return Sharing(len(self.shares) or 1, self.by)

    def checkpoint_of(self, stream: str) -> Checkpoint:
        """Return the checkpoint of the member to which a stream belonged."""
        return self.shares[self.sharing.share_of(stream)] if self.shares else self.checkpoint


# Members: within a partition streams are shared out by their hashes, or by a part of their names. Each member has a
# checkpoint, and sees of the state its own part; all are in one item. More partitions would do as well, but ask for
# another index, and every group would have them. Each member reads the index, and the streams of its own alone.
#
#     another number      a member begins at the least checkpoint of those whose streams fall to it now
#     another pattern     every member begins at the least of all
#     two members commit  the later one is refused, and puts its part into what the other left

MAX_MEMBERS: Final = 64


class Unit(NamedTuple):
    """The work of one member: its share of a partition's streams, out of `Sharing.members`."""

    partition: int
    share: int = 0

    def __str__(self) -> str:
        return f"{self.partition}/{self.share}" if self.share else str(self.partition)


@dataclass(frozen=True, slots=True)
class Sharing:
    """How a group's streams are divided among its members.

    Attributes:
        members: number of members.
        by: regular expression. The part of a stream's name that its group matches decides to which member the stream
            belongs; without a pattern or a match, the whole name does.
    """

    members: int = 1
    by: str = ""

    def units(self, partition: int) -> list[Unit]:
        """Return the units of work of a partition, one for each member."""
        return [Unit(partition, share) for share in range(self.members)]

    def share_of(self, stream: str) -> int:
        """Return the number of the member to which a stream belongs."""
        if self.members == 1:
            return 0
        match = re.search(self.by, stream) if self.by else None
        key = stream if match is None else match[1] or ""
        # Other bytes than those that say which partition a stream is in.
        return int.from_bytes(hashlib.sha256(key.encode()).digest()[4:8], "big") * self.members >> 32

    def checkpoint(self, state: GroupState, share: int) -> Checkpoint:
        """Return the checkpoint at which a member continues.

        Shares are ranges of hashes, so a member whose share was part of a larger one goes on where that was.
        """
        stored = len(state.shares)
        if not stored or state.by != self.by:
            return state.checkpoint
        first, end = share * stored // self.members, -(-(share + 1) * stored // self.members)
        return min(state.shares[first:end])

    def part(self, state: GroupState, share: int) -> GroupState:
        """Return the state as one member sees it; entries of other members' streams do not concern it."""
        if self.members == 1 and not state.shares:
            return state
        return replace(state, checkpoint=self.checkpoint(state, share), shares=(), by="")

    def joined(self, state: GroupState, part: GroupState, share: int) -> GroupState:
        """Return the group's state with one member's part put into it."""
        if self.members == 1:
            return part

        def both(others: Mapping[str, int], own: Mapping[str, int]) -> dict[str, int]:
            """Merge a map: entries of the member's streams from its part, all others from the state."""
            merged = {name: value for name, value in others.items() if self.share_of(name) != share}
            return merged | {name: value for name, value in own.items() if self.share_of(name) == share}

        shares = [self.checkpoint(state, member) for member in range(self.members)]
        shares[share] = part.checkpoint
        return GroupState(
            checkpoint=min(shares),
            parked=both(state.parked, part.parked),
            ahead=both(state.ahead, part.ahead),
            trying=both(state.trying, part.trying),
            unmet=tuple(name for name in state.unmet if name in part.unmet),
            unmet_types=tuple(name for name in state.unmet_types if name in part.unmet_types),
            paused=state.paused,
            shares=tuple(shares),
            by=self.by,
            resets=state.resets,
            reads=part.reads,
        )

    def is_others(self, before: GroupState, after: GroupState, share: int) -> bool:
        """Return whether a change between two states concerns only other members."""
        if self.members == 1 or (before.paused, before.resets) != (after.paused, after.resets):
            return False
        was, now = (self.joined(GroupState(), self.part(state, share), share) for state in (before, after))
        return was == now


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedState:
    """A group's state as it was last read or written.

    Attributes:
        stream: name of the stream that stores it.
        state: the state; None if the group has never been here.
        known: the item to be changed. A write is refused if it has changed meanwhile.
    """

    stream: StreamName
    state: GroupState | None
    known: Tip | Token | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateConflict:
    """The state was not written, because another process wrote first; `held` is what that wrote."""

    held: LoadedState


def with_resets_drawn(state: GroupState, fresh: Callable[[int], bytes]) -> GroupState:
    """Return the state with a random number of resets, unless it has one."""
    return state if state.resets else replace(state, resets=int.from_bytes(fresh(6), "big"))


def group_stream(partition: int, group: str) -> StreamName:
    """Return the name of the stream that stores a group's state in a partition."""
    return StreamName(f"$ReaderCheckpoint-{source_of(partition)}_{partition}_{group}")


def load(table: str, stream: StreamName) -> Steps[LoadedState]:
    """Load a group's state with one consistent request."""
    return _loaded_state(stream, (yield from load_tip(table, stream)))


def save(table: str, held: LoadedState, state: GroupState, ids: Ids) -> Steps[LoadedState | StateConflict]:
    """Replace a group's state, unless it has changed since it was loaded."""
    unfold = EncodedUnfold(
        version=0, type=READ_UP_TO, data=encode(_encode_state(state)), timestamp=ids.timestamp
    )
    batch = batch_of(held.stream, (), (unfold,), etag=ids.etag, append_id=ids.append_id)
    result = yield from append_on(table, batch, held.known)
    if isinstance(result, Written):
        return LoadedState(stream=held.stream, state=state, known=result.token)
    return StateConflict(held=_loaded_state(held.stream, result.head))


def remove(table: str, stream: StreamName) -> Steps[None]:
    """Delete a group's state; a process that still holds it fails at its next write and starts anew."""
    yield Delete(table=table, key=tip_key(stream))


def _loaded_state(stream: StreamName, tip: Tip | None) -> LoadedState:
    """Extract the group's state from a Tip."""
    for stored in () if tip is None else map(read_unfold, tip.unfolds):
        if stored.type == READ_UP_TO:
            return LoadedState(stream=stream, state=_decode_state(stream, stored), known=tip)
    return LoadedState(stream=stream, state=None, known=tip)


def _encode_state(state: GroupState) -> bytes:
    """Encode a group's state as JSON, without empty fields, and without the oldest of too many `ahead`."""
    fields: dict[str, Any] = {"checkpoint": int(state.checkpoint)}
    for name, value in (("parked", state.parked), ("ahead", _newest(state.ahead)), ("trying", state.trying)):
        if value:
            fields[name] = dict(value)
    for name, names in (("unmet", state.unmet), ("unmetTypes", state.unmet_types)):
        if names:
            fields[name] = list(names)
    fields |= {name: label for name, label in (("paused", state.paused), ("by", state.by)) if label}
    if state.resets:
        fields["resets"] = state.resets
    if state.shares:
        fields["shares"] = list(map(int, state.shares))
    if state.reads is not None:
        reads = state.reads._asdict().items()
        fields["reads"] = {name: list(names) for name, names in reads if names is not None}
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def _newest(ahead: Mapping[str, int]) -> dict[str, int]:
    """Return the newest streams that are ahead, as many as the item has room for."""
    newest = list(ahead.items())[-MAX_AHEAD:]
    room = MAX_NAMES - sum(len(stream.encode()) for stream, _ in newest)
    first = 0
    while room < 0:
        room += len(newest[first][0].encode())
        first += 1
    return dict(newest[first:])


def _decode_state(stream: str, stored: EncodedUnfold) -> GroupState:
    """Decode a group's stored state; raise `CorruptData` if it is malformed."""
    try:
        fields = json.loads(decode_inline(stored.data))
        maps = {name: _decode_counts(fields.get(name, {})) for name in ("parked", "ahead", "trying")}
        unmet, unmet_types = (tuple(map(str, fields.get(name, ()))) for name in ("unmet", "unmetTypes"))
        return GroupState(
            checkpoint=Checkpoint(fields["checkpoint"]),
            unmet=unmet,
            unmet_types=unmet_types,
            paused=str(fields.get("paused", "")),
            shares=tuple(map(Checkpoint, fields.get("shares", ()))),
            by=str(fields.get("by", "")),
            resets=int(fields.get("resets", 0)),
            reads=_decode_reads(fields["reads"]) if "reads" in fields else None,
            **maps,
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CorruptData(f"{stream}: the group's state cannot be read") from error


def _decode_reads(value: dict[str, Any]) -> Reads:
    """Decode the categories and types that a reaction reads."""
    return Reads(*(tuple(map(str, value[name])) if name in value else None for name in Reads._fields))


def _decode_counts(value: dict[str, Any]) -> dict[str, int]:
    """Decode a map from stream to number."""
    return {str(stream): int(count) for stream, count in value.items()}


# Why streams were parked: an item for each, beside the group's state and never part of it.
#
# Only the state says that a stream is parked, and from which index on. This is for people: it is written before
# the stream is parked, and may be missing or left over.

MAX_CAUSE: Final = 800
"""Characters of a cause that are kept. Whoever takes the trace bounds it: an item costs three write units, or four."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a stream was parked: its text, at which index, after how many attempts, when, and the trace."""

    stream: str
    index: int
    text: str
    attempts: int
    timestamp: str
    trace: str = ""


def keep_cause(table: str, partition: int, group: str, cause: Cause) -> Steps[None]:
    """Store why a stream was parked, in place of an earlier cause."""
    key = _cause_key(partition, group, cause.stream)
    if len(key["p"]["S"].encode()) > MAX_KEY_BYTES:
        return
    item = {
        **key,
        "n": number(cause.index),
        "a": number(cause.attempts),
        "t": text(cause.timestamp),
        "x": text(cause.text[:MAX_CAUSE] or "-"),
        **({"w": text(cause.trace)} if cause.trace else {}),
    }
    yield Put(table=table, item=item)


def forget_cause(table: str, partition: int, group: str, stream: str) -> Steps[None]:
    """Delete the stored cause of a parked stream."""
    yield Delete(table=table, key=_cause_key(partition, group, stream))


def read_causes(table: str, partition: int, group: str, streams: Iterable[str]) -> Steps[dict[str, Cause]]:
    """Read the stored causes of parked streams, by stream."""
    keys = {stream: _cause_key(partition, group, stream) for stream in streams}
    names = {key["p"]["S"]: stream for stream, key in keys.items()}
    causes: dict[str, Cause] = {}
    for item in (yield from get_all(table, keys.values())):
        stream = names[item["p"]["S"]]
        causes[stream] = Cause(
            stream=stream,
            index=read_number(item, "n") or 0,
            text=item["x"]["S"],
            attempts=read_number(item, "a") or 0,
            timestamp=item["t"]["S"],
            trace=read_text(item, "w") or "",
        )
    return causes


def _cause_key(partition: int, group: str, stream: str) -> Key:
    """Return the key of a parked stream's cause."""
    return {"p": text(f"$Parked-{partition}_{group}_{stream}"), "i": number(0)}


# Which processes run a reaction outside of Lambda, and which partitions each of them takes.
#
# Every process says now and then that it is alive, and knows from the others' words who shares the work; which
# partition is whose follows from the names alone. Views may differ for a while, and two processes then run one
# partition: the group's state decides between them, so that costs work and breaks nothing.


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """A sign of life of a process, valid until a time in milliseconds since 1970 unless it is removed."""

    owner: str
    until: int


def write_sign(table: str, group: str, sign: Sign) -> Steps[None]:
    """Record that a process is alive."""
    item = {**_key(group, sign.owner), "o": text(sign.owner), "n": number(sign.until)}
    yield Put(table=table, item=item)


def remove_sign(table: str, group: str, owner: str) -> Steps[None]:
    """Delete a process's sign of life."""
    yield Delete(table=table, key=_key(group, owner))


def read_signs(table: str, group: str) -> Steps[list[Sign]]:
    """Read all signs of life of a group's processes, valid or not."""
    signs: list[Sign] = []
    after: Key | None = None
    while True:
        reply = yield Query(table=table, partition=("p", text(_name(group))), after=after)
        signs += [Sign(owner=item["o"]["S"], until=read_number(item, "n") or 0) for item in reply.items]
        if reply.last is None:
            return signs
        after = reply.last


U = TypeVar("U", int, Unit)


def assign_units(owner: str, owners: Collection[str], units: Iterable[U]) -> list[U]:
    """Return those partitions or shares that fall to one of several processes, by rendezvous hashing.

    A process that comes or goes moves only its own.
    """
    return [unit for unit in units if owner == max(owners, key=lambda name: _weight(name, unit))]


def _weight(owner: str, unit: int | Unit) -> bytes:
    """Return the hash by which a process competes for a unit."""
    return hashlib.sha256(f"{unit} {owner}".encode()).digest()


def _name(group: str) -> str:
    """Return the partition key of a group's signs of life."""
    return f"$ReaderMembers-{group}"


def _key(group: str, owner: str) -> Key:
    """Return the key of a process's sign of life."""
    place = int.from_bytes(hashlib.sha256(owner.encode()).digest()[:6], "big")
    return {"p": text(_name(group)), "i": number(place)}
