"""Appends to several streams under one idempotency key: the key's record is a write of the transaction.

    written               every stream, and the record, which says what each of them got
    refused by the record     appended, by an earlier try or another process: it says what
    refused by a page         again, where each is still as expected; else a conflict, unless the record is there by now

So the record is there if and only if the append was made, and no search is needed, nor is anything undetermined:
what was appended may be pruned, and the record still tells.

    made    for each stream in the order of names: first index (a number), and the etag that was left (16 bytes)

A decision on several streams is made likewise, on exactly what is known of each. What it gives to each is not told by
what the caller hands in, so its record tells that, too, and what it has only read:

    made    for each stream in the order of names: first index, events (numbers), the etag (16 bytes, 0 for none)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from epochal.layout.expectations import version_of
from epochal.layout.key_records import (
    KeyRecord,
    Remembered,
    check_contents,
    made_record,
    read_record,
    recall,
)
from epochal.layout.pages.batch import Packed
from epochal.layout.pages.etags import state_of
from epochal.layout.pages.fences import StreamFence, StreamRead
from epochal.layout.pages.items import Page, page_key
from epochal.layout.pages.shares import Ready, begun, made_ready, moved, page_of, without_extending
from epochal.layout.pages.values import ByteReader, Writer
from epochal.layout.streams import DecidedBefore, Rejected, Results, Written, decision_id
from epochal.model.times import Ticks, unix_seconds
from epochal.model.versions import ExpectedVersion, Token
from epochal.plan.ops import Done, Overflow, Put, Refusal, Steps, Together, Transact, TransactGet
from epochal.plan.values import Item

_ETAG_BYTES = 16
_NO_ETAG = "00" * _ETAG_BYTES
"""Where there is no stream; no page has it, since its time is above 0."""


def append_all_once(
    table: str, appends: Sequence[tuple[Packed, ExpectedVersion]], record: KeyRecord
) -> Steps[Results[Page]]:
    """`append_all`, where the batches are known by the recorded key. Raises likewise, and `InvalidInput` where the key
    was used for other contents.
    """
    batches = [batch for batch, _ in appends]
    states = yield from begun(table, appends)
    sent = set[bytes]()
    while not any(isinstance(state, Rejected) for state in states):
        states = yield from made_ready(table, states)
        ready = [state for state in states if isinstance(state, Ready)]
        if len(ready) < len(states):
            break
        made = _made(ready)
        sent.add(made)
        note = made_record(table, record, batches[0].append_id, made)
        writes = (*(each.planned.write for each in ready), note)
        reply: Done | Overflow | Refusal = yield Transact(writes=writes)
        match reply:
            case Done():
                return tuple(each.written for each in ready)
            case Overflow():
                states = without_extending(ready)
            case Refusal():
                if (said := reply.items[-1]) is not None:
                    return (yield from _already(table, batches, read_record(said), sent))
                states = yield from moved(table, ready, reply)
    found = yield from recall(table, record)
    if found is not None:
        return (yield from _already(table, batches, found, sent))
    return tuple(state if isinstance(state, Rejected) else None for state in states)


def _already(
    table: str, batches: Sequence[Packed], found: Remembered, sent: set[bytes]
) -> Steps[tuple[Written, ...]]:
    """What the record says that each stream got. Whoever is told shall find it in every stream, so all are waited for.

    A token is of the page that the append left, whoever has written to it since.
    """
    check_contents(found, batches[0].append_id)
    left = yield from _waited_for(table, dict(_left(batches, found.made)))
    return tuple(
        Written(
            first=(token := left[batch.stream]).version - batch.count,
            version=token.version,
            token=token,
            replayed=found.made not in sent,
        )
        for batch in batches
    )


def _waited_for(table: str, left: Mapping[str, Token]) -> Steps[dict[str, Token]]:
    """The tokens that were left, once whoever is told of them finds them there."""
    places = {
        stream: state.index
        for stream, token in left.items()
        if (state := state_of(token.etag or "")) is not None
    }
    keys = tuple((table, page_key(stream, index)) for stream, index in places.items())
    pages: Together = yield TransactGet(keys=keys)
    found = dict(left)
    for stream, item in zip(places, pages.items, strict=True):
        page = page_of(item, table)
        if page is not None and page.etag == left[stream].etag:
            found[stream] = page.token()
    return found


def _made(ready: Sequence[Ready]) -> bytes:
    out = Writer()
    for each in sorted(ready, key=lambda each: each.stream):
        out.number(each.written.first)
        out.add(bytes.fromhex(each.planned.token.etag or ""))
    return out.written()


def _left(batches: Sequence[Packed], made: bytes) -> Iterator[tuple[str, Token]]:
    """The inverse: of each stream, the token that was left."""
    source = ByteReader(made)
    for batch in sorted(batches, key=lambda batch: batch.stream):
        first = source.number()
        yield batch.stream, Token(version=first + batch.count, etag=source.take(_ETAG_BYTES).hex())


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralKey:
    """The key of a decision on several streams, and what its record has for contents: what is decided is any."""

    streams: tuple[str, ...]
    record: KeyRecord
    append_id: bytes

    @classmethod
    def of(cls, streams: Sequence[str], key: str, now: Ticks) -> SeveralKey:
        """That of a caller's `key`."""
        record = KeyRecord.of_all(streams, key, unix_seconds(now))
        append_id = decision_id(record.name.encode()[-8:], 0)
        return cls(streams=tuple(sorted(streams)), record=record, append_id=append_id)

    def note(self, table: str, ready: Sequence[Ready | StreamFence], reads: Sequence[StreamRead]) -> Put:
        """The record that goes out with these writes."""
        left = {each.stream: each.written for each in ready if isinstance(each, Ready)}
        for stream, known in reads:
            version = version_of(known)
            token = Token(version=version, etag=None if known is None else known.etag)
            left[stream] = Written(first=version, version=version, token=token)
        out = Writer()
        for stream in self.streams:
            out.number(left[stream].first)
            out.number(left[stream].version - left[stream].first)
            out.add(bytes.fromhex(left[stream].token.etag or _NO_ETAG))
        return made_record(table, self.record, self.append_id, out.written())

    def told(self, table: str, item: Item | None) -> Steps[DecidedBefore | None]:
        """What the record says that a refusal has brought."""
        return None if item is None else (yield from self._told(table, read_record(item)))

    def before(self, table: str) -> Steps[DecidedBefore | None]:
        """What the record says, if it is there."""
        found = yield from recall(table, self.record)
        return None if found is None else (yield from self._told(table, found))

    def _told(self, table: str, found: Remembered) -> Steps[DecidedBefore]:
        check_contents(found, self.append_id)
        source, counts, tokens = ByteReader(found.made), dict[str, int](), dict[str, Token]()
        for stream in self.streams:
            first, counts[stream] = source.number(), source.number()
            etag = source.take(_ETAG_BYTES).hex()
            tokens[stream] = Token(version=first + counts[stream], etag=None if etag == _NO_ETAG else etag)
        left = yield from _waited_for(table, tokens)
        return DecidedBefore(
            streams={
                stream: Written(
                    first=token.version - counts[stream], version=token.version, token=token, replayed=True
                )
                for stream, token in left.items()
            }
        )
