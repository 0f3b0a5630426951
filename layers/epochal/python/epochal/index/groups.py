"""Stores the progress of a consumer group in one partition: one item under one etag, replaced as a whole (FORMATS §4).

Parking and committing are one write, so no checkpoint ever passes an event that is neither handled nor parked
(DESIGN §5.11). `ahead` only saves work: without it events are handled again, but never skipped. `trying` is written
only after processes have died, to find the event that kills them. `unmet` serves to report misspelt names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from epochal.codec.bodies import decode_inline, encode
from epochal.errors import CorruptData
from epochal.index.checkpoints import Checkpoint, tip_key
from epochal.index.group_state import GroupState, Reads
from epochal.index.tip import Tip, load_tip, read_unfold
from epochal.index.tip_append import append_on
from epochal.index.wire_batch import Ids, batch_of
from epochal.layout.outcomes import refusing_head
from epochal.layout.registry import source_of
from epochal.layout.streams import EncodedUnfold
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.outcomes import Appended
from epochal.model.stream_names import StreamName
from epochal.model.tokens import Token
from epochal.plan.ops import Delete, Steps

READ_UP_TO: Final = "ReadUpTo"

STATES: Final = ("$ReaderCheckpoint-*", "$ReaderMembers-*", "$Parked-*", "$ReaderFailure-*")
"""Patterns of the partition keys of all items of groups."""

MAX_PARKED: Final = 1_000
"""Largest number of streams that a group parks in one partition; after that, the partition blocks (DESIGN §5.11). If so
many streams fail, they probably have one common cause."""

MAX_AHEAD: Final = 2_000
"""Streams remembered as ahead: about 100 KB before compression, written only where a page takes long."""

MAX_NAMES: Final = 150 * 1024
"""Bytes of the names of those that are parked, and of those that are ahead: an item has room for both, even where
none of them repeats. With names of up to 76 bytes the other limits are reached first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedState:
    """A group's state as it was last read or written.

    Attributes:
        stream: name of the stream that stores it.
        state: the state; None if the group has never been here.
        known_head: the item to be changed. A write is refused if it has changed meanwhile.
    """

    stream: StreamName
    state: GroupState | None
    known_head: Tip | Token | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateConflict:
    """The state was not written, because another process wrote first; `held` is the state that it wrote."""

    held: LoadedState


def group_stream(partition: int, group: str) -> StreamName:
    """Return the name of the stream that stores a group's state in a partition."""
    return StreamName(f"$ReaderCheckpoint-{source_of(partition)}_{partition}_{group}")


def load(table: str, stream: StreamName) -> Steps[LoadedState]:
    """Load a group's state with one consistent request."""
    return _loaded_state(stream, (yield from load_tip(table, stream)))


def save(table: str, held: LoadedState, state: GroupState, ids: Ids) -> Steps[LoadedState | StateConflict]:
    """Replace a group's loaded state; return the new one, or a conflict if others have changed it."""
    unfold = EncodedUnfold(
        version=0, type=READ_UP_TO, data=encode(_encode_state(state)), timestamp=ids.timestamp
    )
    batch = batch_of(held.stream, (), (unfold,), etag=ids.etag, append_id=ids.append_id)
    result = yield from append_on(table, batch, held.known_head)
    if isinstance(result, Appended):
        return LoadedState(stream=held.stream, state=state, known_head=result.token)
    return StateConflict(held=_loaded_state(held.stream, refusing_head(result)))


def remove(table: str, stream: StreamName) -> Steps[None]:
    """Delete a group's state; a process that still holds it fails at its next write and starts anew."""
    yield Delete(table=table, key=tip_key(stream))


def _loaded_state(stream: StreamName, tip: Tip | None) -> LoadedState:
    """Extract the group's state from a Tip."""
    for stored in () if tip is None else map(read_unfold, tip.unfolds):
        if stored.type == READ_UP_TO:
            return LoadedState(stream=stream, state=_decode_state(stream, stored), known_head=tip)
    return LoadedState(stream=stream, state=None, known_head=tip)


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
    if state.generation:
        fields["resets"] = state.generation
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
            generation=int(fields.get("resets", 0)),
            reads=_decode_reads(fields["reads"]) if "reads" in fields else None,
            **maps,
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CorruptData(f"{stream}: the group's state cannot be decoded") from error


def _decode_reads(value: dict[str, Any]) -> Reads:
    """Decode the categories and types that a reaction reads."""
    return Reads(*(tuple(map(str, value[name])) if name in value else None for name in Reads._fields))


def _decode_counts(value: dict[str, Any]) -> dict[str, int]:
    """Decode a map from stream to number."""
    return {str(stream): int(count) for stream, count in value.items()}
