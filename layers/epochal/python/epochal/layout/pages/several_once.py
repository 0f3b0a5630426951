"""Appends to several streams under one idempotency key: the key's record is a write of the transaction.

    written               every stream, and the record, which says what each of them got
    refused by the record     appended, by an earlier try or another process: it says what
    refused by a page         again, where each is still as expected; else a conflict, unless the record is there by now

So the record is there if and only if the append was made, and no search is needed, nor is anything undetermined:
what was appended may be pruned, and the record still tells.

    made    for each stream in the order of names: first index (a number), and the etag that was left (16 bytes)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from epochal.layout.key_records import KeyRecord, Remembered, check_contents, made_record, read_record, recall
from epochal.layout.pages.batch import Packed
from epochal.layout.pages.etags import state_of
from epochal.layout.pages.items import Page, page_key
from epochal.layout.pages.shares import Ready, begun, made_ready, moved, page_of, without_extending
from epochal.layout.pages.values import ByteReader, Writer
from epochal.layout.streams import Rejected, Results, Written
from epochal.model.versions import ExpectedVersion, Token
from epochal.plan.ops import Done, Overflow, Refusal, Steps, Together, Transact, TransactGet

_ETAG_BYTES = 16


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
        note = made_record(table, record, batches[0], made)
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
    check_contents(found, batches[0])
    left = dict(_left(batches, found.made))
    tokens = [left[batch.stream] for batch in batches]
    keys = [
        page_key(batch.stream, state.index)
        for batch, token in zip(batches, tokens, strict=True)
        if (state := state_of(token.etag or "")) is not None
    ]
    pages: Together = yield TransactGet(keys=tuple((table, key) for key in keys))
    written: list[Written] = []
    for batch, token, item in zip(batches, tokens, pages.items, strict=True):
        page = page_of(item, table)
        written.append(
            Written(
                first=token.version - batch.count,
                version=token.version,
                token=page.token() if page is not None and page.etag == token.etag else token,
                replayed=found.made not in sent,
            )
        )
    return tuple(written)


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
