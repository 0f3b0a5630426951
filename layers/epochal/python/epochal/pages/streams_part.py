"""The part of a commit for named streams: appends at expected versions, and streams that were only read.

If a stream is not as expected, the outcome is a conflict with all such streams; under a key (`several_key`), an earlier
call may have made the append, so its record is read first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from epochal.layout.key_records import read_record
from epochal.layout.outcomes import conflict_at
from epochal.layout.streams import Known, accepts
from epochal.lazy_dataclasses import dataclass
from epochal.model.expected_version import NO_STREAM, UNREAD, ExpectedVersion, expected_head
from epochal.model.outcomes import Appended, Conflict, Outcome
from epochal.model.tokens import Token, version_of
from epochal.pages.batch import Packed
from epochal.pages.commit import Commit, Heads, Tries, Writes, is_unchanged
from epochal.pages.items import Page
from epochal.pages.several_key import SeveralKey
from epochal.plan.ops import Put, Refusal, Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsPart:
    """The part of a commit for named streams: appends at expected versions, and streams that were read."""

    table: str
    batches: Mapping[str, Packed]
    expected: Mapping[str, ExpectedVersion]
    read_heads: Mapping[str, Known[Page]]
    key: SeveralKey | None

    @classmethod
    def of(
        cls,
        table: str,
        appends: Sequence[tuple[Packed, ExpectedVersion]],
        read_heads: Mapping[str, Known[Page]] | None = None,
        key: SeveralKey | None = None,
    ) -> StreamsPart:
        """Make the part of a commit that appends to these streams, each of which is named once."""
        return cls(
            table=table,
            batches={batch.stream: batch for batch, _ in appends},
            expected={batch.stream: expected for batch, expected in appends},
            read_heads=read_heads or {},
            key=key,
        )

    @property
    def commit(self) -> Commit:
        """Commit that makes these appends if the streams are as expected and as they were read."""
        known_heads = {
            stream: known_head
            for stream, expectation in self.expected.items()
            if (known_head := expected_head(expectation)) is not UNREAD
        }
        return Commit(
            table=self.table,
            known_heads={**known_heads, **self.read_heads},
            writes=tuple(self.batches),
            fences=tuple(self.read_heads),
            keyed=self.key is not None,
        )

    def batch(self, stream: str, _: Writes) -> Packed:
        """Return the batch that a stream gets."""
        return self.batches[stream]

    def ending(self, moved: Heads, tries: Tries) -> Steps[Outcome | None]:
        """Return the conflict, or an earlier call's outcome, if streams are not as expected; None if they are."""
        conflicts = {
            stream: conflict_at(moved[stream])
            for stream in (*self.batches, *self.read_heads)
            if stream in moved and not self._accepts(stream, moved[stream])
        }
        if not conflicts:
            return None
        earlier = None if self.key is None else (yield from self.key.load_outcome(self.table, tries))
        return Conflict(streams=conflicts) if earlier is None else earlier

    def records(self, writes: Writes) -> Sequence[Put]:
        """Make the write of the key's record; empty without a key."""
        if self.key is None:
            return ()
        read = {stream: _as_read(known_head) for stream, known_head in self.read_heads.items()}
        appended = {stream: write.appended for stream, write in writes.items()}
        return (self.key.make_record_put(self.table, read | appended),)

    def load_earlier_outcome(self, writes: Writes, refusal: Refusal, tries: Tries) -> Steps[Outcome | None]:  # noqa: ARG002  the record has them
        """Return the outcome of an earlier call under the key, after a refusal; None if there is none.

        If only the caller's own conditions are said to have failed, the record is read.
        """
        if self.key is None:
            return None
        if (item := refusal.items[-1]) is not None:
            return (yield from self.key.outcome_in(self.table, read_record(item), tries))
        return None if refusal.failed else (yield from self.key.load_outcome(self.table, tries))

    def appended(self, writes: Writes) -> Appended:
        """Make the outcome of the appends that were applied."""
        return Appended(streams={stream: writes[stream].appended for stream in self.batches})

    def _accepts(self, stream: str, head: Page | None) -> bool:
        """Whether a stream's head is as it was read, or has the expected version."""
        if stream in self.read_heads:
            return is_unchanged(self.read_heads[stream], head)
        return accepts(self.expected[stream], head)


def exactly(known_head: Known[Page]) -> ExpectedVersion:
    """Return the expected version that only this last page meets."""
    return NO_STREAM if known_head is None else Token(version=known_head.version, etag=known_head.etag)


def _as_read(known_head: Known[Page]) -> Appended:
    """Make the outcome of a stream that was only read: a write without events."""
    version = version_of(known_head)
    token = Token(version=version, etag=None if known_head is None else known_head.etag)
    return Appended(first=version, version=version, token=token)
