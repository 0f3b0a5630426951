"""The record of an idempotency key of an append to several streams, or of a decision on several streams.

The record is written in the commit, and says what was appended to each stream. So it exists if and only if the append
was made: no stream is searched, and no outcome is undetermined, even after a prune. If a stream is not as expected, the
record is read before the conflict is returned.

    made      for each stream in the order of names: first index, number of events, new etag (16 bytes)
    events    the number of events is only in the record of a decision; the contents of an append determine it
    etag      0 if there is no stream, since a decision may read streams that do not exist

This format outlives the code (FORMATS).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from epochal.errors import CorruptData
from epochal.layout.key_records import (
    KeyRecord,
    RecordContents,
    check_contents,
    load_record,
    make_record_put,
    read_record,
)
from epochal.layout.streams import decision_id
from epochal.lazy_dataclasses import dataclass
from epochal.model.moments import Ticks, unix_seconds
from epochal.model.outcomes import Appended, Outcome
from epochal.model.tokens import Token
from epochal.pages.batch import Packed
from epochal.pages.commit import Tries, page_of
from epochal.pages.frames import ByteReader, Writer, time_of
from epochal.pages.items import Page, page_key, state_of
from epochal.plan.ops import Put, Steps, Together, TransactGet

_ETAG_BYTES: Final = 16
_NO_ETAG: Final = "00" * _ETAG_BYTES
"""Etag in a record for a stream that does not exist; no page has it, since the time of a page is above 0."""


@dataclass(slots=True, kw_only=True)
class SeveralKey:
    """The key of an append to several streams, or of a decision on them, with its state between tries.

    Attributes:
        streams: names of the streams, sorted.
        record: the key's record.
        append_id: append id; that of a decision does not identify its contents.
        counts: number of events of each stream; None for a decision.
        bound: contents of an existing record that only limits the search for the append; None if there is none.
    """

    streams: tuple[str, ...]
    record: KeyRecord
    append_id: bytes
    counts: Mapping[str, int] | None = None
    bound: RecordContents | None = None

    @classmethod
    def of(cls, streams: Sequence[str], key: str, now: Ticks) -> SeveralKey:
        """Make the key of a decision on these streams from a caller's `key`."""
        record = KeyRecord.of_all(streams, key, unix_seconds(now))
        append_id = decision_id(record.name.encode()[-8:], 0)
        return cls(streams=tuple(sorted(streams)), record=record, append_id=append_id)

    @classmethod
    def of_append(cls, batches: Sequence[Packed], key: str) -> SeveralKey:
        """Make the key of an append of these batches from a caller's `key`."""
        counts = {batch.stream: batch.count for batch in batches}
        record = KeyRecord.of_all(counts, key, unix_seconds(batches[0].now))
        return cls(
            streams=tuple(sorted(counts)), record=record, append_id=batches[0].append_id, counts=counts
        )

    def make_record_put(self, table: str, appended: Mapping[str, Appended]) -> Put:
        """Make the write of the key's record, which says what the append leaves in each stream."""
        out = Writer()
        for stream in self.streams:
            out.number(appended[stream].first)
            if self.counts is None:
                out.number(appended[stream].version - appended[stream].first)
            out.add(bytes.fromhex(appended[stream].token.etag or _NO_ETAG))
        bounds = () if self.bound is None else (self.bound,)
        return make_record_put(table, self.record, self.append_id, out.written(), bounds)

    def load_outcome(self, table: str, tries: Tries) -> Steps[Outcome | None]:
        """Read the key's record and return the outcome that it contains; None if there is no record."""
        contents = yield from load_record(table, self.record)
        return None if contents is None else (yield from self.outcome_in(table, contents, tries))

    def outcome_in(self, table: str, contents: RecordContents, tries: Tries) -> Steps[Outcome | None]:
        """Return the outcome that the key's record contains, once every stream shows its events.

        Each token is of the page as the append left it, even if others have written to the page since.

        Raises:
            CorruptData: a stream lacks its events, as in a table that was copied without them.
        """
        check_contents(contents, self.append_id)
        source, firsts, tokens = ByteReader(contents.made), dict[str, int](), dict[str, Token]()
        for stream in self.streams:
            firsts[stream], counted, etag = read_stream(source, counted=self.counts is None)
            version = firsts[stream] + (counted if self.counts is None else self.counts[stream])
            tokens[stream] = Token(version=version, etag=None if etag == _NO_ETAG else etag)
        own = (read_record(record.item) for plan in tries for record in plan.records)
        replayed = self.counts is None or contents not in own
        streams = {
            stream: Appended(first=firsts[stream], version=token.version, token=token, replayed=replayed)
            for stream, token in (yield from _load_tokens(table, firsts, tokens)).items()
        }
        return Appended(streams=streams, replayed=replayed)


def read_stream(source: ByteReader, *, counted: bool) -> tuple[int, int, str]:
    """Read the next stream's first index, number of events (0 if not counted) and etag in `made`."""
    return source.number(), source.number() if counted else 0, source.take(_ETAG_BYTES).hex()


def _load_tokens(
    table: str, first: Mapping[str, int], tokens: Mapping[str, Token]
) -> Steps[dict[str, Token]]:
    """Return the tokens, with sizes if their pages are unchanged; raise `CorruptData` if one lacks events.

    If a page has not changed since, its own token is returned.
    """
    states = {stream: state_of(token.etag or "") for stream, token in tokens.items()}
    places = {stream: state for stream, state in states.items() if state is not None}
    keys = tuple((table, page_key(stream, state.index)) for stream, state in places.items())
    pages: Together = yield TransactGet(keys=keys)
    heads = dict(tokens)
    for (stream, state), item in zip(places.items(), pages.items, strict=True):
        page, token = page_of(item, table), tokens[stream]
        if page is None or not _shows(page, first[stream], token.version, state.time):
            raise CorruptData(f"{stream}: the events of this key are missing, although its record exists")
        if page.etag == token.etag:
            heads[stream] = page.token()
    return heads


def _shows(page: Page, first: int, version: int, time: Ticks) -> bool:
    """Return whether a page shows the write at `time` that appended events `first` to `version - 1`.

    A write without events, or with pruned ones, is shown by the page's time alone.
    """
    has_write = (
        first == version or page.base > first or any(time_of(frame.stamp) == time for frame in page.frames)
    )
    return has_write and page.time >= time
